package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// edsClusters are n EDS clusters with their endpoints, one file. config stands for
// further fields of each cluster.
func edsClusters(prefix string, n int, config string) string {
	var documents []string
	for i := range n {
		name := fmt.Sprintf("%s%d", prefix, i)
		documents = append(documents, strings.Replace(strings.ReplaceAll(blue, "blue", name), "}", config+"}", 1), strings.ReplaceAll(blueEndpoints, "blue", name))
	}
	return tree(documents...)
}

func (s *fixture) wantMode(what, want string) {
	s.t.Helper()
	if got := s.plan().Change.Manifest.EDSMode; got != want {
		s.t.Errorf("%s: mode %q, want %q", what, got, want)
	}
}

// TestBudgetOfWhatGoes: a cluster that waits for its trim counts, and the file that
// it reads does not count beside it.
func TestBudgetOfWhatGoes(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(edsClusters("a", 110, ""))
	s.publish()
	s.tree(edsClusters("a", 100, ""))
	s.publish()
	s.wantMode("100 clusters, and 10 that go", "file")
	s.tree(edsClusters("b", 9, ""))
	s.wantMode("9 clusters, and 110 that go", "inline")

	// The old clusters are by file still, and leave in their time.
	s = newFixture(t, nil)
	s.tree(edsClusters("a", 70, ""))
	s.publish()
	s.tree(edsClusters("b", 70, ""))
	s.publish()
	s.wantMode("70 clusters, and 70 that go", "inline")
	s.now = s.now.Add(s.p.options.TrimDelay)
	s.publish()
	if got := len(s.clusters()); got != 70 {
		t.Errorf("%d clusters are left, want 70", got)
	}
}

// TestBudgetOfWhatGetsWarm: a cluster with health checks that changes runs until
// the new one is warm, and both subscribe. Any other is replaced at once.
func TestBudgetOfWhatGetsWarm(t *testing.T) {
	const checks = ", health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]"
	for _, test := range []struct{ config, want string }{
		{"", "file"},
		{checks, "inline"},
		{`, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context_sds_secret_config: {name: ca, sds_config: {api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: sds, stat_prefix: sds}}]}}}}}}`, "inline"},
	} {
		s := newFixture(t, nil)
		s.tree(edsClusters("a", 70, test.config))
		s.publish()
		s.wantMode("nothing changed"+test.config, "file")
		s.tree(edsClusters("a", 70, test.config+", connect_timeout: 3s"))
		s.wantMode("all changed"+test.config, test.want)
	}
}

// routed returns a listener and its routes, asked for by name.
func routed(name string) []string {
	return []string{
		strings.NewReplacer("name: in,", "name: "+name+",", "route_config_name: main", "route_config_name: "+name).Replace(fmt.Sprintf(listener, name)),
		strings.Replace(fmt.Sprintf(routesTo, "blue"), "name: main", "name: "+name, 1),
	}
}

// listeners are n of them, on ports of their own, with one cluster by file.
func listeners(n int) string {
	documents := []string{blue, blueEndpoints}
	for i := range n {
		pair := routed(fmt.Sprintf("l%d", i))
		pair[0] = strings.Replace(pair[0], "10000", fmt.Sprint(10000+i), 1)
		documents = append(documents, pair...)
	}
	return tree(documents...)
}

// findings returns those of a plan.
func (s *fixture) findings() string {
	s.t.Helper()
	checked, err := s.p.Check(s.t.Context())
	if err != nil || !checked.Accepted() {
		s.t.Fatal(err, checked)
	}
	_, list, err := s.p.Plan(s.t.Context(), checked.Snapshot, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	var codes []string
	for _, d := range list {
		codes = append(codes, d.Code)
	}
	return strings.Join(codes, " ")
}

// TestBudgetOfRoutes: routes go into their listeners where endpoints inline do not
// save enough, stay there, and come back when the budget is raised.
func TestBudgetOfRoutes(t *testing.T) {
	if testing.Short() {
		t.Skip("plans for 119 listeners a dozen times")
	}
	s := newFixture(t, nil)
	want := func(what, codes string, recorded int) {
		t.Helper()
		if got := s.findings(); got != codes {
			t.Errorf("%s: findings %q, want %q", what, got, codes)
		}
		if got := s.plan().Change.Manifest.InlineRoutesBudget; got != recorded {
			t.Errorf("%s: the record says %d, want %d", what, got, recorded)
		}
	}
	s.tree(listeners(117))
	want("as many as fit", "", 0)
	s.tree(listeners(118))
	want("one more: its endpoints are enough", "endpoints-inlined", 0)
	s.tree(listeners(119))
	want("two more: just the routes, for the endpoints need not then", "routes-inlined", 120)
	s.publish()
	if got := s.plan().Change.Manifest.EDSMode; got != "file" {
		t.Errorf("endpoints are %s", got)
	}
	want("again", "", 120)
	s.tree(listeners(3))
	want("not back by itself", "", 120)
	s.p.options.InotifyBudget = 100
	want("nor by less", "", 120)
	s.p.options.InotifyBudget = 121
	want("back by a budget that is raised", "", 0)
	s.publish()
	s.p.options.InotifyBudget = 120
	want("and to be lost again", "", 0)

	for _, test := range []struct {
		mode EndpointsMode
		want string
	}{{EndpointsFile, "routes-inlined"}, {EndpointsInline, "routes-inlined"}} {
		s := newFixture(t, func(o *Options) { o.Endpoints = test.mode })
		s.tree(listeners(119))
		if got := s.findings(); got != test.want {
			t.Errorf("--eds=%s: findings %q, want %q", test.mode, got, test.want)
		}
	}
	s = newFixture(t, nil)
	s.tree(listeners(119) + strings.Replace(edsClusters("c", 119, ""), "all.yaml", "more.yaml", 1))
	want("both are too many", "endpoints-inlined routes-inlined", 120)
}

// TestBudgetOfWhatDrains: the filter chain that a listener had holds its routes'
// subscription until it has drained, though the file is there to stay.
func TestBudgetOfWhatDrains(t *testing.T) {
	s := newFixture(t, func(o *Options) { o.InotifyBudget = 5 })
	source := func(asked string, more ...string) string {
		a, b := routed("a"), routed("b")
		return tree(append([]string{blue, blueEndpoints, strings.Replace(a[0], "route_config_name: a", "route_config_name: "+asked, 1), a[1], b[1]}, more...)...)
	}
	want := func(what, codes string) {
		t.Helper()
		if got := s.findings(); got != codes {
			t.Errorf("%s: findings %q, want %q", what, got, codes)
		}
	}
	s.tree(source("a"))
	s.publish()
	s.tree(source("b"))
	want("both files, of a that drains and b", "")
	s.publish()
	s.tree(source("b", layer))
	want("a layer is one too many", "inotify-budget")
	s.now = s.now.Add(9 * time.Minute)
	want("a drains", "inotify-budget")
	s.now = s.now.Add(2 * time.Minute)
	want("a has drained", "")
	s.publish()

	s.tree(source("a", layer))
	s.p.options.InotifyBudget = 6
	s.publish()
	s.tree(source("b", layer))
	s.publish()
	if got := s.plan().Change.Manifest.DrainingWatches; len(got) != 1 || !strings.Contains(got[0].Watch, "/xds/rds/a/rds.json") {
		t.Errorf("draining after a change there and back: %v, want a", got)
	}

	out := s.plan().Change.Manifest.Published
	s.now = s.now.Add(11 * time.Minute)
	if m := s.plan().Change.Manifest; len(m.DrainingWatches) > 0 || !m.Published.Equal(out) {
		t.Errorf("the record of what has drained: %v, and the snapshot went out at %v, want %v", m.DrainingWatches, m.Published, out)
	}
}
