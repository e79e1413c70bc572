package field

import (
	"regexp"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// isUnchecked reports whether Envoy does not check the API constraints of the configuration at n. Most load
// balancing policies are unchecked.
func isUnchecked(v *envoyapi.Version, n *xds.Node) bool {
	if v.IsUnchecked(n.Name()) {
		return true
	}
	_, at := xds.Enclosing[*corev3.TypedExtensionConfig](n)
	if at == nil || at.Parent == nil || n.Field() != "envoy.config.core.v3.TypedExtensionConfig.typed_config" {
		return false
	}
	_, ok := at.Parent.Message.(*clusterv3.LoadBalancingPolicy_Policy)
	return ok && !v.IsCheckedPolicy(n.Name())
}

var (
	hashPolicy      = regexp.MustCompile(`\.hash_policy\[\d+\]$`)
	resolverAddress = regexp.MustCompile(`\.resolvers\[\d+\](\.socket_address\.address)?$`)
)

// checkedAnyway reports whether Envoy refuses a fault at the path at, although it does not check the constraints of
// the configuration. A hash policy without a kind crashes Envoy. A DNS server without an address is malformed, if
// Envoy uses the resolver. LoadAwareLocality checks its period by code of its own.
func checkedAnyway(v *envoyapi.Version, n *xds.Node, at xds.Path) bool {
	return hashPolicy.MatchString(string(at)) || resolverAddress.MatchString(string(at)) && facts.AsksResolver(v, n) ||
		n.Name() == envoyapi.LoadAwareLocalityPolicy && at == n.Path().Field("weight_update_period")
}

// ofPickingPolicy reports whether a path is inside the endpoint_picking_policy of LoadAwareLocality. The rule
// load-balancing reports faults of this policy.
func ofPickingPolicy(n *xds.Node, at xds.Path) bool {
	return n.Name() == envoyapi.LoadAwareLocalityPolicy && under(at, []xds.Path{n.Path().Field("endpoint_picking_policy")})
}

// under reports whether path is one of tops, or below one of tops.
func under(path xds.Path, tops []xds.Path) bool {
	for _, top := range tops {
		if rest, ok := strings.CutPrefix(string(path), string(top)); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}
