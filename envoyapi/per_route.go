package envoyapi

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// PerRouteType returns the type that Envoy reads the configuration of an HTTP filter as where
// a route holds it. It is empty for a filter that routes can't configure; ok is false for
// what configures no HTTP filter.
func (v *Version) PerRouteType(name protoreflect.FullName) (route protoreflect.FullName, ok bool) {
	route, ok = v.perRoute[name]
	switch route {
	case same:
		return name, ok
	case none:
		return "", ok
	default:
		return name.Parent().Append(protoreflect.Name(route)), ok
	}
}

// In perRouteTypes, what is neither same nor none is a message beside the filter's own.
const (
	same = "="
	none = ""
)

// perRouteTypes are those of Envoy 1.40.0, found by giving it every filter of its binary.
var perRouteTypes = map[protoreflect.FullName]protoreflect.FullName{
	"envoy.extensions.common.matching.v3.ExtensionWithMatcher":                                "ExtensionWithMatcherPerRoute",
	"envoy.extensions.common.matching.v3.ExtensionWithMatcherPerRoute":                        same,
	"envoy.extensions.filters.http.a2a.v3.A2a":                                                none,
	"envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency":               none,
	"envoy.extensions.filters.http.admission_control.v3.AdmissionControl":                     none,
	"envoy.extensions.filters.http.ai_protocol_manager.v3.AiProtocolManager":                  "AiProtocolManagerPerRoute",
	"envoy.extensions.filters.http.ai_protocol_manager.v3.AiProtocolManagerPerRoute":          same,
	"envoy.extensions.filters.http.alternate_protocols_cache.v3.FilterConfig":                 none,
	"envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth":                                "ApiKeyAuthPerRoute",
	"envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuthPerRoute":                        same,
	"envoy.extensions.filters.http.aws_eventstream_parser.v3.AwsEventstreamParser":            none,
	"envoy.extensions.filters.http.aws_lambda.v3.Config":                                      "PerRouteConfig",
	"envoy.extensions.filters.http.aws_lambda.v3.PerRouteConfig":                              same,
	"envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigning":                  "AwsRequestSigningPerRoute",
	"envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigningPerRoute":          same,
	"envoy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit":                         same,
	"envoy.extensions.filters.http.bandwidth_share.v3.BandwidthShare":                         same,
	"envoy.extensions.filters.http.basic_auth.v3.BasicAuth":                                   "BasicAuthPerRoute",
	"envoy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute":                           same,
	"envoy.extensions.filters.http.body_size_limit.v3.BodySizeLimit":                          none,
	"envoy.extensions.filters.http.buffer.v3.Buffer":                                          "BufferPerRoute",
	"envoy.extensions.filters.http.buffer.v3.BufferPerRoute":                                  same,
	"envoy.extensions.filters.http.cache.v3.CacheConfig":                                      none,
	"envoy.extensions.filters.http.cache_v2.v3.CacheV2Config":                                 none,
	"envoy.extensions.filters.http.cdn_loop.v3.CdnLoopConfig":                                 none,
	"envoy.extensions.filters.http.composite.v3.Composite":                                    "CompositePerRoute",
	"envoy.extensions.filters.http.composite.v3.CompositePerRoute":                            same,
	"envoy.extensions.filters.http.compressor.v3.Compressor":                                  "CompressorPerRoute",
	"envoy.extensions.filters.http.compressor.v3.CompressorPerRoute":                          same,
	"envoy.extensions.filters.http.connect_grpc_bridge.v3.FilterConfig":                       none,
	"envoy.extensions.filters.http.cors.v3.Cors":                                              "CorsPolicy",
	"envoy.extensions.filters.http.cors.v3.CorsPolicy":                                        same,
	"envoy.extensions.filters.http.credential_injector.v3.CredentialInjector":                 none,
	"envoy.extensions.filters.http.csrf.v3.CsrfPolicy":                                        same,
	"envoy.extensions.filters.http.custom_response.v3.CustomResponse":                         same,
	"envoy.extensions.filters.http.decompressor.v3.Decompressor":                              none,
	"envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig":                     "PerRouteConfig",
	"envoy.extensions.filters.http.dynamic_forward_proxy.v3.PerRouteConfig":                   same,
	"envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter":                    "DynamicModuleFilterPerRoute",
	"envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilterPerRoute":            same,
	"envoy.extensions.filters.http.ext_authz.v3.ExtAuthz":                                     "ExtAuthzPerRoute",
	"envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute":                             same,
	"envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute":                               same,
	"envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor":                             "ExtProcPerRoute",
	"envoy.extensions.filters.http.fault.v3.HTTPFault":                                        same,
	"envoy.extensions.filters.http.file_server.v3.FileServerConfig":                           same,
	"envoy.extensions.filters.http.file_system_buffer.v3.FileSystemBufferFilterConfig":        same,
	"envoy.extensions.filters.http.filter_chain.v3.FilterChainConfig":                         "FilterChainConfigPerRoute",
	"envoy.extensions.filters.http.filter_chain.v3.FilterChainConfigPerRoute":                 same,
	"envoy.extensions.filters.http.gcp_authn.v3.GcpAuthnFilterConfig":                         none,
	"envoy.extensions.filters.http.geoip.v3.Geoip":                                            none,
	"envoy.extensions.filters.http.grpc_field_extraction.v3.GrpcFieldExtractionConfig":        none,
	"envoy.extensions.filters.http.grpc_http1_bridge.v3.Config":                               none,
	"envoy.extensions.filters.http.grpc_http1_reverse_bridge.v3.FilterConfig":                 "FilterConfigPerRoute",
	"envoy.extensions.filters.http.grpc_http1_reverse_bridge.v3.FilterConfigPerRoute":         same,
	"envoy.extensions.filters.http.grpc_json_reverse_transcoder.v3.GrpcJsonReverseTranscoder": same,
	"envoy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder":                same,
	"envoy.extensions.filters.http.grpc_stats.v3.FilterConfig":                                none,
	"envoy.extensions.filters.http.grpc_web.v3.GrpcWeb":                                       none,
	"envoy.extensions.filters.http.header_mutation.v3.HeaderMutation":                         "HeaderMutationPerRoute",
	"envoy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute":                 same,
	"envoy.extensions.filters.http.header_to_metadata.v3.Config":                              same,
	"envoy.extensions.filters.http.health_check.v3.HealthCheck":                               none,
	"envoy.extensions.filters.http.ip_tagging.v3.IPTagging":                                   none,
	"envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata":                        same,
	"envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication":                            "PerRouteConfig",
	"envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig":                               same,
	"envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit":                         same,
	"envoy.extensions.filters.http.lua.v3.Lua":                                                "LuaPerRoute",
	"envoy.extensions.filters.http.lua.v3.LuaPerRoute":                                        same,
	"envoy.extensions.filters.http.mcp.v3.Mcp":                                                "McpOverride",
	"envoy.extensions.filters.http.mcp.v3.McpOverride":                                        same,
	"envoy.extensions.filters.http.mcp_json_rest_bridge.v3.McpJsonRestBridge":                 "McpJsonRestBridgePerRoute",
	"envoy.extensions.filters.http.mcp_json_rest_bridge.v3.McpJsonRestBridgePerRoute":         same,
	"envoy.extensions.filters.http.mcp_router.v3.McpRouter":                                   none,
	"envoy.extensions.filters.http.oauth2.v3.OAuth2":                                          "OAuth2PerRoute",
	"envoy.extensions.filters.http.oauth2.v3.OAuth2PerRoute":                                  same,
	"envoy.extensions.filters.http.on_demand.v3.OnDemand":                                     "PerRouteConfig",
	"envoy.extensions.filters.http.on_demand.v3.PerRouteConfig":                               same,
	"envoy.extensions.filters.http.original_src.v3.OriginalSrc":                               none,
	"envoy.extensions.filters.http.proto_api_scrubber.v3.ProtoApiScrubberConfig":              none,
	"envoy.extensions.filters.http.proto_message_extraction.v3.ProtoMessageExtractionConfig":  none,
	"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig":            none,
	"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaOverride":                none,
	"envoy.extensions.filters.http.ratelimit.v3.RateLimit":                                    "RateLimitPerRoute",
	"envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute":                            same,
	"envoy.extensions.filters.http.rbac.v3.RBAC":                                              "RBACPerRoute",
	"envoy.extensions.filters.http.rbac.v3.RBACPerRoute":                                      same,
	"envoy.extensions.filters.http.router.v3.Router":                                          none,
	"envoy.extensions.filters.http.set_filter_state.v3.Config":                                same,
	"envoy.extensions.filters.http.set_metadata.v3.Config":                                    same,
	"envoy.extensions.filters.http.sse_to_metadata.v3.SseToMetadata":                          none,
	"envoy.extensions.filters.http.stateful_session.v3.StatefulSession":                       "StatefulSessionPerRoute",
	"envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute":               same,
	"envoy.extensions.filters.http.tap.v3.Tap":                                                none,
	"envoy.extensions.filters.http.thrift_to_metadata.v3.ThriftToMetadata":                    none,
	"envoy.extensions.filters.http.transform.v3.TransformConfig":                              same,
	"envoy.extensions.filters.http.wasm.v3.Wasm":                                              none,
}

// IsReadAsAnother reports whether the node is a per-route configuration that Envoy
// unpacks as a message of another type, which is a fault of its own.
func (v *Version) IsReadAsAnother(n *xds.Node) bool {
	switch n.Field() {
	case "envoy.config.route.v3.FilterConfig.config",
		"envoy.config.route.v3.Route.typed_per_filter_config",
		"envoy.config.route.v3.RouteConfiguration.typed_per_filter_config",
		"envoy.config.route.v3.VirtualHost.typed_per_filter_config",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight.typed_per_filter_config":
		route, ok := v.PerRouteType(n.Name())
		return ok && route != n.Name()
	}
	return false
}
