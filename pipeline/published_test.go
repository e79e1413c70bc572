package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// TestPublishedIsReadWhenAsked: of what is out, a reconcile reads clusters and listeners;
// the other files only where a rule has to compare with them.
func TestPublishedIsReadWhenAsked(t *testing.T) {
	routes, in := fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(listener, "a")
	const forward = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: forward, connect_timeout: 1s, lb_policy: CLUSTER_PROVIDED, cluster_type: {name: forward, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig, dns_cache_config: {name: hosts}}}}`
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
