package filter

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	geoipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/geoip/v3"
	healthcheckv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/health_check/v3"
	iptaggingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ip_tagging/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	dubbov3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/dubbo_proxy/v3"
	networkextprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_proc/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	thriftv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/thrift_proxy/v3"
	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var filterConflict = &validate.Rule{
	Code: "filter-conflict",
	Doc: `Two settings of a filter conflict with each other.

Envoy rejects the listener. Envoy does not check the processing modes of ext_proc on a route.`,
	Checks: []diag.Check{
		{Name: "access-log-options-twice", Summary: "tcp_proxy sets options of its access log in two fields."},
		{Name: "append-and-remove", Summary: "A mutation both appends and removes."},
		{Name: "cache-without-pass-through", Summary: "health_check has cache_time without pass_through_mode."},
		{Name: "ext-authz-allowed-headers", Summary: "ext_authz has two lists of allowed_headers."},
		{Name: "ext-authz-body-buffering", Summary: "ext_authz both buffers the body of a request and does not."},
		{Name: "ext-authz-two-paths", Summary: "ext_authz has both path_prefix and path_override."},
		{Name: "ext-proc-duplex-without-trailers", Summary: "ext_proc has FULL_DUPLEX_STREAMED bodies without trailers."},
		{Name: "ext-proc-http-service-mode", Summary: "ext_proc sends bodies or trailers to an http_service, which gets headers only."},
		{Name: "ext-proc-processes-nothing", Summary: "ext_proc for TCP skips both directions."},
		{Name: "ext-proc-route-cache", Summary: "ext_proc has both disable_clear_route_cache and a route_cache_action."},
		{Name: "ext-proc-two-services", Summary: "ext_proc has both a gRPC and an HTTP service."},
		{Name: "geoip-two-sources", Summary: "geoip has two sources of the address."},
		{Name: "ip-tagging-two-sources", Summary: "ip_tagging has two sources of tags."},
		{Name: "lua-two-scripts", Summary: "lua has two scripts."},
		{Name: "no-proxy-protocol-version", Summary: "proxy_protocol allows no version of the PROXY protocol."},
		{Name: "oauth2-authorization-header", Summary: "oauth2 puts two tokens in the authorization header."},
		{Name: "oauth2-end-session-scope", Summary: "oauth2 has an end_session_endpoint without the scope openid."},
		{Name: "oauth2-pass-through-header", Summary: "oauth2 matches requests by a header that it writes itself."},
		{Name: "per-packet-load-balancing", Summary: "udp_proxy has session filters or a tunnel beside per-packet load balancing."},
		{Name: "post-path-without-post", Summary: "A tunnel has a post_path without use_post."},
		{Name: "routes-in-two-fields", Summary: "dubbo_proxy or thrift_proxy has routes in two fields."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.KeyValueMutation",
		"envoy.extensions.filters.http.ext_authz.v3.CheckSettings",
		"envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
		"envoy.extensions.filters.http.ext_authz.v3.HttpService",
		"envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
		"envoy.extensions.filters.http.geoip.v3.Geoip",
		"envoy.extensions.filters.http.health_check.v3.HealthCheck",
		"envoy.extensions.filters.http.ip_tagging.v3.IPTagging",
		"envoy.extensions.filters.http.lua.v3.Lua",
		"envoy.extensions.filters.http.oauth2.v3.OAuth2Config",
		"envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol",
		"envoy.extensions.filters.network.dubbo_proxy.v3.DubboProxy",
		"envoy.extensions.filters.network.ext_proc.v3.ProcessingMode",
		"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
		"envoy.extensions.filters.network.thrift_proxy.v3.ThriftProxy",
		"envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		conflict := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *corev3.KeyValueMutation:
			if m.GetAppend() != nil && m.GetRemove() != "" {
				conflict("append-and-remove", "remove", "the mutation both appends and removes", "write two mutations")
			}
		case *extauthzv3.CheckSettings:
			if m.GetDisableRequestBodyBuffering() && m.GetWithRequestBody() != nil {
				conflict("ext-authz-body-buffering", "with_request_body", "both with_request_body and disable_request_body_buffering are set", facts.KeepOne)
			}
		case *extauthzv3.ExtAuthz:
			if m.GetAllowedHeaders() != nil && m.GetHttpService().GetAuthorizationRequest().GetAllowedHeaders() != nil {
				conflict("ext-authz-allowed-headers", "http_service.authorization_request.allowed_headers", "allowed_headers is "+
					"set in both ext_authz and its http_service", "keep allowed_headers of ext_authz itself")
			}
		case *extauthzv3.HttpService:
			if m.GetPathPrefix() != "" && m.GetPathOverride() != "" && n.Field() == "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz.http_service" {
				conflict("ext-authz-two-paths", "path_override", "both path_override and path_prefix are set", facts.KeepOne)
			}
		case *extprocv3.ExternalProcessor:
			extProcConflicts(m, conflict)
		case *geoipv3.Geoip:
			if m.GetXffConfig() != nil && m.GetCustomHeaderConfig() != nil {
				conflict("geoip-two-sources", "custom_header_config", "both custom_header_config and xff_config are set", facts.KeepOne)
			}
		case *healthcheckv3.HealthCheck:
			if !m.GetPassThroughMode().GetValue() && m.GetCacheTime().AsDuration() > 0 {
				conflict("cache-without-pass-through", "cache_time", "cache_time needs pass_through_mode: without it there is no "+
					"response to cache", "remove cache_time, or set pass_through_mode")
			}
		case *iptaggingv3.IPTagging:
			if len(m.GetIpTags()) > 0 && m.GetIpTagsDatasource() != nil {
				conflict("ip-tagging-two-sources", "ip_tags_datasource", "both ip_tags_datasource and ip_tags are set", facts.KeepOne)
			}
		case *luav3.Lua:
			if m.GetInlineCode() != "" && m.GetDefaultSourceCode() != nil {
				conflict("lua-two-scripts", "inline_code", "both inline_code and "+
					"default_source_code are set", "keep default_source_code; inline_code is deprecated")
			}
		case *oauth2v3.OAuth2Config:
			oauth2Conflicts(m, conflict)
		case *proxyprotocolv3.ProxyProtocol:
			if slices.Contains(m.GetDisallowedVersions(), corev3.ProxyProtocolConfig_V1) &&
				slices.Contains(m.GetDisallowedVersions(), corev3.ProxyProtocolConfig_V2) {
				conflict("no-proxy-protocol-version", "disallowed_versions", "disallowed_versions lists all versions of the "+
					"PROXY protocol", "remove one of them")
			}
		case *dubbov3.DubboProxy:
			if len(m.GetRouteConfig()) > 0 && m.GetRouteSpecifier() != nil {
				conflict("routes-in-two-fields", "route_config", "route_config is set together with drds or "+
					"multiple_route_config", "keep one of them; route_config is deprecated")
			}
		case *networkextprocv3.ProcessingMode:
			if m.GetProcessRead() == networkextprocv3.ProcessingMode_SKIP && m.GetProcessWrite() == networkextprocv3.ProcessingMode_SKIP {
				conflict("ext-proc-processes-nothing", "", "both process_read and process_write are SKIP: the filter "+
					"processes nothing", "change one of them, or remove the filter")
			}
		case *tcpproxyv3.TcpProxy:
			tcpProxyConflicts(m, conflict)
		case *thriftv3.ThriftProxy:
			if m.GetTrds() != nil && m.GetRouteConfig() != nil {
				conflict("routes-in-two-fields", "route_config", "both route_config and trds are set", facts.KeepOne)
			}
		case *udpproxyv3.UdpProxyConfig:
			udpProxyConflicts(m, conflict)
		}
	},
}

// conflictReporter reports a fault that a check finds. path is the path below the judged message.
type conflictReporter func(check validate.CheckName, path xds.Path, message, help string)

func extProcConflicts(m *extprocv3.ExternalProcessor, conflict conflictReporter) {
	mode := m.GetProcessingMode()
	parts := []struct {
		name     string
		body     extprocv3.ProcessingMode_BodySendMode
		trailers extprocv3.ProcessingMode_HeaderSendMode
	}{
		{"request", mode.GetRequestBodyMode(), mode.GetRequestTrailerMode()},
		{"response", mode.GetResponseBodyMode(), mode.GetResponseTrailerMode()},
	}
	if m.GetGrpcService() != nil && m.GetHttpService() != nil {
		conflict("ext-proc-two-services", "http_service", "both http_service and grpc_service are set", facts.KeepOne)
	}
	for _, part := range parts {
		body, trailers := part.name+"_body_mode", part.name+"_trailer_mode"
		at := xds.Path("processing_mode")
		switch {
		case m.GetHttpService() != nil && part.body != extprocv3.ProcessingMode_NONE:
			conflict("ext-proc-http-service-mode", at.Field(body), fmt.Sprintf("%s is %s, but an http_service "+
				"gets no bodies", body, part.body), "remove it, or use a grpc_service")
		case m.GetHttpService() != nil && part.trailers == extprocv3.ProcessingMode_SEND:
			conflict("ext-proc-http-service-mode", at.Field(trailers), fmt.Sprintf("%s is %s, but an http_service "+
				"gets no trailers", trailers, part.trailers), "remove it, or use a grpc_service")
		case m.GetHttpService() == nil && part.body == extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED && part.trailers != extprocv3.ProcessingMode_SEND:
			conflict("ext-proc-duplex-without-trailers", at.Field(body), fmt.Sprintf("%s is FULL_DUPLEX_STREAMED, but "+
				"%s is not SEND", body, trailers), fmt.Sprintf("set %s to SEND", trailers))
		}
	}
	if m.GetDisableClearRouteCache() && m.GetRouteCacheAction() != extprocv3.ExternalProcessor_DEFAULT {
		conflict("ext-proc-route-cache", "disable_clear_route_cache", fmt.Sprintf("both disable_clear_route_cache and "+
			"route_cache_action %s are set", m.GetRouteCacheAction()), "keep route_cache_action")
	}
}

func oauth2Conflicts(m *oauth2v3.OAuth2Config, conflict conflictReporter) {
	header := m.GetForwardIdToken().GetHeader()
	var uses []string
	for _, use := range []struct {
		field string
		set   bool
	}{
		{"forward_bearer_token", m.GetForwardBearerToken()},
		{"preserve_authorization_header", m.GetPreserveAuthorizationHeader()},
		{"forward_id_token", strings.EqualFold(header, "authorization")},
	} {
		if use.set {
			uses = append(uses, use.field)
		}
	}
	if len(uses) > 1 {
		conflict("oauth2-authorization-header", xds.Path(uses[1]), fmt.Sprintf("both %s and %s use the authorization header", uses[1], uses[0]), facts.KeepOne)
	}
	for i, matcher := range m.GetPassThroughMatcher() {
		if header != "" && strings.EqualFold(matcher.GetName(), header) {
			conflict("oauth2-pass-through-header", xds.Path("pass_through_matcher").Index(i), fmt.Sprintf("pass_through_matcher "+
				"reads header %q, which forward_id_token writes", header), "use different headers")
		}
	}
	if m.GetEndSessionEndpoint() != "" && !slices.Contains(m.GetAuthScopes(), "openid") {
		conflict("oauth2-end-session-scope", "end_session_endpoint", "end_session_endpoint needs "+
			"OpenID Connect", `add "openid" to auth_scopes, or remove end_session_endpoint`)
	}
}

func tcpProxyConflicts(m *tcpproxyv3.TcpProxy, conflict conflictReporter) {
	if t := m.GetTunnelingConfig(); t.GetPostPath() != "" && !t.GetUsePost() {
		conflict("post-path-without-post", "tunneling_config.post_path", "post_path needs use_post", "set use_post, or remove post_path")
	}
	if m.GetAccessLogOptions() != nil {
		const help = "keep access_log_options; the other is deprecated"
		if m.GetAccessLogFlushInterval() != nil {
			conflict("access-log-options-twice", "access_log_flush_interval", "both access_log_flush_interval and access_log_options are set", help)
		}
		if m.GetFlushAccessLogOnConnected() {
			conflict("access-log-options-twice", "flush_access_log_on_connected", "both flush_access_log_on_connected and access_log_options are set", help)
		}
	}
}

func udpProxyConflicts(m *udpproxyv3.UdpProxyConfig, conflict conflictReporter) {
	if t := m.GetTunnelingConfig(); t.GetPostPath() != "" && !t.GetUsePost() {
		conflict("post-path-without-post", "tunneling_config.post_path", "post_path needs use_post", "set use_post, or remove post_path")
	}
	if !m.GetUsePerPacketLoadBalancing() {
		return
	}
	switch {
	case len(m.GetSessionFilters()) > 0:
		conflict("per-packet-load-balancing", "session_filters", "session_filters need sessions, which "+
			"use_per_packet_load_balancing does not have", facts.KeepOne)
	case m.GetTunnelingConfig() != nil:
		conflict("per-packet-load-balancing", "tunneling_config", "tunneling_config needs sessions, which "+
			"use_per_packet_load_balancing does not have", facts.KeepOne)
	}
}
