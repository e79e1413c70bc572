package transition

import (
	"fmt"
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var ledsWeightsChanged = &Rule{
	Code: "leds-weights-changed",
	Doc: `Weights of LEDS add up to too much while they change.

With RING_HASH or MAGLEV, the weights of the endpoints of one priority must add up to 4294967295 at
most. Envoy takes the collections of LEDS one after the other, in any order. If one change raises the
weights of a collection and lowers those of another one, Envoy may take the larger weights first. If
these exceed the limit together with the old weights of the other collection, Envoy ends ("The sum of
weights of all upstream hosts in a locality exceeds 4294967295"). Lower weights in one change, and
raise the others in the next one. In files the endpoints are in their assignment, and change at once.`,
	Run: func(p *Pass) error {
		published, err := p.Old.Of(xds.LocalityEndpoints)
		if err != nil || len(published) == 0 {
			return err
		}
		clusters, err := p.Old.Of(xds.Cluster)
		if err != nil {
			return err
		}
		was, is := collectionsOf(published), collectionsOf(p.New.Of(xds.LocalityEndpoints))
		for _, running := range clusters {
			c := p.New.Lookup(xds.Cluster, running.Name)
			if c == nil || !c.AsksFor(xds.Endpoints) || !mayHash(c.Message().(*clusterv3.Cluster)) {
				continue
			}
			for _, s := range c.Facts().Subscriptions {
				a := p.New.Lookup(s.Target, s.Name)
				if s.Target == xds.Endpoints && a != nil && p.New.Serves(s) && a.AsksFor(xds.LocalityEndpoints) {
					p.checkWeights(c, a, was, is)
				}
			}
		}
		return nil
	},
}

// mayHash reports whether the load balancer of a cluster may add up the weights of endpoints. If a cluster lists
// several policies, the version of Envoy decides which policy counts; mayHash looks at all of them.
func mayHash(c *clusterv3.Cluster) (found bool) {
	if c.GetLoadBalancingPolicy() == nil {
		return c.GetLbPolicy() == clusterv3.Cluster_RING_HASH || c.GetLbPolicy() == clusterv3.Cluster_MAGLEV
	}
	xds.Walk(c.GetLoadBalancingPolicy(), func(n *xds.Node) {
		found = found || n.Name() == envoyapi.RingHashPolicy || n.Name() == envoyapi.MaglevPolicy
	})
	return found
}

// collectionsOf returns the endpoints of LEDS by the name of their collection.
func collectionsOf(endpoints []*xds.Resource) map[string][]*xds.Resource {
	collections := make(map[string][]*xds.Resource)
	for _, r := range endpoints {
		name := r.Type.Group(r.Name)
		collections[name] = append(collections[name], r)
	}
	return collections
}

// checkWeights reports a cluster whose weights may add up to more than the limit while Envoy takes the collections
// of its assignment one by one. was and is are the collections before and after the change.
func (p *Pass) checkWeights(c, assignment *xds.Resource, was, is map[string][]*xds.Resource) {
	sums := make(map[uint32]uint64)
	falls, rises := make(map[uint32]bool), make(map[uint32]*xds.Resource)
	for _, l := range assignment.Message().(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
		at, leds := l.GetPriority(), l.GetLedsClusterLocalityConfig()
		if leds == nil || !xds.FromSnapshot(leds.GetLedsConfig()) {
			for _, e := range l.GetLbEndpoints() {
				sums[at] += facts.WeightOf(e)
			}
			continue
		}
		before, after := was[leds.GetLedsCollectionName()], is[leds.GetLedsCollectionName()]
		old, new := sumOf(before), sumOf(after)
		sums[at] += max(old, new)
		falls[at] = falls[at] || new < old
		if new > old {
			rises[at] = heaviest(after)
		}
	}
	for at, sum := range sums {
		if raised := rises[at]; sum > math.MaxUint32 && falls[at] && raised != nil {
			p.Report(Finding{
				Resource: raised, Path: "load_balancing_weight",
				Message: fmt.Sprintf("the weights of %s add up to %d until all endpoints are changed, the limit is %d: "+
					"Envoy would end", c.Key, sum, uint32(math.MaxUint32)),
				Help: "lower the other weights first, and raise this one in the next change",
			})
		}
	}
}

func sumOf(endpoints []*xds.Resource) (sum uint64) {
	for _, r := range endpoints {
		sum += facts.WeightOf(r.Message().(*endpointv3.LbEndpoint))
	}
	return sum
}

// heaviest returns the endpoint with the largest weight; of several such endpoints, the first.
func heaviest(endpoints []*xds.Resource) (found *xds.Resource) {
	var most uint64
	for _, r := range endpoints {
		if weight := facts.WeightOf(r.Message().(*endpointv3.LbEndpoint)); weight > most {
			found, most = r, weight
		}
	}
	return found
}

// shiftsWeights reports whether changes lower the weight of one endpoint of LEDS and raise the weight of another.
func shiftsWeights(changes []xds.Edited) bool {
	var falls, rises bool
	for _, e := range changes {
		if e.Key().Type != xds.LocalityEndpoints {
			continue
		}
		var was, is []*xds.Resource
		if e.Was != nil {
			was = append(was, e.Was)
		}
		if e.Is != nil {
			is = append(is, e.Is)
		}
		old, new := sumOf(was), sumOf(is)
		falls, rises = falls || new < old, rises || new > old
	}
	return falls && rises
}
