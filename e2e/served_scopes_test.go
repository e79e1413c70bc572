package e2e

import (
	"path/filepath"
	"testing"

	"xdspub/tools/envoytest"
)

// TestServedScopesReturn removes a listener with scopes, and adds it again after Envoy has connected again. Envoy
// asks for scopes when it connects, and by delta ADS does not ask again when the listener comes.
func TestServedScopesReturn(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	s := serveTree(t, map[string]string{
		"scoped.yaml": listener("scoped", envoytest.FreePort(t), srds("tenants")),
		"scopes.yaml": document("envoy.config.route.v3.RouteConfiguration", `name: one, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}]`) + "---\n" + scope("a", "a", "one"),
	})
	s.admin, s.out = envoytest.FreePort(t), filepath.Join(t.TempDir(), "out")
	s.start(t, "--grpc", "unix:"+s.socket, "--allow-removal")
	if _, stderr, exit := xdspub(t, "render", "--eds", "file", "--out", s.out, s.src); exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, stderr)
	}
	bootstrap := s.bootstrap(t)
	fresh := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
	want := configuration(t, fresh)
	fresh.Stop(t)
	all := t
	for _, k := range transports {
		t.Run(k.name, func(t *testing.T) {
			envoy := envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, bootstrap, k), Args: []string{"--drain-time-s", "1"}})
			s.runs(t, k, envoy, want)
			text := s.read(t, "scoped.yaml")
			s.remove(t, "scoped.yaml")
			envoytest.Eventually(t, patience, "the listener is gone", func() (bool, string) {
				is := configuration(t, envoy)
				return len(is["dynamic_listeners"])+len(is["dynamic_scoped_route_configs"]) == 0, ""
			})
			s.kill(all)
			s.start(all, "--grpc", "unix:"+s.socket, "--allow-removal") // all, since the next subtest needs the server, too
			s.write(t, "scoped.yaml", text)
			s.runs(t, k, envoy, want)
			envoy.Stop(t)
		})
	}
}
