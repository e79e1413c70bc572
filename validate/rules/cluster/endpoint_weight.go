package cluster

import (
	"fmt"
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	loadawarev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/load_aware_locality/v3"
	subsetv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/subset/v3"
	"google.golang.org/protobuf/encoding/prototext"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// checkEndpointWeights checks the endpoints of a cluster whose load balancer adds up weights. The endpoints stand
// in the cluster, or in an assignment of this Snapshot.
func checkEndpointWeights(p *validate.LookupPass, n *xds.Node, c *clusterv3.Cluster) {
	if !hashes(p.Envoy, c) {
		return
	}
	r, path, assignment := assignmentOf(p, n, c)
	if !mayOverflow(p.Snapshot, assignment) {
		return
	}
	add := weights{
		snapshot:     p.Snapshot,
		report:       func(f validate.Finding) { f.Resource, f.Warning = r, p.Envoy.ResolvesInDNS(c); p.Report(f) },
		ofHosts:      make(map[uint32]uint64),
		ofLocalities: make(map[uint32]uint64),
		included:     make(map[uint32]map[string]uint64),
		reported:     make(map[uint32]bool),
		firstOnly:    r != p.Resource,
		seen:         make(map[string]bool),
	}
	for i, locality := range assignment.GetEndpoints() {
		add.locality(path.Field("endpoints").Index(i), locality)
	}
}

// mayOverflow reports whether the weights of all priorities together exceed the limit. Otherwise the exact check is
// not necessary.
func mayOverflow(v validate.View, a *endpointv3.ClusterLoadAssignment) bool {
	var hosts, places uint64
	for _, l := range a.GetEndpoints() {
		places += uint64(l.GetLoadBalancingWeight().GetValue())
		for _, e := range facts.EndpointsOf(v, facts.Place{}, l) {
			hosts += facts.WeightOf(e.LbEndpoint)
		}
	}
	return max(hosts, places) > math.MaxUint32
}

// weights adds up the weights of the endpoints and of the localities, by priority.
type weights struct {
	snapshot              validate.View
	report                func(validate.Finding)
	ofHosts, ofLocalities map[uint32]uint64
	included              map[uint32]map[string]uint64 // the weight that ofLocalities includes for a locality; of several, Envoy takes the last
	reported              map[uint32]bool
	firstOnly             bool // skip an address that occurred before, as Envoy does for EDS
	seen                  map[string]bool
}

func (w *weights) locality(path xds.Path, l *endpointv3.LocalityLbEndpoints) {
	at := l.GetPriority()
	for _, e := range facts.EndpointsOf(w.snapshot, facts.Place{}, l) {
		if w.firstOnly {
			key := prototext.MarshalOptions{}.Format(e.GetEndpoint().GetAddress())
			if w.seen[key] {
				continue
			}
			w.seen[key] = true
		}
		w.ofHosts[at] += facts.WeightOf(e.LbEndpoint)
	}
	if w.ofHosts[at] > math.MaxUint32 && !w.reported[at] {
		w.reported[at] = true
		field := "lb_endpoints"
		if l.GetLedsClusterLocalityConfig() != nil {
			field = "leds_cluster_locality_config"
		}
		w.report(validate.Finding{Path: path.Field(field), Message: tooHeavy(w.ofHosts[at]), Help: "write smaller weights; only their proportions count"})
	}
	if l.GetLocality() == nil || l.GetLoadBalancingWeight() == nil {
		return
	}
	key := prototext.MarshalOptions{}.Format(l.GetLocality())
	if w.included[at] == nil {
		w.included[at] = make(map[string]uint64)
	}
	weight := uint64(l.GetLoadBalancingWeight().GetValue())
	w.ofLocalities[at] += weight - w.included[at][key]
	w.included[at][key] = weight
	if w.ofLocalities[at] > math.MaxUint32 && !w.reported[at] {
		w.reported[at] = true
		w.report(validate.Finding{
			Path: path.Field("load_balancing_weight"), Message: tooHeavy(w.ofLocalities[at]),
			Help: "write smaller weights for the localities; only their proportions count",
		})
	}
}

// hashes reports whether the load balancer of a cluster adds up the weights of endpoints, as ring hash and Maglev
// do.
func hashes(v *envoyapi.Version, c *clusterv3.Cluster) bool {
	if c.GetLoadBalancingPolicy() != nil {
		return policyHashes(v, c.GetLoadBalancingPolicy())
	}
	return c.GetLbPolicy() == clusterv3.Cluster_RING_HASH || c.GetLbPolicy() == clusterv3.Cluster_MAGLEV
}

func policyHashes(v *envoyapi.Version, l *clusterv3.LoadBalancingPolicy) bool {
	policy, picked := v.PickPolicy(l)
	config := policy.GetTypedExtensionConfig().GetTypedConfig()
	switch picked {
	case envoyapi.MaglevPolicy, envoyapi.RingHashPolicy:
		return true
	case envoyapi.SubsetPolicy:
		m, ok := xds.Unpack(config).(*subsetv3.Subset)
		return ok && policyHashes(v, m.GetSubsetLbPolicy())
	case envoyapi.LoadAwareLocalityPolicy:
		m, ok := xds.Unpack(config).(*loadawarev3.LoadAwareLocality)
		return ok && policyHashes(v, m.GetEndpointPickingPolicy())
	}
	return false
}

func tooHeavy(sum uint64) string {
	return fmt.Sprintf("the weights add up to %d, the limit is %d", sum, uint32(math.MaxUint32))
}
