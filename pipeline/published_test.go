package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// forward is a cluster whose DNS cache other clusters, listeners and routes can share.
const forward = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: forward, connect_timeout: 1s, lb_policy: CLUSTER_PROVIDED, cluster_type: {name: forward, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig, dns_cache_config: {name: hosts}}}}`

// TestPublishedIsReadWhenAsked: of what is out, a reconcile reads clusters and listeners;
// the other files only where a rule has to compare with them.
func TestPublishedIsReadWhenAsked(t *testing.T) {
	routes, in := fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(listener, "a")
	s := newFixture(t, nil)
	for _, c := range []struct{ tree, want string }{
		{tree(blue, blueEndpoints, routes, in), "[cds/cds.json lds/lds.json]"},
		{tree(blue, blueEndpoints, forward, routes, in), "[cds/cds.json lds/lds.json rds/main/rds.json]"},
	} {
		s.tree(c.tree)
		s.publish()
		s.publish()
		if got := fmt.Sprint(slices.Sorted(maps.Keys(s.p.readOut))); got != c.want {
			t.Errorf("read %s, want %s", got, c.want)
		}
	}
}

// TestGoneIsForgotten: of files that were read and have gone, such as those of secrets, nothing
// is kept.
func TestGoneIsForgotten(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, blueEndpoints, forward, fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(listener, "a")))
	s.publish()
	s.publish()
	if _, read := s.p.readOut["rds/main/rds.json"]; !read {
		t.Fatal("the routes were not read")
	}
	s.tree(tree(blue, blueEndpoints, forward))
	s.publish()
	s.now = s.now.Add(time.Hour)
	s.publish() // trims
	s.publish()
	if got := fmt.Sprint(slices.Sorted(maps.Keys(s.p.readOut))); got != "[cds/cds.json lds/lds.json]" {
		t.Errorf("%s are kept", got)
	}
}
