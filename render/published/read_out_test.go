package published_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"xdspub/render/planner"
	"xdspub/render/published"
	"xdspub/tools/fixture"
)

// forward is a cluster whose DNS cache other clusters, listeners and routes can share.
const forward = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: forward, connect_timeout: 1s, lb_policy: CLUSTER_PROVIDED, cluster_type: {name: forward, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig, dns_cache_config: {name: hosts}}}}`

// reread returns a Reader of the output directory of a Fixture, and a function that plans with this Reader.
func reread(s *fixture.Fixture) (r *published.Reader, plan func()) {
	r = published.New(published.Options{Dir: s.Options.Out, EnvoyPath: s.Options.EnvoyPath, Format: s.Options.Format})
	p := planner.New(r, planner.Options{InotifyBudget: s.Options.InotifyBudget})
	return r, func() {
		s.T.Helper()
		checked, err := s.Checked.Check(s.T.Context())
		if err != nil {
			s.T.Fatal(err)
		}
		if _, list, err := p.Plan(s.T.Context(), checked.Snapshot, s.Now); err != nil || list.HasErrors() {
			s.T.Fatal(err, list)
		}
	}
}

// TestPublishedIsReadWhenAsked checks that a reconcile reads the published clusters and listeners, and other
// published files only if a rule compares with them.
func TestPublishedIsReadWhenAsked(t *testing.T) {
	routes, in := fmt.Sprintf(fixture.RoutesTo, "blue"), fmt.Sprintf(fixture.Listener, "a")
	s := fixture.New(t, nil)
	r, plan := reread(s)
	for _, c := range []struct{ tree, want string }{
		{fixture.Tree(fixture.Blue, fixture.BlueEndpoints, routes, in), "[cds/cds.json lds/lds.json]"},
		{fixture.Tree(fixture.Blue, fixture.BlueEndpoints, forward, routes, in), "[cds/cds.json lds/lds.json rds/main/rds.json]"},
	} {
		s.Tree(c.tree)
		s.Publish()
		plan()
		if got := fmt.Sprint(r.ReadOut()); got != c.want {
			t.Errorf("read %s, want %s", got, c.want)
		}
	}
}

// TestGoneIsForgotten checks that a Reader keeps nothing of removed files, such as files of secrets.
func TestGoneIsForgotten(t *testing.T) {
	s := fixture.New(t, nil)
	r, plan := reread(s)
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, forward, fmt.Sprintf(fixture.RoutesTo, "blue"), fmt.Sprintf(fixture.Listener, "a")))
	s.Publish()
	plan()
	if !slices.Contains(r.ReadOut(), "rds/main/rds.json") {
		t.Fatal("the routes were not read")
	}
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, forward))
	s.Publish()
	s.Now = s.Now.Add(time.Hour)
	s.Publish() // trims
	plan()
	if got := fmt.Sprint(r.ReadOut()); got != "[cds/cds.json lds/lds.json]" {
		t.Errorf("%s are kept", got)
	}
}
