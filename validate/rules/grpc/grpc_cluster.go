package grpc

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	ringhashv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var grpcCluster = &validate.Rule{
	Code: "grpc-cluster",
	Doc: `gRPC rejects a cluster.

A cluster is of type EDS, and has no eds_config or one of ads or self; of type LOGICAL_DNS with
one endpoint that has a host name and a port; or of the cluster_type envoy.clusters.aggregate with
the names of others. An EDS cluster with a name that begins with xdstp: needs a service_name.

lb_policy must be ROUND_ROBIN, LEAST_REQUEST with a choice_count of 2 or more, or RING_HASH with
XX_HASH, also where a load_balancing_policy takes its place. In that, gRPC takes the first policy
that it knows, and needs one: client_side_weighted_round_robin, least_request, pick_first,
ring_hash, round_robin, wrr_locality, or a TypedStruct with the name of a policy that the client
has registered. lrs_server must be self. The percentages of outlier_detection are 100 at most, its
times 0 or more (gRFC A27, A37, A42, A48, A50, A52). gRPC in C++ rejects LEAST_REQUEST.
An aggregate cluster can't serve Envoys as well: they want lb_policy CLUSTER_PROVIDED there.`,
	Checks: []diag.Check{
		{Name: "discovery", Summary: "gRPC does not support the way that the cluster finds its endpoints."},
		{Name: "endpoint", Summary: "The endpoint of a LOGICAL_DNS cluster is not one that gRPC uses."},
		{Name: "load-balancing", Summary: "gRPC does not support the load balancing."},
		{Name: "lrs-server", Summary: "lrs_server is not self."},
		{Name: "outlier-detection", Summary: "A percentage or a time of outlier_detection is out of range."},
	},
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Cluster"},
	Node: func(p *validate.Pass, n *xds.Node) {
		c := n.Message.(*clusterv3.Cluster)
		report := func(check validate.CheckName, path xds.Path, what, help string) {
			p.Report(validate.Finding{Check: check, Path: path, Message: "gRPC rejects the cluster: " + what, Help: help})
		}
		checkDiscovery(report, c)
		checkPolicy(report, c)
		if l := c.GetLrsServer(); l != nil && l.GetSelf() == nil {
			report("lrs-server", "lrs_server", "it reports its load to its own management server alone", "write lrs_server: {self: {}}, or remove it")
		}
		checkOutliers(report, c.GetOutlierDetection())
	},
}

func checkDiscovery(report reject, c *clusterv3.Cluster) {
	switch custom := c.GetClusterType(); {
	case custom == nil && c.GetType() == clusterv3.Cluster_EDS:
		if source := c.GetEdsClusterConfig().GetEdsConfig(); source.GetConfigSourceSpecifier() != nil && !xds.FromSnapshot(source) {
			report("discovery", "eds_cluster_config.eds_config", "it gets endpoints by ads or self alone", "write eds_cluster_config: {eds_config: {ads: {}}}")
		}
		if strings.HasPrefix(c.GetName(), "xdstp:") && c.GetEdsClusterConfig().GetServiceName() == "" {
			report("discovery", "eds_cluster_config", "a cluster with an xdstp: name needs a service_name", "add the name of its endpoints")
		}
	case custom == nil && c.GetType() == clusterv3.Cluster_LOGICAL_DNS:
		checkHost(report, c)
	case custom.GetName() == "envoy.clusters.aggregate":
		if m, ok := xds.Unpack(custom.GetTypedConfig()).(*aggregatev3.ClusterConfig); !ok || len(m.GetClusters()) == 0 {
			report("discovery", "cluster_type", "an aggregate cluster names no clusters", "add typed_config with the names of clusters")
		}
	case custom != nil:
		report("discovery", "cluster_type", fmt.Sprintf("it does not support the "+
			"cluster_type %q", custom.GetName()), "use EDS, LOGICAL_DNS or envoy.clusters.aggregate")
	default:
		report("discovery", "type", fmt.Sprintf("it does not support "+
			"clusters of type %s", c.GetType()), "use EDS, LOGICAL_DNS or the cluster_type envoy.clusters.aggregate")
	}
}

func checkHost(report reject, c *clusterv3.Cluster) {
	localities := c.GetLoadAssignment().GetEndpoints()
	if len(localities) != 1 || len(localities[0].GetLbEndpoints()) != 1 {
		report("endpoint", "load_assignment", "a LOGICAL_DNS cluster needs exactly one endpoint", "write one endpoint with the host name and the port")
		return
	}
	path := xds.Path("load_assignment.endpoints[0].lb_endpoints[0].endpoint.address")
	switch s := localities[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress(); {
	case s.GetAddress() == "" || s.GetPortValue() == 0:
		report("endpoint", path, "the endpoint has no socket_address with a host name and a port_value", "add them")
	case s.GetResolverName() != "":
		report("endpoint", path.Field("socket_address").Field("resolver_name"), "the endpoint has a resolver_name", "remove it")
	}
}

func checkPolicy(report reject, c *clusterv3.Cluster) {
	switch c.GetLbPolicy() {
	case clusterv3.Cluster_ROUND_ROBIN:
	case clusterv3.Cluster_LEAST_REQUEST:
		if n := c.GetLeastRequestLbConfig().GetChoiceCount(); n != nil && n.GetValue() < 2 {
			report("load-balancing", "least_request_lb_config.choice_count", fmt.Sprintf("choice_count is %d", n.GetValue()), "write 2 or more")
		}
	case clusterv3.Cluster_RING_HASH:
		if f := c.GetRingHashLbConfig().GetHashFunction(); f != clusterv3.Cluster_RingHashLbConfig_XX_HASH {
			report("load-balancing", "ring_hash_lb_config.hash_function", fmt.Sprintf("it does not support the hash function %s", f), "use XX_HASH")
		}
	default:
		report("load-balancing", "lb_policy", fmt.Sprintf("it does not support the "+
			"lb_policy %s", c.GetLbPolicy()), "use ROUND_ROBIN, LEAST_REQUEST or RING_HASH")
	}
	if c.GetLoadBalancingPolicy() != nil {
		checkPolicies(report, "load_balancing_policy", c.GetLoadBalancingPolicy(), 0)
	}
}

// maxPolicyDepth is the largest number of load balancing policies inside each other (gRFC A52).
const maxPolicyDepth = 16

// checkPolicies checks the first policy of a list that gRPC knows. depth is the number of policies around the list.
func checkPolicies(report reject, path xds.Path, l *clusterv3.LoadBalancingPolicy, depth int) {
	if depth >= maxPolicyDepth {
		report("load-balancing", path, fmt.Sprintf("policies contain each other more than %d deep", maxPolicyDepth), "nest fewer")
		return
	}
	for i, policy := range l.GetPolicies() {
		config := policy.GetTypedExtensionConfig().GetTypedConfig()
		at := path.Field("policies").Index(i).Field("typed_extension_config").Field("typed_config")
		switch xds.PayloadType(config) {
		case "envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality":
			m, _ := xds.Unpack(config).(*wrrlocalityv3.WrrLocality)
			checkPolicies(report, at.Field("endpoint_picking_policy"), m.GetEndpointPickingPolicy(), depth+1)
			return
		case "envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash":
			m, _ := xds.Unpack(config).(*ringhashv3.RingHash)
			if f := m.GetHashFunction(); f != ringhashv3.RingHash_XX_HASH {
				report("load-balancing", at.Field("hash_function"), fmt.Sprintf("it does not support the hash function %s", f), "use XX_HASH")
			}
			return
		case "envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin",
			"envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest",
			"envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst",
			"envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin":
			return
		}
		if name := xds.NameInURL(config.GetTypeUrl()); name == "xds.type.v3.TypedStruct" || name == "udpa.type.v1.TypedStruct" {
			return // a policy that the client may have by its own code
		}
	}
	report("load-balancing", path, "it knows none of the policies", "add one that it knows, such as round_robin in wrr_locality")
}

func checkOutliers(report reject, o *clusterv3.OutlierDetection) {
	path := xds.Path("outlier_detection")
	for _, percent := range []struct {
		field string
		value *wrapperspb.UInt32Value
	}{
		{"max_ejection_percent", o.GetMaxEjectionPercent()},
		{"enforcing_success_rate", o.GetEnforcingSuccessRate()},
		{"failure_percentage_threshold", o.GetFailurePercentageThreshold()},
		{"enforcing_failure_percentage", o.GetEnforcingFailurePercentage()},
	} {
		if percent.value.GetValue() > 100 {
			report("outlier-detection", path.Field(percent.field),
				fmt.Sprintf("%s is %d", percent.field, percent.value.GetValue()), "write a percentage from 0 to 100")
		}
	}
	for _, d := range []struct {
		field string
		value *durationpb.Duration
	}{
		{"interval", o.GetInterval()},
		{"base_ejection_time", o.GetBaseEjectionTime()},
		{"max_ejection_time", o.GetMaxEjectionTime()},
	} {
		if d.value != nil && (d.value.CheckValid() != nil || d.value.AsDuration() < 0) {
			report("outlier-detection", path.Field(d.field), fmt.Sprintf("%s is negative or out of range", d.field), "write a time such as 10s")
		}
	}
}
