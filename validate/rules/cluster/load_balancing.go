package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dynamicforwardproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	loadawarev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/load_aware_locality/v3"
	maglevv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	overridehostv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	ringhashv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	subsetv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/subset/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var loadBalancing = &validate.Rule{
	Code: "load-balancing",
	Doc: `A cluster's load balancing settings are invalid or conflict.

From load_balancing_policy Envoy uses the first policy that it knows, and rejects a list
without one. Beside it, lb_subset_config and the locality, zone and hashing fields of
common_lb_config are rejected, and lb_policy and its settings have no effect (a warning).

ORIGINAL_DST, aggregate, composite, dynamic_forward_proxy and reverse_connection clusters choose
their endpoints themselves and need CLUSTER_PROVIDED. Other cluster types refuse the policy, except
redis, which supports both. ORIGINAL_DST and reverse_connection need it in lb_policy, even beside a
load_balancing_policy. A policy that delegates to CLUSTER_PROVIDED crashes Envoy.

minimum_ring_size (1024 by default) must not exceed maximum_ring_size, and the table_size of
maglev must be a prime. A subset selector may have fallback_keys_subset with KEYS_SUBSET
only, and they must be some but not all of its keys. locality_weight_aware needs
locality_weighted_lb_config. use_hostname_for_hashing needs the type STRICT_DNS.`,
	Checks: []diag.Check{
		{Name: "beside-policy", Summary: "A field is not allowed beside load_balancing_policy."},
		{Name: "cluster-provided", Summary: "CLUSTER_PROVIDED does not fit the type of the cluster."},
		{Name: "endpoint-picking-policy", Summary: "A policy can't have this endpoint_picking_policy."},
		{Name: "hostname-hashing", Summary: "A cluster of this type can't hash by hostnames."},
		{Name: "inner-policy", Summary: "A policy delegates to a missing policy, or to a policy that crashes Envoy."},
		{Name: "locality-weight-aware", Summary: "locality_weight_aware needs locality_weighted_lb_config."},
		{Name: "no-policy", Summary: "load_balancing_policy is missing, or has no policy that Envoy knows."},
		{Name: "override-host-source", Summary: "An override_host_source has not exactly one of header and metadata."},
		{Name: "ring-size", Summary: "minimum_ring_size exceeds maximum_ring_size."},
		{Name: "subset-keys", Summary: "The keys and the fallback of a subset selector do not fit."},
		{Name: "subset-provided", Summary: "A cluster with its own choice of endpoints has lb_subset_config."},
		{Name: "table-size", Summary: "The table_size of maglev is not a prime, or 1."},
		{Name: "unused-settings", Summary: "Settings of another policy have no effect."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.cluster.v3.Cluster",
		"envoy.extensions.clusters.dynamic_forward_proxy.v3.SubClustersConfig",
		"envoy.extensions.load_balancing_policies.load_aware_locality.v3.LoadAwareLocality",
		"envoy.extensions.load_balancing_policies.maglev.v3.Maglev",
		"envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost",
		"envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash",
		"envoy.extensions.load_balancing_policies.subset.v3.Subset",
		"envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			checkClusterBalancing(p, n, m)
			return
		case *dynamicforwardproxyv3.SubClustersConfig:
			if m.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED {
				p.Report(validate.Finding{
					Check:   "cluster-provided",
					Path:    n.Path().Field("lb_policy"),
					Message: "the sub-clusters of a dynamic forward proxy can't have lb_policy CLUSTER_PROVIDED",
					Help:    "write another policy, such as ROUND_ROBIN",
				})
			}
			return
		}
		if !p.Envoy.IsPickedPolicy(n) {
			return
		}
		switch m := n.Message.(type) {
		case *loadawarev3.LoadAwareLocality:
			checkLoadAware(p, n, m)
		case *maglevv3.Maglev:
			checkTableSize(p, n.Path(), m)
		case *overridehostv3.OverrideHost:
			checkOverrideHost(p, n, m)
		case *ringhashv3.RingHash:
			checkRingSizes(p, n.Path(), m)
		case *subsetv3.Subset:
			checkHandsOver(p, n.Path().Field("subset_lb_policy"), m.GetSubsetLbPolicy())
			checkSubsetPolicy(p, n, m)
		case *wrrlocalityv3.WrrLocality:
			checkWrrLocality(p, n, m)
		}
	},
}
