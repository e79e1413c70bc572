package e2e

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"xdspub/tools/envoytest"
)

// TestCertificateExpires has a certificate expire while a watch runs and an Envoy serves it. Without any change of
// a file, the watch finds the expired certificate, and Envoy does not.
func TestCertificateExpires(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	edge := envoytest.FreePort(t)
	with := func(p pair) string {
		return documents(certificate("edge", p), tlsListener("edge", edge, downstreamTLS("edge"), "route_config: {virtual_hosts: []}"))
	}
	s := startFixture(t, map[string]string{"edge.yaml": with(newPair(t, "edge"))}, "--rescan", "500ms")
	says := func(exit int, line string) {
		t.Helper()
		if stdout, stderr, is := xdspub(t, "status", "--out", s.out); is != exit || !strings.HasPrefix(stdout, line+"\n") {
			t.Errorf("exit status %d, want %d and %q:\n%s%s", is, exit, line, stdout, stderr)
		}
	}
	const inSync = "in sync: the files are as published (no Envoy was asked: pass --envoy-admin)"
	says(0, inSync)
	// The certificate expires soon in the last 20 of its 120 seconds: a busy machine looks in time. The times of
	// certificates have whole seconds.
	until := time.Now().Add(22 * time.Second).Truncate(time.Second)
	s.write(t, "edge.yaml", with(datedPair(t, "edge", until.Add(-120*time.Second), until)))
	s.watch.WaitLog(t, "code=expired-certificate/expires-soon")
	s.watch.WaitLog(t, "code=expired-certificate/expired")
	says(1, "not in sync: 1 certificate is out of date")
	c, err := tls.Dial("tcp", address(edge), &tls.Config{InsecureSkipVerify: true}) // a peer that verifies would reject it
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().PeerCertificates[0]; !got.NotAfter.Equal(until) {
		t.Errorf("Envoy has a certificate that is valid until %v, want %v", got.NotAfter, until)
	}
	s.write(t, "edge.yaml", with(newPair(t, "edge")))
	s.watch.WaitLog(t, "event=published ")
	says(0, inSync)
}
