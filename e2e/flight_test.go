package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
)

// TestInFlight: Envoy holds a request in a filter before the router while the routes change to another cluster. The
// request still reaches its old cluster, although no listener drains, and Envoy has confirmed the whole change.
func TestInFlight(t *testing.T) {
	t.Parallel()
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port := envoytest.FreePort(t)
	const slow = `{name: fault, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, delay: {header_delay: {}, percentage: {numerator: 100}}}}`
	color := func(name string, upstream *envoytest.Upstream) string {
		return documents(staticCluster(name, upstream.Port()), routes("routes", name))
	}
	s := startConfirmed(t, map[string]string{
		"edge.yaml":  listener("edge", port, rds("routes"), "http_filters: ["+slow+", "+router+"]"),
		"color.yaml": color("blue", blue),
	}, "--trim-delay", "4s")
	page := request{port: port}
	becomes(t, "the page", "200 blue", func() string { return ask(t, page).text })

	held := make(chan string, 1)
	hold := func() { held <- ask(t, request{port: port, header: "x-envoy-fault-delay-request: 2000"}).text }
	go hold()
	envoytest.Eventually(t, patience, "Envoy has the request", func() (bool, string) {
		select {
		case <-held: // the request was answered before the change
			go hold()
		default:
		}
		n := s.envoy.Stat(t, "http.edge.downstream_rq_active")
		return n == 1, fmt.Sprint(n, " requests")
	})
	s.edit(t, "color.yaml", func(string) string { return color("green", green) })
	becomes(t, "the page", "200 green", func() string { return ask(t, page).text })
	if got := <-held; got != "200 blue" {
		t.Errorf("the request that was under way gets %q", got)
	}
	s.watch.WaitLog(t, "event=trimmed")
	content(t, s.envoy)
}

// TestDrainEnds: while a filter chain drains, its cluster stays, whenever a watch makes a pass. The chain begins to
// drain when the new listener is published, which is later than the beginning of the change, because the new
// cluster first has to be warm.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	blue := envoytest.NewUpstream(t, "blue")
	green := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(700 * time.Millisecond):
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(green.Close)
	port := envoytest.FreePort(t)
	to := func(name, cluster string) string {
		return documents(cluster, listener("edge", port, "route_config: {"+hosts(name)+"}"))
	}
	s := newFixture(t, map[string]string{"edge.yaml": to("blue", staticCluster("blue", blue.Port()))}, "--trim-delay", "1s")
	s.args = append(s.args, confirmed(s.admin)...)
	s.startWatch(t)
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{"--drain-time-s", "3", "--parent-shutdown-time-s", "4"}})
	s.took(t)

	const healthy = `health_checks: [{timeout: 5s, interval: 5s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]`
	s.edit(t, "edge.yaml", func(string) string {
		return to("green", staticCluster("green", green.Listener.Addr().(*net.TCPAddr).Port, healthy))
	})
	envoytest.Eventually(t, patience, "blue goes", func() (bool, string) {
		s.watch.Signal(t, syscall.SIGHUP)
		stats := s.envoy.Stats(t, `^cluster_manager\.active_clusters$|^listener_manager\.total_filter_chains_draining$`)
		gone, drains := stats["cluster_manager.active_clusters"] == "1", stats["listener_manager.total_filter_chains_draining"] != "0"
		if gone && drains {
			t.Fatal("blue is gone, and what uses it drains")
		}
		return gone, fmt.Sprint(stats)
	})
	if n := s.envoy.Stat(t, "listener_manager.listener_in_place_updated"); n != 1 {
		t.Errorf("%d listeners were changed in place, and their filter chains drained; want 1", n)
	}
}

// TestScopesWhileDraining: a removed listener asks for its scopes as long as it drains. Envoy applies and serves
// changed scopes.
func TestScopesWhileDraining(t *testing.T) {
	t.Parallel()
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port := envoytest.FreePort(t)
	to := func(name string) string {
		return documents(staticCluster("blue", blue.Port()), staticCluster("green", green.Port()), routes("by-scope", name), scope("scope-a", "a", "by-scope"))
	}
	s := newFixture(t, map[string]string{"routes.yaml": to("blue"), "edge.yaml": listener("edge", port, srds("tenants"))}, "--allow-removal")
	s.args = append(s.args, confirmed(s.admin)...)
	s.startWatch(t)
	s.startEnvoy(t)
	s.took(t, orphan)
	page := request{port: port, header: "x-tenant: a"}
	becomes(t, "the page", "200 blue", func() string { return ask(t, page).text })
	client := &http.Client{Timeout: patience, Transport: &http.Transport{}}
	kept := func() string { return askWith(t, client, page).text }
	if got := kept(); got != "200 blue" {
		t.Fatalf("the connection that is kept gets %q", got)
	}

	s.remove(t, "edge.yaml")
	s.watch.WaitLog(t, "event=published ")
	s.edit(t, "routes.yaml", func(string) string { return to("green") })
	becomes(t, "the connection that was kept", "200 green", kept) // Envoy's workers are later than its ACK
	if refused := s.refusals(t); len(refused) > 0 {
		t.Errorf("Envoy refuses it: %v", refused)
	}
	content(t, s.envoy)
}
