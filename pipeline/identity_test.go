package pipeline

import (
	"testing"

	"xdspub/publish"
	"xdspub/render"
)

// A snapshot's id depends on the tree alone; what goes out, and what is held, on how it is
// delivered as well.
func TestIdentity(t *testing.T) {
	const tree = `-- tree.yaml --
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c}
`
	planFor := func(change func(*Options)) *Plan {
		s := newFixture(t, change)
		s.tree(tree)
		return s.plan()
	}
	first := planFor(func(*Options) {})
	for name, tt := range map[string]struct {
		change   func(*Options)
		delivery bool // is the same
	}{
		"the same":   {func(*Options) {}, true},
		"format":     {func(o *Options) { o.Format = render.Binary }, false}, // its paths are others
		"envoy path": {func(o *Options) { o.EnvoyPath = "/elsewhere" }, false},
		"inline":     {func(o *Options) { o.Endpoints = EndpointsInline }, false},
	} {
		other := planFor(tt.change)
		if other.ID != first.ID || other.Change.Manifest.Snapshot != first.ID {
			t.Errorf("%s: the id is %s, want %s", name, other.ID, first.ID)
		}
		if is := other.delivery == first.delivery; is != tt.delivery {
			t.Errorf("%s: the delivery is the same: %v", name, is)
		}
	}
	old := publish.Refused{Held: []publish.Refusal{{Snapshot: first.delivery}}} // which older records have as the id
	if old.Holds(first.ID, first.delivery) == nil || old.Holds(first.ID, "other") != nil {
		t.Error("an older record does not hold what it held")
	}
	held := publish.Refused{Held: []publish.Refusal{{Snapshot: first.ID, Delivery: first.delivery}}}
	if held.Holds(first.ID, first.delivery) == nil || held.Holds(first.ID, "other") != nil {
		t.Error("a record holds another delivery")
	}
}
