package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// TestServedMoves moves listeners so that each takes the former address of another. Envoy refuses a listener at an
// address until the other listener has left it, and until the new version of the other listener is warm. So the
// server sends the listeners one after another. A restarted server does not know the former addresses: Envoy
// refuses listeners, and the server sends them again.
func TestServedMoves(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	ports := []int{envoytest.FreePort(t), envoytest.FreePort(t), envoytest.FreePort(t), envoytest.FreePort(t)}
	// Each listener is at the port with the index of at, and is warm after it has its routes.
	tree := func(at ...int) string {
		var all []string
		for i, name := range []string{"a", "b", "c"} {
			all = append(all, listener(name, ports[at[i]], fmt.Sprintf("rds: {route_config_name: %s, config_source: {ads: {}}}", name)),
				document("envoy.config.route.v3.RouteConfiguration", `name: %q, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}]`, name))
		}
		return strings.Join(all, "---\n")
	}
	s := serveTree(t, map[string]string{"all.yaml": tree(0, 1, 2)})
	s.admin = envoytest.FreePort(t)
	s.start(t, "--grpc", "unix:"+s.socket)
	// wanted returns the configuration of an Envoy that reads the tree from files.
	wanted := func() map[string][]string {
		s.out = filepath.Join(t.TempDir(), "out")
		if _, stderr, exit := xdspub(t, "render", "--eds", "file", "--out", s.out, s.src); exit != 0 {
			t.Fatalf("exit status %d\n%s", exit, stderr)
		}
		e := envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t)})
		defer e.Stop(t)
		return configuration(t, e)
	}
	want := wanted()
	byFiles, envoys := s.bootstrap(t), make([]*envoytest.Envoy, len(transports))
	for i, k := range transports {
		bootstrap := bytes.Replace(s.served(t, byFiles, k), []byte(`"id":"envoy"`), fmt.Appendf(nil, `"id":%q`, k.name), 1)
		envoys[i] = envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap, Args: []string{"--drain-time-s", "1"}})
		s.runs(t, k, envoys[i], want)
	}
	move := func(at ...int) {
		t.Helper()
		s.write(t, "all.yaml", tree(at...))
		want := wanted()
		for i, k := range transports {
			s.runs(t, k, envoys[i], want)
			if refused := fmt.Sprintf("event=response-rejected node=%s ", k.name); k.aggregated && strings.Contains(s.server.Log(), refused) {
				t.Errorf("the Envoy by %s has refused a listener:\n%s", k.name, s.server.Log())
			}
		}
	}
	move(1, 2, 3) // a takes the port of b, b the port of c, and c the free port
	move(2, 3, 0)
	s.kill(t)
	s.write(t, "all.yaml", tree(0, 3, 1))
	s.start(t, "--grpc", "unix:"+s.socket)
	want = wanted()
	for i, k := range transports {
		s.runs(t, k, envoys[i], want)
	}
}
