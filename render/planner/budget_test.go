package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xdspub/render/planner"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
)

// edsClusters returns a file with n EDS clusters and their endpoints. config has further fields of each
// cluster.
func edsClusters(prefix string, n int, config string) string {
	var documents []string
	for i := range n {
		name := fmt.Sprintf("%s%d", prefix, i)
		documents = append(documents, strings.Replace(strings.ReplaceAll(fixture.Blue, "blue", name), "}", config+"}", 1), strings.ReplaceAll(fixture.BlueEndpoints, "blue", name))
	}
	return fixture.Tree(documents...)
}

func wantMode(s *fixture.Fixture, what, want string) {
	s.T.Helper()
	if got := s.Plan().Change.Manifest.EDSMode; got != want {
		s.T.Errorf("%s: mode %q, want %q", what, got, want)
	}
}

// TestBudgetOfWhatGoes checks that a retired cluster counts for the inotify budget, and that its file does not
// count again.
func TestBudgetOfWhatGoes(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(edsClusters("a", 110, ""))
	s.Publish()
	s.Tree(edsClusters("a", 100, ""))
	s.Publish()
	wantMode(s, "100 clusters, and 10 that go", "file")
	s.Tree(edsClusters("b", 9, ""))
	wantMode(s, "9 clusters, and 110 that go", "inline")

	// The old clusters still read files, and are trimmed later.
	s = fixture.New(t, nil)
	s.Tree(edsClusters("a", 70, ""))
	s.Publish()
	s.Tree(edsClusters("b", 70, ""))
	s.Publish()
	wantMode(s, "70 clusters, and 70 that go", "inline")
	s.Now = s.Now.Add(s.Options.TrimDelay)
	s.Publish()
	if got := len(s.Clusters()); got != 70 {
		t.Errorf("%d clusters are left, want 70", got)
	}
}

// TestBudgetOfWhatGetsWarm checks that a changed cluster with health checks counts twice, because the old
// cluster runs until the new one is warm. Envoy replaces other clusters at once.
func TestBudgetOfWhatGetsWarm(t *testing.T) {
	const checks = ", health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]"
	for _, test := range []struct{ config, want string }{
		{"", "file"},
		{checks, "inline"},
		{`, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context_sds_secret_config: {name: ca, sds_config: {api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: sds, stat_prefix: sds}}]}}}}}}`, "inline"},
	} {
		s := fixture.New(t, nil)
		s.Tree(edsClusters("a", 70, test.config))
		s.Publish()
		wantMode(s, "nothing changed"+test.config, "file")
		s.Tree(edsClusters("a", 70, test.config+", connect_timeout: 3s"))
		wantMode(s, "all changed"+test.config, test.want)
	}
}

// routed returns a listener and its route configuration, with RDS.
func routed(name string) []string {
	return []string{
		strings.NewReplacer("name: in,", "name: "+name+",", "route_config_name: main", "route_config_name: "+name).Replace(fmt.Sprintf(fixture.Listener, name)),
		strings.Replace(fmt.Sprintf(fixture.RoutesTo, "blue"), "name: main", "name: "+name, 1),
	}
}

// listeners returns n listeners on different ports, and a cluster with an endpoint file.
func listeners(n int) string {
	documents := []string{fixture.Blue, fixture.BlueEndpoints}
	for i := range n {
		pair := routed(fmt.Sprintf("l%d", i))
		pair[0] = strings.Replace(pair[0], "10000", fmt.Sprint(10000+i), 1)
		documents = append(documents, pair...)
	}
	return fixture.Tree(documents...)
}

// setBudget starts a new pipeline with another budget.
func setBudget(s *fixture.Fixture, n int) {
	s.Restart(func(o *pipeline.Options) { o.InotifyBudget = n })
}

// TestBudgetOfRoutes checks that routes go inline into their listeners if inlining endpoints does not save
// enough, stay inline, and become files again when the budget is raised.
func TestBudgetOfRoutes(t *testing.T) {
	if testing.Short() {
		t.Skip("plans for 119 listeners a dozen times")
	}
	s := fixture.New(t, nil)
	want := func(what, codes string, recorded int) {
		t.Helper()
		if got := s.Findings(); got != codes {
			t.Errorf("%s: findings %q, want %q", what, got, codes)
		}
		if got := s.Plan().Change.Manifest.InlineRoutesBudget; got != recorded {
			t.Errorf("%s: the record says %d, want %d", what, got, recorded)
		}
	}
	s.Tree(listeners(117))
	want("as many as fit", "", 0)
	s.Tree(listeners(118))
	want("one more: its endpoints are enough", "endpoints-inlined", 0)
	s.Tree(listeners(119))
	want("two more: just the routes, for the endpoints need not then", "routes-inlined", 120)
	s.Publish()
	if got := s.Plan().Change.Manifest.EDSMode; got != "file" {
		t.Errorf("endpoints are %s", got)
	}
	want("again", "", 120)
	s.Tree(listeners(3))
	want("not back by itself", "", 120)
	setBudget(s, 100)
	want("nor by less", "", 120)
	setBudget(s, 121)
	want("back by a budget that is raised", "", 0)
	s.Publish()
	setBudget(s, 120)
	want("and to be lost again", "", 0)

	for _, test := range []struct {
		mode planner.EndpointsMode
		want string
	}{{planner.EndpointsFile, "routes-inlined"}, {planner.EndpointsInline, "routes-inlined"}} {
		s := fixture.New(t, func(o *pipeline.Options) { o.Endpoints = test.mode })
		s.Tree(listeners(119))
		if got := s.Findings(); got != test.want {
			t.Errorf("--eds=%s: findings %q, want %q", test.mode, got, test.want)
		}
	}
	s = fixture.New(t, nil)
	s.Tree(listeners(119) + strings.Replace(edsClusters("c", 119, ""), "all.yaml", "more.yaml", 1))
	want("both are too many", "endpoints-inlined routes-inlined", 120)
}

// TestBudgetOfWhatDrains checks that the old filter chain of a changed listener counts until it has drained,
// because it keeps its subscription to routes.
func TestBudgetOfWhatDrains(t *testing.T) {
	s := fixture.New(t, func(o *pipeline.Options) { o.InotifyBudget = 5 })
	source := func(asked string, more ...string) string {
		a, b := routed("a"), routed("b")
		return fixture.Tree(append([]string{fixture.Blue, fixture.BlueEndpoints, strings.Replace(a[0], "route_config_name: a", "route_config_name: "+asked, 1), a[1], b[1]}, more...)...)
	}
	want := func(what, codes string) {
		t.Helper()
		if got := s.Findings(); got != codes {
			t.Errorf("%s: findings %q, want %q", what, got, codes)
		}
	}
	s.Tree(source("a"))
	s.Publish()
	s.Tree(source("b"))
	want("both files, of a that drains and b", "")
	s.Publish()
	s.Tree(source("b", fixture.Layer))
	want("a layer is one too many", "inotify-budget")
	s.Now = s.Now.Add(9 * time.Minute)
	want("a drains", "inotify-budget")
	s.Now = s.Now.Add(2 * time.Minute)
	want("a has drained", "")
	s.Publish()

	s.Tree(source("a", fixture.Layer))
	setBudget(s, 6)
	s.Publish()
	s.Tree(source("b", fixture.Layer))
	s.Publish()
	if got := s.Plan().Change.Manifest.DrainingWatches; len(got) != 1 || !strings.Contains(got[0].Watch, "/xds/rds/a/rds.json") {
		t.Errorf("draining after a change there and back: %v, want a", got)
	}

	out := s.Plan().Change.Manifest.Published
	s.Now = s.Now.Add(11 * time.Minute)
	if m := s.Plan().Change.Manifest; len(m.DrainingWatches) > 0 || !m.Published.Equal(out) {
		t.Errorf("the record of what has drained: %v, and the snapshot went out at %v, want %v", m.DrainingWatches, m.Published, out)
	}
}

// TestInotifyBudget checks that endpoints go inline when the budget is exceeded, and stay inline.
func TestInotifyBudget(t *testing.T) {
	many := func(prefix string, n int) string {
		var documents []string
		for i := range n {
			name := fmt.Sprintf("%s%d", prefix, i)
			documents = append(documents, strings.ReplaceAll(fixture.Blue, "blue", name), strings.ReplaceAll(fixture.BlueEndpoints, "blue", name))
		}
		return fixture.Tree(documents...)
	}
	s := fixture.New(t, nil)
	s.Tree(many("a", 70))
	s.Publish()
	if got := s.Plan().Change.Manifest.EDSMode; got != "file" {
		t.Fatalf("70 clusters: mode %q", got)
	}
	// Old and new subscriptions count together, because one too many would abort a live Envoy.
	s.Tree(many("b", 70))
	if got := s.Plan().Change.Manifest.EDSMode; got != "inline" {
		t.Fatalf("70 clusters replaced by 70 others: mode %q", got)
	}
	s.Publish()
	s.Tree(many("c", 3))
	if got := s.Plan().Change.Manifest.EDSMode; got != "inline" {
		t.Errorf("auto went back by itself: mode %q", got)
	}

	s = fixture.New(t, func(o *pipeline.Options) { o.Endpoints = planner.EndpointsFile })
	s.Tree(many("a", 119))
	checked, err := s.Checked.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, list, err := s.P.Plan(s.T.Context(), checked.Snapshot, s.Now)
	if err != nil || len(list) != 1 || list[0].Code != "inotify-budget" || !strings.Contains(list[0].Message, "need 121 ") {
		t.Errorf("119 clusters by file: %v, %v", list, err)
	}
}
