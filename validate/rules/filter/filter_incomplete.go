package filter

import (
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tapv3 "github.com/envoyproxy/go-control-plane/envoy/config/tap/v3"
	awsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/aws/v3"
	dynamicmodulesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/dynamic_modules/v3"
	adaptivev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/adaptive_concurrency/v3"
	apikeyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/api_key_auth/v3"
	awslambdav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/aws_lambda/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cache/v3"
	cachev2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cache_v2/v3"
	compositev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	iptaggingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ip_tagging/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	ondemandv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/on_demand/v3"
	connectionlimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/connection_limit/v3"
	dubbov3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/dubbo_proxy/v3"
	networkextprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_proc/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/redis_proxy/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	thriftv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/thrift_proxy/v3"
	maxmindv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/maxmind/v3"
	injectedoauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/injected_credentials/oauth2/v3"
	mtlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rbac/principals/mtls_authenticated/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var filterIncomplete = &validate.Rule{
	Code: "filter-incomplete",
	Doc: `A required setting of a filter is missing.

The API does not mark these fields as required, but Envoy rejects a filter without them. The
cache may be missing where it is disabled, the secret of oauth2 with TLS client authentication.`,
	Checks: []diag.Check{
		{Name: "adaptive-concurrency", Summary: "adaptive_concurrency has no minimum round-trip time."},
		{Name: "api-key-source", Summary: "api_key_auth does not say where the key is."},
		{Name: "aws-credentials", Summary: "A custom chain of AWS credentials has no provider."},
		{Name: "aws-lambda-function", Summary: "aws_lambda of a route has no function."},
		{Name: "cache", Summary: "A cache filter has no cache."},
		{Name: "claim-to-header", Summary: "A claim that jwt_authn copies to a header has no name, or has a name and a path."},
		{Name: "composite-filters", Summary: "The composite filter has no filters to run."},
		{Name: "connection-limit", Summary: "connection_limit has no max_connections."},
		{Name: "dubbo-method", Summary: "A Dubbo route has no method name."},
		{Name: "dynamic-module", Summary: "A dynamic module has neither a name nor a file."},
		{Name: "early-data-size", Summary: "tcp_proxy waits for data, and has no max_early_data_bytes."},
		{Name: "ext-proc-service", Summary: "ext_proc has no service."},
		{Name: "geoip-database", Summary: "The geoip provider has no database."},
		{Name: "ip-tags", Summary: "ip_tagging has no tags."},
		{Name: "mtls-condition", Summary: "An mTLS principal has no condition."},
		{Name: "mutation", Summary: "A mutation of query parameters neither appends nor removes."},
		{Name: "oauth2-secret", Summary: "oauth2 has no secret."},
		{Name: "on-demand-source", Summary: "On-demand clusters have no source."},
		{Name: "redis-routes", Summary: "redis_proxy has no routes."},
		{Name: "tap-match", Summary: "A tap has no match."},
		{Name: "thrift-inverted", Summary: "An inverted Thrift route has no name."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.KeyValueMutation",
		"envoy.config.tap.v3.TapConfig",
		"envoy.extensions.common.aws.v3.AwsCredentialProvider",
		"envoy.extensions.filters.http.adaptive_concurrency.v3.GradientControllerConfig.MinimumRTTCalculationParams",
		"envoy.extensions.filters.http.api_key_auth.v3.KeySource",
		"envoy.extensions.filters.http.aws_lambda.v3.PerRouteConfig",
		"envoy.extensions.filters.http.cache.v3.CacheConfig",
		"envoy.extensions.filters.http.cache_v2.v3.CacheV2Config",
		"envoy.extensions.filters.http.composite.v3.ExecuteFilterAction",
		"envoy.extensions.filters.http.composite.v3.FilterChainConfiguration",
		"envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
		"envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilterPerRoute",
		"envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
		"envoy.extensions.filters.http.ip_tagging.v3.IPTagging",
		"envoy.extensions.filters.http.jwt_authn.v3.JwtClaimToHeader",
		"envoy.extensions.filters.http.oauth2.v3.OAuth2Config",
		"envoy.extensions.filters.http.on_demand.v3.OnDemandCds",
		"envoy.extensions.filters.listener.dynamic_modules.v3.DynamicModuleListenerFilter",
		"envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit",
		"envoy.extensions.filters.network.dubbo_proxy.v3.RouteMatch",
		"envoy.extensions.filters.network.dynamic_modules.v3.DynamicModuleNetworkFilter",
		"envoy.extensions.filters.network.ext_proc.v3.NetworkExternalProcessor",
		"envoy.extensions.filters.network.redis_proxy.v3.RedisProxy",
		"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
		"envoy.extensions.filters.network.thrift_proxy.v3.RouteMatch",
		"envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig",
		"envoy.extensions.http.injected_credentials.oauth2.v3.OAuth2.ClientCredentials",
		"envoy.extensions.load_balancing_policies.dynamic_modules.v3.DynamicModulesLoadBalancerConfig",
		"envoy.extensions.rbac.principals.mtls_authenticated.v3.Config",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		missing := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		missingInHTTPFilter(n.Message, missing)
		missingInNetworkFilter(n.Message, missing)
		missingInExtension(n.Message, missing)
	},
}

// missingInHTTPFilter reports what an HTTP filter, or its configuration for a route, lacks.
func missingInHTTPFilter(m proto.Message, missing func(check validate.CheckName, path xds.Path, message, help string)) {
	switch m := m.(type) {
	case *apikeyv3.KeySource:
		if m.GetHeader() == "" && m.GetQuery() == "" && m.GetCookie() == "" {
			missing("api-key-source", "", "the key source has no header, query parameter or cookie", "set header, query or cookie")
		}
	case *awslambdav3.PerRouteConfig:
		if m.GetInvokeConfig() == nil {
			missing("aws-lambda-function", "", "aws_lambda of a route has no function", "set invoke_config")
		}
	case *cachev3.CacheConfig:
		if m.GetTypedConfig() == nil && !m.GetDisabled().GetValue() {
			missing("cache", "", noCache, "set typed_config, or disabled: true")
		}
	case *cachev2v3.CacheV2Config:
		if m.GetTypedConfig() == nil && !m.GetDisabled().GetValue() {
			missing("cache", "", noCache, "set typed_config, or disabled: true")
		}
	case *compositev3.ExecuteFilterAction:
		if m.GetTypedConfig() == nil && m.GetDynamicConfig() == nil && m.GetFilterChain() == nil && m.GetFilterChainName() == "" {
			missing("composite-filters", "", "the action executes no filter", "set typed_config, dynamic_config, filter_chain or filter_chain_name")
		}
	case *compositev3.FilterChainConfiguration:
		if len(m.GetTypedConfig()) == 0 {
			missing("composite-filters", "", "the filter chain of composite has no filters", "list its filters in typed_config")
		}
	case *extprocv3.ExternalProcessor:
		if m.GetGrpcService() == nil && m.GetHttpService() == nil {
			missing("ext-proc-service", "", "ext_proc has no service", "set grpc_service or http_service")
		}
	case *iptaggingv3.IPTagging:
		if len(m.GetIpTags()) == 0 && m.GetIpTagsDatasource() == nil {
			missing("ip-tags", "", "ip_tagging has no tags", "set ip_tags or ip_tags_datasource")
		}
	case *jwtv3.JwtClaimToHeader:
		switch named := m.GetClaimName() != ""; {
		case named && len(m.GetClaimPath()) > 0:
			missing("claim-to-header", "claim_path", "the claim has both claim_name and claim_path", "keep one of them")
		case !named && len(m.GetClaimPath()) == 0:
			missing("claim-to-header", "", "the header has no claim", "set claim_name or claim_path")
		}
	case *oauth2v3.OAuth2Config:
		if c := m.GetCredentials(); c != nil && c.GetTokenSecret() == nil && m.GetAuthType() != oauth2v3.OAuth2Config_TLS_CLIENT_AUTH {
			missing("oauth2-secret", "credentials", fmt.Sprintf("auth_type %s needs token_secret", m.GetAuthType()), "set token_secret")
		}
	case *ondemandv3.OnDemandCds:
		if m.GetSource() == nil {
			missing("on-demand-source", "", "odcds has no source", "set source, for example to {ads: {}}")
		}
	}
}

// missingInNetworkFilter reports what a network filter lacks.
func missingInNetworkFilter(m proto.Message, missing func(check validate.CheckName, path xds.Path, message, help string)) {
	switch m := m.(type) {
	case *connectionlimitv3.ConnectionLimit:
		if m.GetMaxConnections() == nil {
			missing("connection-limit", "", "connection_limit has no max_connections", "set max_connections")
		}
	case *dubbov3.RouteMatch:
		if m.GetMethod().GetName() == nil {
			missing("dubbo-method", "", "the Dubbo route has no method name", `set method.name; {safe_regex: {regex: ".*"}} matches all`)
		}
	case *networkextprocv3.NetworkExternalProcessor:
		if m.GetGrpcService() == nil {
			missing("ext-proc-service", "", "ext_proc has no service", "set grpc_service")
		}
	case *redisv3.RedisProxy:
		if len(m.GetPrefixRoutes().GetRoutes()) == 0 && m.GetPrefixRoutes().GetCatchAllRoute() == nil {
			missing("redis-routes", "", "redis_proxy has no routes", "set prefix_routes with routes or a catch_all_route")
		}
	case *tcpproxyv3.TcpProxy:
		if mode := m.GetUpstreamConnectMode(); mode != tcpproxyv3.UpstreamConnectMode_IMMEDIATE && m.GetMaxEarlyDataBytes() == nil {
			missing("early-data-size", "upstream_connect_mode", fmt.Sprintf("upstream_connect_mode %s needs max_early_data_bytes", mode), "set it to the number of bytes to buffer before the connection; 0 is allowed")
		}
	case *thriftv3.RouteMatch:
		method, isMethod := m.GetMatchSpecifier().(*thriftv3.RouteMatch_MethodName)
		service, isService := m.GetMatchSpecifier().(*thriftv3.RouteMatch_ServiceName)
		if m.GetInvert() && (isMethod && method.MethodName == "" || isService && service.ServiceName == "") {
			missing("thrift-inverted", "invert", "invert needs a name: without one the route matches nothing", "write the name of the method or service that must not match")
		}
	}
}

// missingInExtension reports what an extension lacks that filters use.
func missingInExtension(m proto.Message, missing func(check validate.CheckName, path xds.Path, message, help string)) {
	switch m := m.(type) {
	case *corev3.KeyValueMutation:
		if m.GetAppend() == nil && m.GetRemove() == "" {
			missing("mutation", "", "the mutation neither appends nor removes", "set append or remove")
		}
	case *tapv3.TapConfig:
		if m.GetMatch() == nil && m.GetMatchConfig() == nil {
			missing("tap-match", "", "the tap has no match", "set match; {any_match: true} matches everything")
		}
	case *awsv3.AwsCredentialProvider:
		if m.GetCustomCredentialProviderChain() && !providesCredentials(m) {
			missing("aws-credentials", "", "custom_credential_provider_chain has no provider", "set one of the providers")
		}
	case interface {
		GetDynamicModuleConfig() *dynamicmodulesv3.DynamicModuleConfig
	}:
		if c := m.GetDynamicModuleConfig(); c.GetName() == "" && c.GetModule() == nil {
			missing("dynamic-module", "dynamic_module_config", "the dynamic module has neither a name nor a file", "set name or module in dynamic_module_config")
		}
	case *injectedoauth2v3.OAuth2_ClientCredentials:
		if m.GetClientSecret() == nil && m.GetAuthType() != injectedoauth2v3.OAuth2_TLS_CLIENT_AUTH {
			missing("oauth2-secret", "", fmt.Sprintf("auth_type %s needs client_secret", m.GetAuthType()), "set client_secret")
		}
	case *adaptivev3.GradientControllerConfig_MinimumRTTCalculationParams:
		if m.GetInterval() == nil && m.GetFixedValue().AsDuration() < time.Millisecond {
			missing("adaptive-concurrency", "", "the minimum round-trip time has neither an interval nor a fixed_value", "set one of them, to at least 1ms")
		}
	case *maxmindv3.MaxMindConfig:
		if m.GetCityDbPath() == "" && m.GetAsnDbPath() == "" && m.GetAnonDbPath() == "" && m.GetIspDbPath() == "" && m.GetCountryDbPath() == "" {
			missing("geoip-database", "", "the geoip provider has no database", "set city_db_path, country_db_path, asn_db_path, isp_db_path or anon_db_path")
		}
	case *mtlsv3.Config:
		if m.GetSanMatcher() == nil && !m.GetAnyValidatedClientCertificate() {
			missing("mtls-condition", "", "the principal has no condition on the client certificate", "set san_matcher or any_validated_client_certificate")
		}
	}
}

const noCache = "the filter has no cache"

// providesCredentials reports whether one of the providers is set that Envoy puts
// into a custom chain.
func providesCredentials(m *awsv3.AwsCredentialProvider) bool {
	found := false
	m.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		name := string(fd.Name())
		found = name == "inline_credential" || strings.HasSuffix(name, "_provider") && name != "config_credential_provider"
		return !found
	})
	return found
}
