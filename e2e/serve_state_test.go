package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"xdspub/tools/envoytest"
)

// TestServeState pauses and rolls back a server that writes no files. A server that was killed serves at its next start
// what it served before: to an Envoy that has it, and to an Envoy that starts meanwhile.
func TestServeState(t *testing.T) {
	t.Parallel()
	port := envoytest.FreePort(t)
	routes := func(body string) string {
		return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: %s}}}]}]}`, body)
	}
	s := serveTree(t, map[string]string{"listener.yaml": listener("in", port, rds("main")), "routes.yaml": routes("one")})
	state := filepath.Join(filepath.Dir(s.src), "state")
	flags := []string{"--grpc", "unix:" + s.socket, "--state", state}
	answers := func(want string) {
		t.Helper()
		envoytest.Eventually(t, patience, "Envoy answers "+want, func() (bool, string) {
			_, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
			return err == nil && body == want, fmt.Sprint(body, err)
		})
	}
	does := func(args ...string) {
		t.Helper()
		if stdout, stderr, exit := xdspub(t, append(args, "--out", state)...); exit != 0 {
			t.Fatalf("%q: exit status %d\n%s%s", args, exit, stdout, stderr)
		}
	}
	s.start(t, flags...)
	envoy := startByADS(t, "DELTA_GRPC", s.socket)
	answers("one")
	does("pause", "--reason", "a test")
	s.write(t, "routes.yaml", routes("two"))
	s.server.WaitLog(t, "event=snapshot-waits ")
	s.kill(t)
	s.begin(t, flags...)
	s.server.WaitLog(t, "event=snapshot-waits ")
	answers("one")
	envoy.Stop(t)
	envoy = startByADS(t, "GRPC", s.socket)
	answers("one")
	does("resume")
	answers("two")

	does("rollback")
	answers("one")
	s.kill(t)
	s.begin(t, flags...)
	s.server.WaitLog(t, "event=snapshot-waits ")
	envoy.Stop(t)
	startByADS(t, "DELTA_GRPC", s.socket)
	answers("one")
	s.write(t, "routes.yaml", routes("three"))
	answers("three")
}
