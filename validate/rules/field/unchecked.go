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

// isUnchecked reports whether n is a configuration that Envoy does not hold against the
// constraints of its API. Most load balancing policies are.
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

// checkedAnyway reports whether a fault in an unchecked configuration is refused all
// the same: a hash policy without its kind crashes Envoy, the missing or empty address of a DNS server
// is malformed where Envoy asks it, and the period of LoadAwareLocality is looked at by code
// of its own.
func checkedAnyway(v *envoyapi.Version, n *xds.Node, at xds.Path) bool {
	return hashPolicy.MatchString(string(at)) || resolverAddress.MatchString(string(at)) && facts.AsksResolver(v, n) || n.Name() == envoyapi.LoadAwareLocalityPolicy && at == n.Path().Field("weight_update_period")
}

// ofPickingPolicy reports whether a place belongs to the policy that LoadAwareLocality
// hands over to, of which load-balancing says what is missing.
func ofPickingPolicy(n *xds.Node, at xds.Path) bool {
	return n.Name() == envoyapi.LoadAwareLocalityPolicy && under(at, []xds.Path{n.Path().Field("endpoint_picking_policy")})
}

// under reports whether path equals, or stands below, an element of tops.
func under(path xds.Path, tops []xds.Path) bool {
	for _, top := range tops {
		if rest, ok := strings.CutPrefix(string(path), string(top)); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}
