package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"xdspub/render/publish"
	"xdspub/tools/envoytest"
)

// keptAlive is a connection for several requests, one after another.
type keptAlive struct {
	net.Conn
	read *bufio.Reader
}

func keepAlive(t *testing.T, port int) *keptAlive {
	t.Helper()
	c, err := net.Dial("tcp", address(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &keptAlive{c, bufio.NewReader(c)}
}

// ask sends a request over the connection.
func (c *keptAlive) ask(t *testing.T) string {
	t.Helper()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	response, err := http.ReadResponse(c.read, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// TestUndoneWhileDraining has Envoy accept one listener of a change, which routes to a new cluster, and refuse
// another listener. A connection that was opened before the rollback continues to work: its filter chain drains,
// and its cluster stays as long.
func TestUndoneWhileDraining(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	edge := envoytest.FreePort(t)
	busy, _ := takePort(t)
	before := documents(staticCluster("blue", blue.Port()), listener("edge", edge, "route_config: {"+hosts("blue")+"}"))
	s := newFixture(t, map[string]string{"edge.yaml": before}, "--trim-delay", "1s")
	heard := make(chan struct{}) // closed when xdspub may learn Envoy's reaction to the listeners
	target, err := url.Parse("http://" + address(s.admin))
	if err != nil {
		t.Fatal(err)
	}
	moved := func() bool {
		lds, err := os.ReadFile(filepath.Join(s.out, "lds/lds.json"))
		return err == nil && strings.Contains(string(lds), "green")
	}
	way := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if moved() {
			select {
			case <-heard:
			case <-r.Context().Done():
			}
		}
		way.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	direct := s.args
	s.args = append(slices.Clone(direct), confirmed(s.admin)...)
	s.startWatch(t)
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{"--drain-time-s", "15", "--parent-shutdown-time-s", "16"}})
	s.took(t)
	becomes(t, "the page", "200 blue", func() string { return ask(t, request{port: edge}).text })

	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	s.args = append(slices.Clone(direct), "--ack-timeout", "1h", "--envoy-admin", proxy.URL)
	s.beginWatch(t)
	s.write(t, "edge.yaml", documents(staticCluster("blue", blue.Port()), edsCluster("green"), endpoints("green", green.Port()),
		listener("edge", edge, "route_config: {"+hosts("green")+"}"), listener("busy", busy, "route_config: {"+hosts("green")+"}")))
	becomes(t, "the listener that is taken", "200 green", func() string { return ask(t, request{port: edge}).text })
	kept := keepAlive(t, edge)
	if got := kept.ask(t); got != "200 green" {
		t.Fatalf("the connection gets %q", got)
	}
	close(heard)
	s.watch.WaitLog(t, "event=rolled-back ")
	becomes(t, "the page", "200 blue", func() string { return ask(t, request{port: edge}).text })
	if s.envoy.Stat(t, "listener_manager.total_filter_chains_draining") == 0 {
		t.Error("nothing drains")
	}
	if got := kept.ask(t); got != "200 green" {
		t.Errorf("the connection that is kept gets %q", got)
	}
	content(t, s.reader(t))
	if m, err := publish.ReadManifest(s.out); err != nil || len(m.Retired) != 2 {
		t.Errorf("going %v, %v: want the cluster that came, and its endpoints", m.Retired, err)
	}
	envoytest.Eventually(t, patience, "what came goes", func() (bool, string) {
		stats := s.envoy.Stats(t, `^cluster_manager\.active_clusters$|^listener_manager\.total_filter_chains_draining$`)
		gone, drains := stats["cluster_manager.active_clusters"] == "1", stats["listener_manager.total_filter_chains_draining"] != "0"
		if gone && drains {
			t.Fatal("green is gone, and what uses it drains")
		}
		return gone && !s.exists("eds/green/eds.json"), fmt.Sprint(stats)
	})
}

// TestExtensionComesBack restores a filter of ECDS to which a draining listener subscribes, and which now calls a
// new cluster. The draining listener continues to work, and Envoy refuses nothing.
// planner.TestExtensionsAfterClusters shows that the cluster comes before the filter.
func TestExtensionComesBack(t *testing.T) {
	t.Parallel()
	web := envoytest.NewUpstream(t, "web")
	first, second := envoytest.FreePort(t), envoytest.FreePort(t)
	const authz = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz"
	with := func(port int, cluster string) string {
		return documents(staticCluster("web", web.Port()), staticCluster(cluster, web.Port()),
			extension("authz", fmt.Sprintf(`{"@type": type.googleapis.com/%s, failure_mode_allow: true, grpc_service: {envoy_grpc: {cluster_name: %q}}}`, authz, cluster)),
			listener("edge-"+cluster, port, "route_config: {"+hosts("web")+"}", "http_filters: ["+discovered("authz", authz)+", "+router+"]"))
	}
	s := startFixture(t, map[string]string{"edge.yaml": with(first, "one")}, "--allow-removal")
	becomes(t, "the page", "200 web", func() string { return ask(t, request{port: first}).text })
	kept := keepAlive(t, first)
	if got := kept.ask(t); got != "200 web" {
		t.Fatalf("the connection gets %q", got)
	}
	s.write(t, "edge.yaml", staticCluster("web", web.Port()))
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "the first listener", "refused", func() string { return listens(first) })
	s.write(t, "edge.yaml", with(second, "two"))
	becomes(t, "the second page", "200 web", func() string { return ask(t, request{port: second}).text })
	if got := kept.ask(t); got != "200 web" {
		t.Errorf("the connection that is kept gets %q", got)
	}
	content(t, s.envoy)
}
