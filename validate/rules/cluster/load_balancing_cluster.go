package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

func checkClusterBalancing(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	switch {
	case c.GetLoadBalancingPolicy() != nil:
		checkBesidePolicy(p, n, c)
		if p.Envoy.HasNoPolicy(c.GetLoadBalancingPolicy()) {
			if xds.Constraints(c.GetLoadBalancingPolicy()) != nil {
				return // reported by field-constraint
			}
			p.Report(validate.Finding{
				Check:   "no-policy",
				Path:    n.Path().Field("load_balancing_policy"),
				Message: "load_balancing_policy has no policy that Envoy knows",
				Help:    "list one, such as envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin",
			})
			return
		}
	case c.GetLbPolicy() == clusterv3.Cluster_LOAD_BALANCING_POLICY_CONFIG:
		p.Report(validate.Finding{
			Check:   "no-policy",
			Path:    n.Path().Field("lb_policy"),
			Message: "lb_policy LOAD_BALANCING_POLICY_CONFIG needs load_balancing_policy",
			Help:    "add load_balancing_policy, or set another lb_policy",
		})
		return
	default:
		checkLbPolicy(p, n, c)
	}
	checkProvided(p, n, c)
}

// checkBesidePolicy checks the older fields of a cluster with a load_balancing_policy.
func checkBesidePolicy(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	conflict := func(path xds.Path, field string) {
		p.Report(validate.Finding{
			Check:   "beside-policy",
			Path:    path.Field(field),
			Message: fmt.Sprintf("%s is not allowed beside load_balancing_policy", field),
			Help:    "move it to the typed_config of the policy",
		})
	}
	if c.GetLbSubsetConfig() != nil {
		conflict(n.Path(), "lb_subset_config")
	}
	common := n.Path().Field("common_lb_config")
	switch c.GetCommonLbConfig().GetLocalityConfigSpecifier().(type) {
	case *clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_:
		conflict(common, "locality_weighted_lb_config")
	case *clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig_:
		conflict(common, "zone_aware_lb_config")
	}
	if c.GetCommonLbConfig().GetConsistentHashingLbConfig() != nil {
		conflict(common, "consistent_hashing_lb_config")
	}
	if field, of := lbConfig(c); field != "" && of != clusterv3.Cluster_CLUSTER_PROVIDED {
		p.Report(validate.Finding{
			Check:   "unused-settings",
			Path:    n.Path().Field(field),
			Message: fmt.Sprintf("%s has no effect beside load_balancing_policy", field),
			Help:    "move it to the typed_config of the policy",
			Warning: true,
		})
	}
}

// lbConfig returns the field of the cluster that has settings for an lb_policy, and this policy. field is "" if the
// cluster has no such settings.
func lbConfig(c *clusterv3.Cluster) (field string, of clusterv3.Cluster_LbPolicy) {
	switch c.GetLbConfig().(type) {
	case *clusterv3.Cluster_RingHashLbConfig_:
		return "ring_hash_lb_config", clusterv3.Cluster_RING_HASH
	case *clusterv3.Cluster_MaglevLbConfig_:
		return "maglev_lb_config", clusterv3.Cluster_MAGLEV
	case *clusterv3.Cluster_OriginalDstLbConfig_:
		return "original_dst_lb_config", clusterv3.Cluster_CLUSTER_PROVIDED
	case *clusterv3.Cluster_LeastRequestLbConfig_:
		return "least_request_lb_config", clusterv3.Cluster_LEAST_REQUEST
	case *clusterv3.Cluster_RoundRobinLbConfig_:
		return "round_robin_lb_config", clusterv3.Cluster_ROUND_ROBIN
	}
	return "", 0
}

// checkLbPolicy checks a cluster without a load_balancing_policy.
func checkLbPolicy(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	if field, of := lbConfig(c); field != "" && of != c.GetLbPolicy() {
		p.Report(validate.Finding{
			Check:   "unused-settings",
			Path:    n.Path().Field(field),
			Message: fmt.Sprintf("%s has no effect with lb_policy %s", field, c.GetLbPolicy()),
			Help:    fmt.Sprintf("set lb_policy: %s, or remove the settings", of),
			Warning: true,
		})
	}
	if xds.Constraints(c.GetRingHashLbConfig()) == nil && xds.Constraints(c.GetMaglevLbConfig()) == nil { // otherwise reported by field-constraint
		switch c.GetLbPolicy() {
		case clusterv3.Cluster_RING_HASH:
			checkRingSizes(p, n.Path().Field("ring_hash_lb_config"), c.GetRingHashLbConfig())
		case clusterv3.Cluster_MAGLEV:
			checkTableSize(p, n.Path().Field("maglev_lb_config"), c.GetMaglevLbConfig())
		}
	}
	checkSubsetConfig(p, n, c)
	if c.GetCommonLbConfig().GetConsistentHashingLbConfig().GetUseHostnameForHashing() && c.GetType() != clusterv3.Cluster_STRICT_DNS {
		p.Report(validate.Finding{
			Check:   "hostname-hashing",
			Path:    n.Path().Field("common_lb_config").Field("consistent_hashing_lb_config").Field("use_hostname_for_hashing"),
			Message: fmt.Sprintf("a cluster of type %s can't have use_hostname_for_hashing", p.Envoy.ClusterTypeText(c)),
			Help:    "set the type to STRICT_DNS, or use RingHash or Maglev in load_balancing_policy, which support it with any type",
		})
	}
}

func checkSubsetConfig(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	path := n.Path().Field("lb_subset_config")
	subset := c.GetLbSubsetConfig()
	if c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED && len(subset.GetSubsetSelectors()) > 0 {
		p.Report(validate.Finding{
			Check:   "subset-provided",
			Path:    path,
			Message: "lb_subset_config is not allowed with lb_policy CLUSTER_PROVIDED",
			Help:    "remove it: a cluster that chooses its endpoints itself does not support subsets",
		})
		return
	}
	for i, s := range subset.GetSubsetSelectors() {
		checkSelector(p, path.Field("subset_selectors").Index(i), s, s.GetFallbackPolicy() == clusterv3.Cluster_LbSubsetConfig_LbSubsetSelector_KEYS_SUBSET)
	}
	if subset.GetLocalityWeightAware() && c.GetCommonLbConfig().GetLocalityWeightedLbConfig() == nil {
		p.Report(validate.Finding{
			Check:   "locality-weight-aware",
			Path:    path.Field("locality_weight_aware"),
			Message: "locality_weight_aware needs locality_weighted_lb_config",
			Help:    "set common_lb_config: {locality_weighted_lb_config: {}}",
		})
	}
}

// checkProvided checks whether the policy CLUSTER_PROVIDED is set for exactly the cluster types that choose
// endpoints themselves.
func checkProvided(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	k := p.Envoy.ClusterKindOf(c)
	if k.Factory == "" || k.Factory == "envoy.clusters.dynamic_modules" {
		return // reported by cluster-type, or the module decides
	}
	field, policy, provided := "lb_policy", c.GetLbPolicy().String(), c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED
	balances := k.Balances || k.Factory == "envoy.clusters.redis" && provided
	asksLbPolicy := k.Factory == "envoy.cluster.original_dst" || k.Factory == "envoy.clusters.reverse_connection"
	if !asksLbPolicy || provided {
		if _, picked := p.Envoy.PickPolicy(c.GetLoadBalancingPolicy()); picked != "" {
			field, policy, provided = "load_balancing_policy", string(picked.Name()), picked == envoyapi.ClusterProvidedPolicy
		}
	}
	f := validate.Finding{Check: "cluster-provided", Path: n.Path().Field(field)}
	switch {
	case balances == provided:
		return
	case balances:
		f.Message = fmt.Sprintf("a cluster of type %s chooses its endpoints itself and can't have %s %s", p.Envoy.ClusterTypeText(c), field, policy)
		f.Help = "set lb_policy: CLUSTER_PROVIDED, and remove other policies from load_balancing_policy"
	case k.Factory == "envoy.clusters.redis":
		f.Message = "a redis cluster with the policy ClusterProvided also needs lb_policy: CLUSTER_PROVIDED"
		f.Help = "set lb_policy: CLUSTER_PROVIDED"
	default:
		f.Message = fmt.Sprintf("a cluster of type %s does not choose its endpoints itself and can't have %s %s", p.Envoy.ClusterTypeText(c), field, policy)
		f.Help = "write another policy, such as ROUND_ROBIN"
	}
	p.Report(f)
}
