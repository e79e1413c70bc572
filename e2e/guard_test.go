package e2e

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
	"xdspub/tools/unixhttp"
	"xdspub/watch/operator"
)

// TestGuard: a generator fails and writes a tree without listeners. A watch refuses the tree, each view says so, and
// Envoy keeps its listener.
func TestGuard(t *testing.T) {
	t.Parallel()
	port := envoytest.FreePort(t)
	edge, cluster := listener("edge", port, answering("edge")), staticCluster("web", 1)
	s := newFixture(t, map[string]string{"edge.yaml": edge, "web.yaml": cluster})
	s.http = filepath.Join(socketDir(t), "h.sock")
	envoytest.Binary(t)
	s.startWatch(t)
	s.startEnvoy(t)
	answers := func() string { return ask(t, request{port: port}).text }
	becomes(t, "the listener answers", "200 edge", answers)

	s.write(t, "edge.yaml", staticCluster("shop", 1))
	s.watch.WaitLog(t, "code=all-listeners-removed ")
	s.watch.WaitLog(t, "event=source-invalid ")
	stdout, stderr, exit := xdspub(t, "status", "--out", s.out, s.src)
	if exit != 1 || !strings.Contains(stdout, `the change removes all listeners (1): "edge"; all requests would fail`) {
		t.Error(exit, stdout, stderr)
	}
	response, err := unixhttp.Client(s.http).Get("http://watch/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if metrics, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(metrics), `code="all-listeners-removed"`) {
		t.Error(err, string(metrics))
	}
	if _, stderr, exit := xdspub(t, "render", "--dry-run", "--out", s.out, s.src); exit != 1 || !strings.Contains(stderr, "[all-listeners-removed]") {
		t.Error(exit, stderr)
	}
	if is := answers(); is != "200 edge" {
		t.Error(is)
	}

	s.write(t, "edge.yaml", edge)
	s.watch.WaitLog(t, "event=source-valid")
	s.write(t, "edge.yaml", strings.Replace(edge, `name: "edge"`, `name: "other"`, 1))
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "a listener of another name takes the address", "200 edge", answers)

	s.write(t, "edge.yaml", staticCluster("shop", 1))
	envoytest.Eventually(t, patience, "the change waits", func() (bool, string) {
		stdout, _, _ := xdspub(t, "status", "--out", s.out)
		return strings.Contains(stdout, `removes all listeners (1): "other"`), stdout
	})
	if stdout, exit := s.approve(t); exit != 0 || !strings.Contains(stdout, " is let through: snapshot ") {
		t.Error(exit, stdout)
	}
	envoytest.Eventually(t, patience, "Envoy has no listener", func() (bool, string) {
		is := s.envoy.Stat(t, "listener_manager.total_listeners_active")
		return is == 0, fmt.Sprint(is)
	})
}

// approve approves the change that waits, and returns the output and the exit status.
func (s *fixture) approve(t *testing.T) (output string, exit int) {
	t.Helper()
	d, err := operator.Read(s.out)
	if err != nil || d.Guarded == nil {
		t.Fatalf("no change waits: %+v, %v", d, err)
	}
	stdout, stderr, exit := xdspub(t, "approve", "--out", s.out, "--reason", "a test", d.Guarded.Change)
	return stdout + stderr, exit
}

// TestServedGuard: an edit of the constraints of a listener leaves the Envoys of one kind without any. A server refuses
// the edit if such an Envoy is connected, and names the kind.
func TestServedGuard(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	for _, k := range transports {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			prod, test := envoytest.FreePort(t), envoytest.FreePort(t)
			edges := func(first string) string {
				return documents(
					variant("edge", first, listener("edge", prod, answering("prod"))), variant("edge", "test", listener("edge", test, answering("test"))),
					staticCluster("web", 1))
			}
			s := serveTree(t, map[string]string{"edge.yaml": edges("prod")})
			s.start(t, "--grpc", "unix:"+s.socket, "--node-param", "env=metadata.env")
			s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, []byte("{node: {id: edge-1, cluster: fleet, metadata: {env: prod}}, dynamic_resources: {cds_config: {ads: {}}, lds_config: {ads: {}}}}"), k)})
			answers := func() string { return ask(t, request{port: prod}).text }
			becomes(t, "the listener answers", "200 prod", answers)
			s.write(t, "edge.yaml", edges("prodd"))
			s.server.WaitLog(t, `the change removes all listeners (1)`)
			s.server.WaitLog(t, "event=source-invalid ")
			if !strings.Contains(s.server.Log(), "this concerns a client with env=prod") {
				t.Error(s.server.Log())
			}
			stdout, _, exit := xdspub(t, "status", "--serve", "unix:"+s.socket)
			if exit != 1 || !strings.Contains(stdout, "[all-listeners-removed]") {
				t.Error(exit, stdout)
			}
			if removed := s.envoy.Stat(t, "listener_manager.listener_removed"); removed != 0 || answers() != "200 prod" {
				t.Errorf("%d listeners are removed, %s", removed, answers())
			}
			s.write(t, "edge.yaml", edges("prod"))
			s.server.WaitLog(t, "event=source-valid")
		})
	}
}

// answering returns a field of an HTTP connection manager that answers each request with a text.
func answering(text string) string {
	return fmt.Sprintf(`route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: %s}}}]}]}`, text)
}
