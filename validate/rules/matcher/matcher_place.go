package matcher

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// matcherPlace is a field with a matcher, and the inputs and actions that Envoy accepts in the field.
type matcherPlace struct {
	*envoyapi.MatcherPlace
	// noun is the noun for the matcher in messages.
	noun string
}

// nouns maps a field to the noun of its matcher, if the noun differs from the field's name.
var nouns = map[protoreflect.FullName]string{
	"envoy.config.route.v3.VirtualHost.matcher":                                                    "virtual host's matcher",
	"envoy.extensions.access_loggers.stats.v3.Config.Tag.rules":                                    "stat tag's matcher",
	"envoy.extensions.common.matching.v3.ExtensionWithMatcher.matcher":                             "filter's matcher",
	"envoy.extensions.common.matching.v3.ExtensionWithMatcher.xds_matcher":                         "filter's matcher",
	"envoy.extensions.common.matching.v3.ExtensionWithMatcherPerRoute.xds_matcher":                 "route's matcher",
	"envoy.extensions.filters.http.composite.v3.Composite.matcher":                                 "composite filter's matcher",
	"envoy.extensions.filters.http.composite.v3.CompositePerRoute.matcher":                         "composite filter's matcher",
	"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig.bucket_matchers": "bucket matcher",
	"envoy.extensions.filters.http.rbac.v3.RBAC.matcher":                                           "RBAC matcher of requests",
	"envoy.extensions.filters.http.rbac.v3.RBAC.shadow_matcher":                                    "RBAC matcher of requests",
	"envoy.extensions.filters.network.generic_proxy.v3.RouteConfiguration.routes":                  "generic_proxy matcher",
	"envoy.extensions.filters.network.generic_proxy.v3.VirtualHost.routes":                         "generic_proxy matcher",
	"envoy.extensions.filters.network.rbac.v3.RBAC.matcher":                                        "RBAC matcher of connections",
	"envoy.extensions.filters.network.rbac.v3.RBAC.shadow_matcher":                                 "RBAC matcher of connections",
	"envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.matcher":                             "udp_proxy matcher",
}

// placeOfMatcher returns the field of the matcher that the node is a part of. ok is false if the node is in no
// matcher.
func placeOfMatcher(v *envoyapi.Version, n *xds.Node) (matcherPlace, bool) {
	for ; n != nil; n = n.Parent {
		if taken := v.MatcherPlaceOf(n.Field()); taken != nil {
			noun, ok := nouns[n.Field()]
			if !ok {
				noun = string(n.Field().Name())
			}
			return matcherPlace{taken, noun}, true
		}
	}
	return matcherPlace{}, false
}
