package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"xdspub/tools/envoytest"
)

// TestCertificateFiles: xdspub puts a certificate and its key, which are files of the tree, into the secret. When
// both change, Envoy gets them as a pair. While one of them is missing, xdspub publishes nothing.
func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	upstream := envoytest.NewUpstream(t, "upstream")
	port := envoytest.FreePort(t)
	first, second := newPair(t, "first"), newPair(t, "second")
	s := startFixture(t, map[string]string{
		"clusters.yaml":   staticCluster("web", upstream.Port()),
		"listeners.yaml":  tlsListener("secure", port, downstreamTLS("server"), "route_config: {"+hosts("web")+"}"),
		"tls/server.yaml": document("envoy.extensions.transport_sockets.tls.v3.Secret", `name: server, tls_certificate: {certificate_chain: {filename: server.pem}, private_key: {filename: server.key}}`),
		"tls/server.pem":  first.certificate,
		"tls/server.key":  first.key,
	}, "--quiet-period", "500ms")
	becomes(t, "the certificate", "first", func() string { return peer(port) })
	s.write(t, "tls/server.pem", second.certificate)
	s.write(t, "tls/server.key", second.key)
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "the certificate", "second", func() string { return peer(port) })
	content(t, s.envoy)
	info, err := os.Stat(filepath.Join(s.out, "sds/server/sds.json"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the published key: %v, %v", info.Mode(), err)
	}
	s.remove(t, "tls/server.key")
	s.watch.WaitLog(t, "code=missing-file ")
	s.watch.WaitLog(t, "event=source-invalid ")
	becomes(t, "the certificate", "second", func() string { return peer(port) })
}
