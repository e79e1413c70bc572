package envoyapi

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// ExtensionPoint is a field that takes the configuration of an extension: an Any beside a
// name, a TypedExtensionConfig or a TransportSocket.
type ExtensionPoint struct {
	Field protoreflect.FullName
	// Category is the category of the extensions that fit. Where it depends on the
	// message around, it is one of several: see CategoryAt. Of some categories there is no
	// extension.
	Category string
	// Also are further categories that fit: Envoy looks there for an extension that is not
	// in Category.
	Also []string
	// ByName: the name selects the extension, and Envoy reads the configuration as that
	// extension's. Elsewhere the type of the configuration selects it, and the name is
	// free.
	ByName bool
	// Bare: the configuration may be missing.
	Bare bool
}

// CategoryAt returns the category that fits an extension point of that Category in the node's
// message.
// Transport sockets, certificate selectors and HTTP filters have one category for downstream
// and one for upstream; listener filters have others for UDP and QUIC; the name of a
// resource monitor decides whether it is proactive.
func (v *Version) CategoryAt(n *xds.Node, category string) string {
	switch category {
	case "envoy.transport_sockets":
		if within(n, "envoy.config.listener.v3.FilterChain") {
			return "envoy.transport_sockets.downstream"
		}
		return "envoy.transport_sockets.upstream"
	case "envoy.tls.certificate_selectors", "envoy.tls.certificate_mappers":
		if !within(n, "envoy.config.listener.v3.FilterChain") {
			return "envoy.tls.upstream_" + category[len("envoy.tls."):]
		}
	case "envoy.resource_monitors":
		if m, ok := n.Message.(*overloadv3.ResourceMonitor); ok && v.isProactive(m.GetName()) {
			return "envoy.resource_monitors.proactive"
		}
	case "envoy.filters.http":
		if within(n, "envoy.extensions.filters.http.router.v3.Router.upstream_http_filters") ||
			within(n, "envoy.extensions.upstreams.http.v3.HttpProtocolOptions.http_filters") {
			return "envoy.filters.http.upstream"
		}
	case "envoy.filters.listener":
		switch l, _ := xds.Enclosing[*listenerv3.Listener](n); {
		case l.GetAddress().GetSocketAddress().GetProtocol() != corev3.SocketAddress_UDP:
		case l.GetUdpListenerConfig().GetQuicOptions() != nil:
			return "envoy.filters.quic_listener"
		default:
			return "envoy.filters.udp_listener"
		}
	}
	return category
}

func (v *Version) isProactive(monitor string) bool {
	_, ok := v.ExtensionNamed("envoy.resource_monitors.proactive", monitor)
	return ok
}

// within reports whether the node is, or stands in, a message of that name or what
// a field of that name holds.
func within(n *xds.Node, name protoreflect.FullName) bool {
	for ; n != nil; n = n.Parent {
		if n.Name() == name || n.Field() == name {
			return true
		}
	}
	return false
}

// ExtensionPointsOf returns the extension points of a message.
func (v *Version) ExtensionPointsOf(message protoreflect.FullName) []ExtensionPoint {
	return v.points()[message]
}

// Extended returns the messages that have extension points in some version, sorted.
func Extended() (list []protoreflect.FullName) {
	for _, v := range Versions {
		for message := range v.points() {
			list = append(list, message)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func pointsByMessage(points []ExtensionPoint) map[protoreflect.FullName][]ExtensionPoint {
	byMessage := make(map[protoreflect.FullName][]ExtensionPoint)
	for _, p := range points {
		byMessage[p.Field.Parent()] = append(byMessage[p.Field.Parent()], p)
	}
	return byMessage
}

// extensionPoints are those of Envoy 1.40.0, each tried on it.
var extensionPoints = []ExtensionPoint{
	{Field: "envoy.config.accesslog.v3.AccessLog.typed_config", Category: "envoy.access_loggers"},
	{Field: "envoy.config.accesslog.v3.ExtensionFilter.typed_config", Category: "envoy.access_loggers.extension_filters"},
	{Field: "envoy.config.bootstrap.v3.Bootstrap.bootstrap_extensions", Category: "envoy.bootstrap"},
	{Field: "envoy.config.bootstrap.v3.Bootstrap.default_regex_engine", Category: "envoy.regex_engines"},
	{Field: "envoy.config.bootstrap.v3.Bootstrap.xds_config_tracker_extension", Category: "envoy.config.xds_tracers"},
	{Field: "envoy.config.bootstrap.v3.Bootstrap.xds_delegate_extension", Category: "envoy.config.xds_delegates"},
	{Field: "envoy.config.cluster.v3.Cluster.CustomClusterType.typed_config", Category: "envoy.clusters"},
	{Field: "envoy.config.cluster.v3.Cluster.QueuingPolicies.pending_rq_policy", Category: "envoy.queue_policy"},
	{Field: "envoy.config.cluster.v3.Cluster.TransportSocketMatch.transport_socket", Category: "envoy.transport_sockets"},
	{Field: "envoy.config.cluster.v3.Cluster.transport_socket", Category: "envoy.transport_sockets"},
	{Field: "envoy.config.cluster.v3.Cluster.typed_dns_resolver_config", Category: "envoy.network.dns_resolver"},
	{Field: "envoy.config.cluster.v3.Cluster.typed_extension_protocol_options", Category: "envoy.upstream_options", ByName: true},
	{Field: "envoy.config.cluster.v3.Cluster.upstream_config", Category: "envoy.upstreams"},
	{Field: "envoy.config.cluster.v3.Filter.typed_config", Category: "envoy.filters.upstream_network"},
	{Field: "envoy.config.cluster.v3.LoadBalancingPolicy.Policy.typed_extension_config", Category: "envoy.load_balancing_policies"},
	{Field: "envoy.config.common.key_value.v3.KeyValueStoreConfig.config", Category: "envoy.common.key_value"},
	{Field: "envoy.config.core.v3.ApiConfigSource.config_validators", Category: "envoy.config.validators"},
	{Field: "envoy.config.core.v3.BindConfig.local_address_selector", Category: "envoy.upstream.local_address_selector"},
	{Field: "envoy.config.core.v3.HealthCheck.CustomHealthCheck.typed_config", Category: "envoy.health_checkers"},
	{Field: "envoy.config.core.v3.HealthCheck.event_logger", Category: "envoy.health_check.event_sinks"},
	{Field: "envoy.config.core.v3.Http1ProtocolOptions.HeaderKeyFormat.stateful_formatter", Category: "envoy.http.stateful_header_formatters"},
	{Field: "envoy.config.core.v3.HttpService.formatters", Category: "envoy.formatter"},
	{Field: "envoy.config.core.v3.RetryPolicy.RetryHostPredicate.typed_config", Category: "envoy.retry_host_predicates"},
	{Field: "envoy.config.core.v3.RetryPolicy.RetryPriority.typed_config", Category: "envoy.retry_priorities"},
	{Field: "envoy.config.core.v3.SubstitutionFormatString.formatters", Category: "envoy.formatter"},
	{Field: "envoy.config.listener.v3.Filter.typed_config", Category: "envoy.filters.network"},
	{Field: "envoy.config.listener.v3.FilterChain.transport_socket", Category: "envoy.transport_sockets"},
	{Field: "envoy.config.listener.v3.Listener.ConnectionBalanceConfig.extend_balance", Category: "envoy.network.connection_balance"},
	{Field: "envoy.config.listener.v3.ListenerFilter.typed_config", Category: "envoy.filters.listener"},
	{Field: "envoy.config.listener.v3.QuicProtocolOptions.connection_debug_visitor_config", Category: "envoy.quic.connection_debug_visitor"},
	{Field: "envoy.config.listener.v3.QuicProtocolOptions.connection_id_generator_config", Category: "envoy.quic.connection_id_generator"},
	{Field: "envoy.config.listener.v3.QuicProtocolOptions.crypto_stream_config", Category: "envoy.quic.server.crypto_stream"},
	{Field: "envoy.config.listener.v3.QuicProtocolOptions.proof_source_config", Category: "envoy.quic.proof_source"},
	{Field: "envoy.config.listener.v3.QuicProtocolOptions.server_preferred_address_config", Category: "envoy.quic.server_preferred_address"},
	{Field: "envoy.config.metrics.v3.StatsSink.typed_config", Category: "envoy.stats_sinks"},
	{Field: "envoy.config.overload.v3.ResourceMonitor.typed_config", Category: "envoy.resource_monitors"},
	{Field: "envoy.config.rbac.v3.Permission.matcher", Category: "envoy.rbac.matchers"},
	{Field: "envoy.config.rbac.v3.Permission.uri_template", Category: "envoy.path.match"},
	{Field: "envoy.config.rbac.v3.Principal.custom", Category: "envoy.rbac.principals"},
	{Field: "envoy.config.route.v3.ClusterSpecifierPlugin.extension", Category: "envoy.router.cluster_specifier_plugin"},
	{Field: "envoy.config.route.v3.FilterConfig.config", Category: "envoy.filters.http"},
	{Field: "envoy.config.route.v3.InternalRedirectPolicy.predicates", Category: "envoy.internal_redirect_predicates"},
	{Field: "envoy.config.route.v3.RateLimit.Action.extension", Category: "envoy.rate_limit_descriptors", Also: []string{"envoy.matching.http.input", "envoy.matching.common_inputs"}},
	{Field: "envoy.config.route.v3.RetryPolicy.RetryHostPredicate.typed_config", Category: "envoy.retry_host_predicates"},
	{Field: "envoy.config.route.v3.RetryPolicy.RetryPriority.typed_config", Category: "envoy.retry_priorities"},
	{Field: "envoy.config.route.v3.RetryPolicy.retry_options_predicates", Category: "envoy.retry_options_predicates"},
	{Field: "envoy.config.route.v3.Route.route_specifiers", Category: "envoy.router.route_specifiers"},
	{Field: "envoy.config.route.v3.Route.typed_per_filter_config", Category: "envoy.filters.http"},
	{Field: "envoy.config.route.v3.RouteAction.early_data_policy", Category: "envoy.route.early_data_policy"},
	{Field: "envoy.config.route.v3.RouteAction.path_rewrite_policy", Category: "envoy.path.rewrite"},
	{Field: "envoy.config.route.v3.RouteConfiguration.route_specifiers", Category: "envoy.router.route_specifiers"},
	{Field: "envoy.config.route.v3.RouteConfiguration.typed_per_filter_config", Category: "envoy.filters.http"},
	{Field: "envoy.config.route.v3.RouteMatch.path_match_policy", Category: "envoy.path.match"},
	{Field: "envoy.config.route.v3.VirtualHost.route_specifiers", Category: "envoy.router.route_specifiers"},
	{Field: "envoy.config.route.v3.VirtualHost.typed_per_filter_config", Category: "envoy.filters.http"},
	{Field: "envoy.config.route.v3.WeightedCluster.ClusterWeight.typed_per_filter_config", Category: "envoy.filters.http"},
	{Field: "envoy.config.tap.v3.OutputSink.custom_sink", Category: "envoy.tap_sinks"},
	{Field: "envoy.config.trace.v3.OpenTelemetryConfig.exporter", Category: "envoy.tracers.opentelemetry.exporters"},
	{Field: "envoy.config.trace.v3.OpenTelemetryConfig.resource_detectors", Category: "envoy.tracers.opentelemetry.resource_detectors"},
	{Field: "envoy.config.trace.v3.OpenTelemetryConfig.sampler", Category: "envoy.tracers.opentelemetry.samplers"},
	{Field: "envoy.config.trace.v3.Tracing.Http.typed_config", Category: "envoy.tracers"},
	{Field: "envoy.extensions.access_loggers.fluentd.v3.FluentdAccessLogConfig.formatters", Category: "envoy.formatter"},
	{Field: "envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig.formatters", Category: "envoy.formatter"},
	{Field: "envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig.resource_detectors", Category: "envoy.tracers.opentelemetry.resource_detectors"},
	{Field: "envoy.extensions.clusters.dns.v3.DnsCluster.typed_dns_resolver_config", Category: "envoy.network.dns_resolver"},
	{Field: "envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig.typed_dns_resolver_config", Category: "envoy.network.dns_resolver"},
	{Field: "envoy.extensions.common.matching.v3.ExtensionWithMatcher.extension_config", Category: "envoy.filters.http"},
	{Field: "envoy.extensions.filters.http.ai_protocol_manager.v3.AiProtocolManager.filters", Category: "envoy.http.ai_filters"},
	{Field: "envoy.extensions.filters.http.aws_eventstream_parser.v3.AwsEventstreamParser.ProcessingRules.content_parser", Category: "envoy.content_parsers"},
	{Field: "envoy.extensions.filters.http.cache.v3.CacheConfig.typed_config", Category: "envoy.http.cache", Bare: true},
	{Field: "envoy.extensions.filters.http.cache_v2.v3.CacheV2Config.typed_config", Category: "envoy.http.cache_v2", Bare: true},
	{Field: "envoy.extensions.filters.http.composite.v3.ExecuteFilterAction.typed_config", Category: "envoy.filters.http"},
	{Field: "envoy.extensions.filters.http.composite.v3.FilterChainConfiguration.typed_config", Category: "envoy.filters.http"},
	{Field: "envoy.extensions.filters.http.compressor.v3.Compressor.compressor_library", Category: "envoy.compression.compressor"},
	{Field: "envoy.extensions.filters.http.compressor.v3.CompressorOverrides.compressor_library", Category: "envoy.compression.compressor"},
	{Field: "envoy.extensions.filters.http.credential_injector.v3.CredentialInjector.credential", Category: "envoy.http.injected_credentials"},
	{Field: "envoy.extensions.filters.http.decompressor.v3.Decompressor.decompressor_library", Category: "envoy.compression.decompressor"},
	{Field: "envoy.extensions.filters.http.ext_proc.v3.ExtProcOverrides.processing_request_modifier", Category: "envoy.http.ext_proc.processing_request_modifiers"},
	{Field: "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor.on_processing_response", Category: "envoy.http.ext_proc.response_processors"},
	{Field: "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor.processing_request_modifier", Category: "envoy.http.ext_proc.processing_request_modifiers"},
	{Field: "envoy.extensions.filters.http.filter_chain.v3.FilterChain.filters", Category: "envoy.filters.http"},
	{Field: "envoy.extensions.filters.http.geoip.v3.Geoip.provider", Category: "envoy.geoip_providers"},
	{Field: "envoy.extensions.filters.http.header_mutation.v3.Mutations.formatters", Category: "envoy.formatter"},
	{Field: "envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings.BucketIdBuilder.ValueBuilder.custom_value", Category: "envoy.matching.http.input"},
	{Field: "envoy.extensions.filters.http.sse_to_metadata.v3.SseToMetadata.ProcessingRules.content_parser", Category: "envoy.content_parsers"},
	{Field: "envoy.extensions.filters.http.stateful_session.v3.StatefulSession.session_state", Category: "envoy.http.stateful_session", ByName: true},
	{Field: "envoy.extensions.filters.network.dubbo_proxy.v3.DubboFilter.config", Category: "envoy.dubbo_proxy.filters", ByName: true, Bare: true},
	{Field: "envoy.extensions.filters.network.generic_proxy.action.v3.RouteAction.per_filter_config", Category: "envoy.generic_proxy.filters"},
	{Field: "envoy.extensions.filters.network.generic_proxy.v3.GenericProxy.codec_config", Category: "envoy.generic_proxy.codecs"},
	{Field: "envoy.extensions.filters.network.generic_proxy.v3.GenericProxy.filters", Category: "envoy.generic_proxy.filters"},
	{Field: "envoy.extensions.filters.network.geoip.v3.Geoip.provider", Category: "envoy.geoip_providers"},
	{Field: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.early_header_mutation_extensions", Category: "envoy.http.early_header_mutation"},
	{Field: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.original_ip_detection_extensions", Category: "envoy.http.original_ip_detection"},
	{Field: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.typed_header_validation_config"},
	{Field: "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter.typed_config", Category: "envoy.filters.http"},
	{Field: "envoy.extensions.filters.network.http_connection_manager.v3.RequestIDExtension.typed_config", Category: "envoy.request_id", Bare: true},
	{Field: "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.TunnelingConfig.formatters", Category: "envoy.formatter"},
	{Field: "envoy.extensions.filters.network.thrift_proxy.v3.ThriftFilter.typed_config", Category: "envoy.thrift_proxy.filters"},
	{Field: "envoy.extensions.filters.udp.dns_filter.v3.DnsFilterConfig.ClientContextConfig.typed_dns_resolver_config", Category: "envoy.network.dns_resolver"},
	{Field: "envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.SessionFilter.typed_config", Category: "envoy.filters.udp.session"},
	{Field: "envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.UdpTunnelingConfig.formatters", Category: "envoy.formatter"},
	{Field: "envoy.extensions.http.custom_response.redirect_policy.v3.RedirectPolicy.modify_request_headers_action", Category: "envoy.http.custom_response.redirect_policy.modify_request_headers_action"},
	{Field: "envoy.extensions.tracers.opentelemetry.samplers.v3.ParentBasedSamplerConfig.wrapped_sampler", Category: "envoy.tracers.opentelemetry.samplers"},
	{Field: "envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport.transport_socket", Category: "envoy.transport_sockets"},
	{Field: "envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport.transport_socket", Category: "envoy.transport_sockets"},
	{Field: "envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport.transport_socket", Category: "envoy.transport_sockets"},
	{Field: "envoy.extensions.transport_sockets.tap.v3.Tap.transport_socket", Category: "envoy.transport_sockets"},
	{Field: "envoy.extensions.transport_sockets.tcp_stats.v3.Config.transport_socket", Category: "envoy.transport_sockets"},
	{Field: "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config.certificate_mapper", Category: "envoy.tls.certificate_mappers"},
	{Field: "envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext.custom_validator_config", Category: "envoy.tls.cert_validator", ByName: true},
	{Field: "envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.custom_handshaker", Category: "envoy.tls_handshakers"},
	{Field: "envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.custom_tls_certificate_selector", Category: "envoy.tls.certificate_selectors"},
	{Field: "envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider.typed_config", Category: "envoy.tls.key_providers", ByName: true, Bare: true},
	{Field: "envoy.extensions.upstreams.http.v3.HttpProtocolOptions.header_validation_config"},
	{Field: "envoy.type.matcher.v3.StringMatcher.custom", Category: "envoy.string_matcher"},
	{Field: "xds.type.matcher.v3.StringMatcher.custom", Category: "envoy.string_matcher"},
}
