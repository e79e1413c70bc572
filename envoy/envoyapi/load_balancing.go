package envoyapi

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// Load balancing policies that rules name.
const (
	ClusterProvidedPolicy    = protoreflect.FullName("envoy.extensions.load_balancing_policies.cluster_provided.v3.ClusterProvided")
	ClientSideWeightedPolicy = protoreflect.FullName("envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin")
	LoadAwareLocalityPolicy  = protoreflect.FullName("envoy.extensions.load_balancing_policies.load_aware_locality.v3.LoadAwareLocality")
	MaglevPolicy             = protoreflect.FullName("envoy.extensions.load_balancing_policies.maglev.v3.Maglev")
	OverrideHostPolicy       = protoreflect.FullName("envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost")
	RingHashPolicy           = protoreflect.FullName("envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash")
	SubsetPolicy             = protoreflect.FullName("envoy.extensions.load_balancing_policies.subset.v3.Subset")
)

const loadBalancingPolicies = "envoy.load_balancing_policies"

// PickPolicy returns the policy that Envoy picks, which is the first policy that it knows, and the type of the
// policy; nil if Envoy knows none. Envoy ignores the other policies.
func (v *Version) PickPolicy(l *clusterv3.LoadBalancingPolicy) (*clusterv3.LoadBalancingPolicy_Policy, protoreflect.FullName) {
	for _, policy := range l.GetPolicies() {
		name := xds.PayloadType(policy.GetTypedExtensionConfig().GetTypedConfig())
		if _, ok := v.ExtensionOf(loadBalancingPolicies, name); ok {
			return policy, name
		}
	}
	return nil, ""
}

// HasNoPolicy reports whether Envoy knows none of the policies, but holds the types of all their configurations. If
// Envoy does not hold a type, another rule reports this type.
func (v *Version) HasNoPolicy(l *clusterv3.LoadBalancingPolicy) bool {
	for _, policy := range l.GetPolicies() {
		config := policy.GetTypedExtensionConfig()
		name := xds.PayloadType(config.GetTypedConfig())
		_, ok := v.ExtensionOf(loadBalancingPolicies, name)
		if ok || config.GetTypedConfig() != nil && !v.Holds(name) {
			return false
		}
	}
	return true
}

// IsPickedPolicy reports whether Envoy reads the load balancing policy that n is or stands in: Envoy must pick
// this policy and every policy around it.
func (v *Version) IsPickedPolicy(n *xds.Node) bool {
	for {
		policy, at := xds.Enclosing[*clusterv3.LoadBalancingPolicy_Policy](n)
		if at == nil {
			return true
		}
		policies, ok := at.Parent.Message.(*clusterv3.LoadBalancingPolicy)
		if picked, _ := v.PickPolicy(policies); ok && picked != policy {
			return false
		}
		n = at.Parent
	}
}
