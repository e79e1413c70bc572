package e2e

import (
	"crypto/tls"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// servedName returns the common name of the certificate of a listener.
func servedName(t *testing.T, port int) string {
	t.Helper()
	c, err := tls.Dial("tcp", address(port), &tls.Config{InsecureSkipVerify: true}) // self-signed
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// TestWhileRefused: while a file of the source tree is broken, an Envoy gets the changes of endpoints and of a
// certificate, and nothing else, also after a restart of the watch. While a snapshot is held that Envoy rejected,
// endpoints change as well, and the snapshot stays held.
func TestWhileRefused(t *testing.T) {
	t.Parallel()
	one, two := envoytest.NewUpstream(t, "one"), envoytest.NewUpstream(t, "two")
	edge := envoytest.FreePort(t)
	s := startConfirmed(t, map[string]string{
		"cluster.yaml":   edsCluster("web"),
		"endpoints.yaml": endpoints("web", one.Port()),
		"secret.yaml":    certificate("key", newPair(t, "old")),
		"routes.yaml":    routes("main", "web"),
		"edge.yaml":      tlsListener("edge", edge, downstreamTLS("key"), rds("main")),
		"limits.yaml":    runtimeLayer("limits", "{a: 1}"),
	}, "--while-refused", "endpoints,secrets")
	answers := func(want string) {
		t.Helper()
		becomes(t, "the page", want, func() string { return whoTLS(t, edge) })
	}
	answers("200 one")

	s.write(t, "limits.yaml", "name: [")
	s.write(t, "routes.yaml", routes("main", "web", `{match: {path: /who}, direct_response: {status: 418}}`))
	s.watch.WaitLog(t, "event=source-invalid ")
	s.write(t, "endpoints.yaml", endpoints("web", two.Port()))
	s.watch.WaitLog(t, "event=part-published ")
	answers("200 two")
	s.write(t, "secret.yaml", certificate("key", newPair(t, "new")))
	s.watch.WaitLog(t, "event=part-published ")
	becomes(t, "the certificate", "new", func() string { return servedName(t, edge) })

	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	s.beginWatch(t)
	s.watch.WaitLog(t, "event=source-invalid ")
	s.write(t, "endpoints.yaml", endpoints("web", one.Port()))
	s.watch.WaitLog(t, "event=part-published ")
	answers("200 one")
	becomes(t, "the certificate", "new", func() string { return servedName(t, edge) })

	s.write(t, "limits.yaml", runtimeLayer("limits", "{a: 2}"))
	s.watch.WaitLog(t, "event=published ")
	answers("418 ")
	s.write(t, "routes.yaml", routes("main", "web"))
	s.watch.WaitLog(t, "event=published ")
	answers("200 one")

	busy, _ := takePort(t)
	s.write(t, "busy.yaml", listener("busy", busy, rds("main")))
	s.watch.WaitLog(t, "event=rolled-back ")
	s.write(t, "endpoints.yaml", endpoints("web", two.Port()))
	s.watch.WaitLog(t, "event=part-published ")
	answers("200 two")
	out, _, exit := xdspub(t, "status", "--out", s.out)
	if exit != 1 || !strings.Contains(out, "1 snapshot held") || !strings.Contains(out, "faultless changes of endpoints and secrets go on") {
		t.Errorf("status: exit status %d\n%s", exit, out)
	}
	s.remove(t, "busy.yaml")
	s.watch.WaitLog(t, "event=published ")
	answers("200 two")
	if rejected := s.envoy.Stats(t, `^listener_manager\.lds\.update_rejected$`); rejected["listener_manager.lds.update_rejected"] != "1" {
		t.Errorf("Envoy got the rejected listener again: %v", rejected)
	}
}

// TestServeWhileRefused: an Envoy that asks a server gets changes of endpoints while a file is broken, also from a
// server that starts with the broken file.
func TestServeWhileRefused(t *testing.T) {
	t.Parallel()
	one, two := envoytest.NewUpstream(t, "one"), envoytest.NewUpstream(t, "two")
	edge := envoytest.FreePort(t)
	s := serveTree(t, map[string]string{
		"cluster.yaml":   edsCluster("web"),
		"endpoints.yaml": endpoints("web", one.Port()),
		"edge.yaml":      documents(listener("edge", edge, rds("main")), routes("main", "web")),
		"limits.yaml":    runtimeLayer("limits", "{a: 1}"),
	})
	flags := append(s.intoOut(), "--while-refused", "endpoints", "--drain-time", "1s", "--step-gap", "0s")
	s.start(t, flags...)
	startByADS(t, "DELTA_GRPC", s.socket)
	answers := func(want string) {
		t.Helper()
		becomes(t, "the page", want, func() string { return ask(t, request{port: edge}).text })
	}
	answers("200 one")
	s.write(t, "limits.yaml", "name: [")
	s.server.WaitLog(t, "event=source-invalid ")
	s.write(t, "endpoints.yaml", endpoints("web", two.Port()))
	s.server.WaitLog(t, "event=part-published ")
	answers("200 two")
	s.end(t)

	s.begin(t, flags...)
	s.server.WaitLog(t, "event=serving-published ")
	s.write(t, "endpoints.yaml", endpoints("web", one.Port()))
	s.server.WaitLog(t, "event=part-published ")
	answers("200 one")
	s.write(t, "limits.yaml", runtimeLayer("limits", "{a: 2}"))
	s.server.WaitLog(t, "event=published ")
	answers("200 one")
}
