package matcher

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// matcherPlace is a place where a matcher stands, and what Envoy 1.40.0 takes there:
// every input, action and custom matcher of its binary was tried at each.
type matcherPlace struct {
	// noun is what a matcher of that place is called.
	noun string
	// inputs are what it can match on.
	inputs []protoreflect.FullName
	// actions are what it can decide.
	actions []protoreflect.FullName
	// trees are the custom matchers that can stand in a matcher_tree.
	trees []protoreflect.FullName
	// keeps reports whether keep_matching is taken.
	keeps bool
}

const (
	networkInputs = "envoy.extensions.matching.common_inputs.network.v3."
	sslInputs     = "envoy.extensions.matching.common_inputs.ssl.v3."
	socketInputs  = "envoy.extensions.matching.common_inputs.transport_socket.v3."
	httpInputs    = "envoy.type.matcher.v3."
	genericInputs = "envoy.extensions.filters.network.generic_proxy.matcher.v3."

	celInput     protoreflect.FullName = "xds.type.matcher.v3.HttpAttributesCelMatchInput"
	moduleInput  protoreflect.FullName = "envoy.extensions.matching.http.dynamic_modules.v3.HttpDynamicModuleMatchInput"
	genericInput protoreflect.FullName = genericInputs + "RequestMatchInput"

	celMatcher     protoreflect.FullName = "xds.type.matcher.v3.CelMatcher"
	ipMatcher      protoreflect.FullName = "xds.type.matcher.v3.IPMatcher"
	nameMatcher    protoreflect.FullName = "xds.type.matcher.v3.ServerNameMatcher"
	genericMatcher protoreflect.FullName = genericInputs + "RequestMatcher"
	moduleMatcher  protoreflect.FullName = "envoy.extensions.matching.input_matchers.dynamic_modules.v3.DynamicModuleMatcher"
)

// everywhere can be matched on at each place.
var everywhere = []protoreflect.FullName{"envoy.extensions.matching.common_inputs.environment_variable.v3.Config"}

var (
	udpInputs = []protoreflect.FullName{
		networkInputs + "DestinationIPInput",
		networkInputs + "DestinationPortInput",
		networkInputs + "NetworkNamespaceInput",
		networkInputs + "SourceIPInput",
		networkInputs + "SourcePortInput",
	}
	// connectionInputs are of TCP connections, and of requests as well.
	connectionInputs = slices.Concat(udpInputs, []protoreflect.FullName{
		networkInputs + "DirectSourceIPInput",
		networkInputs + "FilterStateInput",
		networkInputs + "ServerNameInput",
		sslInputs + "DnsSanInput",
		sslInputs + "SubjectInput",
		sslInputs + "UriSanInput",
	})
	chainInputs = slices.Concat(connectionInputs, []protoreflect.FullName{
		networkInputs + "ApplicationProtocolInput",
		networkInputs + "SourceTypeInput",
		networkInputs + "TransportProtocolInput",
	})
	moduleInputs = []protoreflect.FullName{
		"envoy.extensions.matching.http.dynamic_modules.v3.DynamicModuleDataInput",
		moduleInput,
	}
	requestInputs = slices.Concat(connectionInputs, moduleInputs, []protoreflect.FullName{
		celInput,
		httpInputs + "HttpRequestHeaderMatchInput",
		networkInputs + "DynamicMetadataInput",
	})
	allHTTPInputs = slices.Concat(requestInputs, []protoreflect.FullName{
		httpInputs + "HttpRequestQueryParamMatchInput",
		httpInputs + "HttpRequestTrailerMatchInput",
		httpInputs + "HttpResponseHeaderMatchInput",
		httpInputs + "HttpResponseLocalReplyMatchInput",
		httpInputs + "HttpResponseStatusCodeClassMatchInput",
		httpInputs + "HttpResponseStatusCodeMatchInput",
		httpInputs + "HttpResponseTrailerMatchInput",
		networkInputs + "SourceTypeInput",
	})
	routeInputs = slices.Concat(moduleInputs, []protoreflect.FullName{
		httpInputs + "HttpRequestHeaderMatchInput",
		networkInputs + "FilterStateInput",
	})
	genericProxyInputs = []protoreflect.FullName{
		genericInputs + "HostMatchInput",
		genericInputs + "MethodMatchInput",
		genericInputs + "PathMatchInput",
		genericInputs + "PropertyMatchInput",
		genericInputs + "ServiceMatchInput",
		genericInput,
	}
	transportSocketInputs = []protoreflect.FullName{
		socketInputs + "EndpointMetadataInput",
		socketInputs + "FilterStateInput",
		socketInputs + "LocalityMetadataInput",
	}
	statInputs = []protoreflect.FullName{"envoy.extensions.matching.common_inputs.stats.v3.StatTagValueInput"}

	rangesAndNames = []protoreflect.FullName{ipMatcher, nameMatcher}

	filterActions = []protoreflect.FullName{
		"envoy.extensions.filters.common.matcher.action.v3.SkipFilter",
		"envoy.extensions.filters.http.composite.v3.ExecuteFilterAction",
	}
	rbacActions    = []protoreflect.FullName{"envoy.config.rbac.v3.Action"}
	quotaActions   = []protoreflect.FullName{"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings"}
	genericActions = []protoreflect.FullName{"envoy.extensions.filters.network.generic_proxy.action.v3.RouteAction"}
)

// matcherPlaces are the places by the field that holds the matcher.
var matcherPlaces = map[protoreflect.FullName]matcherPlace{
	"envoy.config.cluster.v3.Cluster.transport_socket_matcher": {
		"transport_socket_matcher", transportSocketInputs, []protoreflect.FullName{
			"envoy.config.core.v3.SubstitutionFormatString",
			socketInputs + "TransportSocketNameAction",
		}, nil, true,
	},
	"envoy.config.listener.v3.Listener.filter_chain_matcher": {
		"filter_chain_matcher", chainInputs, []protoreflect.FullName{"google.protobuf.StringValue"}, rangesAndNames, true,
	},
	"envoy.config.route.v3.VirtualHost.matcher": {
		"virtual host's matcher", routeInputs, []protoreflect.FullName{
			"envoy.config.route.v3.Route",
			"envoy.config.route.v3.RouteList",
		}, rangesAndNames, false,
	},
	"envoy.extensions.access_loggers.stats.v3.Config.Tag.rules": {
		"stat tag's matcher", statInputs, []protoreflect.FullName{
			"envoy.extensions.matching.actions.transform_stat.v3.TransformStat",
		}, nil, true,
	},
	"envoy.extensions.common.matching.v3.ExtensionWithMatcher.matcher":             {"filter's matcher", allHTTPInputs, filterActions, rangesAndNames, false},
	"envoy.extensions.common.matching.v3.ExtensionWithMatcher.xds_matcher":         {"filter's matcher", allHTTPInputs, filterActions, rangesAndNames, false},
	"envoy.extensions.common.matching.v3.ExtensionWithMatcherPerRoute.xds_matcher": {"route's matcher", allHTTPInputs, filterActions, rangesAndNames, true},
	"envoy.extensions.filters.http.bandwidth_share.v3.BandwidthShare.tenant_name_selector": {
		"tenant_name_selector", allHTTPInputs, []protoreflect.FullName{
			"envoy.config.core.v3.SubstitutionFormatString",
			"google.protobuf.StringValue",
		}, rangesAndNames, true,
	},
	"envoy.extensions.filters.http.composite.v3.Composite.matcher":         {"composite filter's matcher", allHTTPInputs, filterActions, rangesAndNames, false},
	"envoy.extensions.filters.http.composite.v3.CompositePerRoute.matcher": {"composite filter's matcher", allHTTPInputs, filterActions, rangesAndNames, false},
	"envoy.extensions.filters.http.custom_response.v3.CustomResponse.custom_response_matcher": {
		"custom_response_matcher", allHTTPInputs, []protoreflect.FullName{
			"envoy.extensions.http.custom_response.local_response_policy.v3.LocalResponsePolicy",
			"envoy.extensions.http.custom_response.redirect_policy.v3.RedirectPolicy",
		}, rangesAndNames, true,
	},
	"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig.bucket_matchers": {"bucket matcher", allHTTPInputs, quotaActions, rangesAndNames, true},
	"envoy.extensions.filters.http.rbac.v3.RBAC.matcher":                                           {"RBAC matcher of requests", requestInputs, rbacActions, rangesAndNames, false},
	"envoy.extensions.filters.http.rbac.v3.RBAC.shadow_matcher":                                    {"RBAC matcher of requests", requestInputs, rbacActions, rangesAndNames, false},
	"envoy.extensions.filters.network.generic_proxy.v3.RouteConfiguration.routes":                  {"generic_proxy matcher", genericProxyInputs, genericActions, nil, false},
	"envoy.extensions.filters.network.generic_proxy.v3.VirtualHost.routes":                         {"generic_proxy matcher", genericProxyInputs, genericActions, nil, false},
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.forward_client_cert_matcher": {
		"forward_client_cert_matcher", allHTTPInputs, []protoreflect.FullName{
			"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.ForwardClientCertConfig",
		}, rangesAndNames, true,
	},
	"envoy.extensions.filters.network.rbac.v3.RBAC.matcher":        {"RBAC matcher of connections", connectionInputs, rbacActions, rangesAndNames, false},
	"envoy.extensions.filters.network.rbac.v3.RBAC.shadow_matcher": {"RBAC matcher of connections", connectionInputs, rbacActions, rangesAndNames, false},
	"envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.matcher": {
		"udp_proxy matcher", udpInputs, []protoreflect.FullName{
			"envoy.extensions.filters.udp.udp_proxy.v3.Route",
		}, []protoreflect.FullName{ipMatcher}, true,
	},
	"envoy.extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier.cluster_matcher": {
		"cluster_matcher", allHTTPInputs, []protoreflect.FullName{
			"envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction",
		}, rangesAndNames, true,
	},
}

// placeOfMatcher finds the place of the matcher that a node is part of.
func placeOfMatcher(n *xds.Node) (matcherPlace, bool) {
	for ; n != nil; n = n.Parent {
		if place, ok := matcherPlaces[n.Field()]; ok {
			return place, true
		}
	}
	return matcherPlace{}, false
}
