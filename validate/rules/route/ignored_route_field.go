package route

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var ignoredRouteField = &validate.Rule{
	Code:     "ignored-route-field",
	Severity: diag.Warning,
	Doc: `A route sets a field that has no effect in Envoy.

Envoy 1.40.0 accepts these fields without implementing them: filter_action and
non_forwarding_action (requests get 503), and retry_policy_typed_config (nothing is retried).
use_hash_policy of weighted clusters needs a hash_policy in the same route; without one Envoy
selects the cluster at random.`,
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.Route",
		"envoy.config.route.v3.RouteAction",
		"envoy.config.route.v3.VirtualHost",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		ignored := func(field xds.Path, consequence, help string) {
			p.Report(validate.Finding{Path: n.Path().Join(field), Message: fmt.Sprintf("%s has no effect: %s", field, consequence), Help: help})
		}
		const retryHelp = "use retry_policy"
		switch m := n.Message.(type) {
		case *routev3.Route:
			const help = "use route, redirect or direct_response"
			switch m.GetAction().(type) {
			case *routev3.Route_FilterAction:
				ignored("filter_action", "requests get 503", help)
			case *routev3.Route_NonForwardingAction:
				ignored("non_forwarding_action", "requests get 503", help)
			}
		case *routev3.RouteAction:
			if m.GetRetryPolicyTypedConfig() != nil {
				ignored("retry_policy_typed_config", "nothing is retried", retryHelp)
			}
			if m.GetWeightedClusters().GetUseHashPolicy().GetValue() && len(m.GetHashPolicy()) == 0 {
				ignored("weighted_clusters.use_hash_policy", "the route has no hash_policy", "add a hash_policy beside weighted_clusters")
			}
		case *routev3.VirtualHost:
			if m.GetRetryPolicyTypedConfig() != nil {
				ignored("retry_policy_typed_config", "nothing is retried", retryHelp)
			}
		}
	},
}
