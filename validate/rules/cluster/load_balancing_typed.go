package cluster

import (
	"fmt"
	"math/big"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	loadawarev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/load_aware_locality/v3"
	overridehostv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	subsetv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/subset/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// ringSizes is implemented by both forms of the settings of ring hash.
type ringSizes interface {
	GetMinimumRingSize() *wrapperspb.UInt64Value
	GetMaximumRingSize() *wrapperspb.UInt64Value
}

func checkRingSizes(p *validate.Pass, path xds.Path, m ringSizes) {
	const defaultLeast, defaultMost = 1024, 8 << 20
	least, most := uint64(defaultLeast), uint64(defaultMost)
	field := "maximum_ring_size"
	if set := m.GetMinimumRingSize(); set != nil {
		least, field = set.GetValue(), "minimum_ring_size"
	}
	if set := m.GetMaximumRingSize(); set != nil {
		most = set.GetValue()
	}
	if least > most {
		p.Report(validate.Finding{
			Check:   "ring-size",
			Path:    path.Field(field),
			Message: fmt.Sprintf("minimum_ring_size %d exceeds maximum_ring_size %d", least, most),
			Help:    fmt.Sprintf("raise maximum_ring_size; the defaults are %d and %d", defaultLeast, defaultMost),
		})
	}
}

// tableSize is implemented by both forms of the settings of Maglev.
type tableSize interface {
	GetTableSize() *wrapperspb.UInt64Value
}

func checkTableSize(p *validate.Pass, path xds.Path, m tableSize) {
	size := m.GetTableSize()
	if size.GetValue() == 1 { // Envoy treats 1 as a prime
		p.Report(validate.Finding{
			Check:   "table-size",
			Path:    path.Field("table_size"),
			Message: "table_size 1 of maglev crashes Envoy with the first endpoint",
			Help:    fmt.Sprintf("write a prime far above the number of endpoints, such as the default %d", defaultTableSize),
		})
		return
	}
	if size == nil || new(big.Int).SetUint64(size.GetValue()).ProbablyPrime(0) {
		return
	}
	p.Report(validate.Finding{
		Check:   "table-size",
		Path:    path.Field("table_size"),
		Message: fmt.Sprintf("table_size %d of maglev is not a prime number", size.GetValue()),
		Help:    fmt.Sprintf("write %d, the next prime number", nextPrime(size.GetValue())),
	})
}

// defaultTableSize is Envoy's default size of a Maglev table.
const defaultTableSize = 65537

func nextPrime(n uint64) uint64 {
	for !new(big.Int).SetUint64(n).ProbablyPrime(0) {
		n++
	}
	return n
}

// selector is implemented by both forms of a subset selector.
type selector interface {
	GetKeys() []string
	GetFallbackKeysSubset() []string
}

func checkSelector(p *validate.Pass, path xds.Path, s selector, keysSubset bool) {
	keys, fallback := distinct(s.GetKeys()), distinct(s.GetFallbackKeysSubset())
	f := validate.Finding{Check: "subset-keys", Path: path.Field("fallback_keys_subset")}
	stranger := slices.IndexFunc(fallback, func(key string) bool { return !slices.Contains(keys, key) })
	switch {
	case !keysSubset && len(fallback) > 0:
		f.Message = "fallback_keys_subset needs fallback_policy KEYS_SUBSET"
		f.Help = "set fallback_policy: KEYS_SUBSET, or remove it"
	case !keysSubset:
		return
	case len(fallback) == 0:
		f.Message = "fallback_policy KEYS_SUBSET needs fallback_keys_subset"
		f.Help = "list some of the selector's keys: " + facts.Quoted(keys)
	case stranger >= 0:
		f.Message = fmt.Sprintf("fallback_keys_subset has %q, which is not a key of the selector", fallback[stranger])
		f.Help = "the selector's keys are " + facts.Quoted(keys)
	case len(fallback) == len(keys):
		f.Message = "fallback_keys_subset lists all keys of the selector"
		f.Help = "remove at least one of them"
	default:
		return
	}
	p.Report(f)
}

func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func checkSubsetPolicy(p *validate.Pass, n *xds.Node, m *subsetv3.Subset) {
	for i, s := range m.GetSubsetSelectors() {
		checkSelector(p, n.Path().Field("subset_selectors").Index(i), s, s.GetFallbackPolicy() == subsetv3.Subset_LbSubsetSelector_KEYS_SUBSET)
	}
}

// checkHandsOver checks the inner policy of a policy.
func checkHandsOver(p *validate.Pass, path xds.Path, inner *clusterv3.LoadBalancingPolicy) {
	_, picked := p.Envoy.PickPolicy(inner)
	switch {
	case p.Envoy.HasNoPolicy(inner):
		p.Report(validate.Finding{
			Check:   "inner-policy",
			Path:    path,
			Message: "the policy has no inner policy that Envoy knows",
			Help:    "list one, such as envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin",
		})
	case picked == envoyapi.ClusterProvidedPolicy:
		p.Report(validate.Finding{
			Check:   "inner-policy",
			Path:    path,
			Message: "the inner policy ClusterProvided crashes Envoy",
			Help:    "write another policy, such as envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin",
		})
	}
}

func checkLoadAware(p *validate.Pass, n *xds.Node, m *loadawarev3.LoadAwareLocality) {
	path := n.Path().Field("endpoint_picking_policy")
	switch _, picked := p.Envoy.PickPolicy(m.GetEndpointPickingPolicy()); picked {
	case envoyapi.LoadAwareLocalityPolicy, envoyapi.ClusterProvidedPolicy:
		p.Report(validate.Finding{
			Check:   "endpoint-picking-policy",
			Path:    path,
			Message: fmt.Sprintf("LoadAwareLocality can't have %s as its endpoint_picking_policy", picked.Name()),
			Help:    "write another policy, such as envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin",
		})
	default:
		checkHandsOver(p, path, m.GetEndpointPickingPolicy())
	}
}

func checkWrrLocality(p *validate.Pass, n *xds.Node, m *wrrlocalityv3.WrrLocality) {
	path := n.Path().Field("endpoint_picking_policy")
	_, picked := p.Envoy.PickPolicy(m.GetEndpointPickingPolicy())
	if picked == envoyapi.ClientSideWeightedPolicy {
		return
	}
	f := validate.Finding{
		Check: "endpoint-picking-policy", Path: path,
		Help: "write " + string(envoyapi.ClientSideWeightedPolicy) + ", the only policy that WrrLocality supports",
	}
	switch {
	case picked != "":
		f.Message = fmt.Sprintf("WrrLocality can't have %s as its endpoint_picking_policy", picked.Name())
	case p.Envoy.HasNoPolicy(m.GetEndpointPickingPolicy()):
		f.Message = "WrrLocality has no endpoint_picking_policy"
	default:
		return // reported by unknown-type
	}
	p.Report(f)
}

func checkOverrideHost(p *validate.Pass, n *xds.Node, m *overridehostv3.OverrideHost) {
	if m.GetFallbackPolicy() != nil {
		checkHandsOver(p, n.Path().Field("fallback_policy"), m.GetFallbackPolicy())
	}
	for i, source := range m.GetOverrideHostSources() {
		if (source.GetHeader() != "") == (source.GetMetadata() != nil) {
			p.Report(validate.Finding{
				Check:   "override-host-source",
				Path:    n.Path().Field("override_host_sources").Index(i),
				Message: "an override_host_source needs exactly one of header and metadata",
				Help:    "write one entry for each source",
			})
		}
	}
}
