package planner_test

import (
	"testing"

	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
)

// TestIdentity checks that the id of a snapshot depends only on the tree, and that the published bytes and the
// held snapshots also depend on the delivery.
func TestIdentity(t *testing.T) {
	const tree = `-- tree.yaml --
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c}
`
	planFor := func(change func(*pipeline.Options)) *planner.Plan {
		s := fixture.New(t, change)
		s.Tree(tree)
		return s.Plan()
	}
	first := planFor(func(*pipeline.Options) {})
	for name, tt := range map[string]struct {
		change   func(*pipeline.Options)
		delivery bool // whether the delivery is the same
	}{
		"the same":   {func(*pipeline.Options) {}, true},
		"format":     {func(o *pipeline.Options) { o.Format = render.Binary }, false}, // its paths differ
		"envoy path": {func(o *pipeline.Options) { o.EnvoyPath = "/elsewhere" }, false},
		"inline":     {func(o *pipeline.Options) { o.Endpoints = planner.EndpointsInline }, false},
	} {
		other := planFor(tt.change)
		if other.ID != first.ID || other.Change.Manifest.Snapshot != first.ID {
			t.Errorf("%s: the id is %s, want %s", name, other.ID, first.ID)
		}
		if is := other.Delivery == first.Delivery; is != tt.delivery {
			t.Errorf("%s: the delivery is the same: %v", name, is)
		}
	}
	old := publish.Refused{Held: []publish.Refusal{{Snapshot: first.Delivery}}} // older records have the delivery as the id
	if old.Holds(first.ID, first.Delivery) == nil || old.Holds(first.ID, "other") != nil {
		t.Error("an older record does not hold what it held")
	}
	held := publish.Refused{Held: []publish.Refusal{{Snapshot: first.ID, Delivery: first.Delivery}}}
	if held.Holds(first.ID, first.Delivery) == nil || held.Holds(first.ID, "other") != nil {
		t.Error("a record holds another delivery")
	}
}
