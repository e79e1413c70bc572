package filter

import (
	"fmt"
	"maps"
	"slices"
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
	Messages: slices.Sorted(maps.Keys(requirementsByType)),
	Node: func(p *validate.Pass, n *xds.Node) {
		for _, r := range requirementsByType[n.Message.ProtoReflect().Descriptor().FullName()] {
			if message := r.lacks(n.Message); message != "" {
				p.Report(validate.Finding{Check: r.check, Path: n.Path().Join(r.path), Message: message, Help: r.help})
			}
		}
	},
}

// requirement tells what a message of one of its types must have.
type requirement struct {
	types []protoreflect.FullName
	check validate.CheckName
	path  xds.Path // the place of the finding, below the message
	lacks func(proto.Message) string
	help  string
}

// needs returns the requirement of messages of type M. lacks returns the message of the finding, or "" if nothing
// is missing.
func needs[M proto.Message](check validate.CheckName, path xds.Path, lacks func(M) string, help string) requirement {
	of := (*new(M)).ProtoReflect().Descriptor().FullName()
	return requirement{[]protoreflect.FullName{of}, check, path, func(m proto.Message) string {
		if m, ok := m.(M); ok {
			return lacks(m)
		}
		return ""
	}, help}
}

// when returns the formatted text if lacking is true, or else "".
func when(lacking bool, words string, args ...any) string {
	if !lacking {
		return ""
	}
	return fmt.Sprintf(words, args...)
}

var requirementsByType = byType(slices.Concat(httpFilters, networkFilters, extensions))

func byType(list []requirement) map[protoreflect.FullName][]requirement {
	of := make(map[protoreflect.FullName][]requirement)
	for _, r := range list {
		for _, t := range r.types {
			of[t] = append(of[t], r)
		}
	}
	return of
}

// httpFilters are the requirements of HTTP filters, and of their configurations for a route.
var httpFilters = []requirement{
	needs("api-key-source", "", func(m *apikeyv3.KeySource) string {
		return when(m.GetHeader() == "" && m.GetQuery() == "" && m.GetCookie() == "", "the key source has no header, query parameter or cookie")
	}, "set header, query or cookie"),
	needs("aws-lambda-function", "", func(m *awslambdav3.PerRouteConfig) string {
		return when(m.GetInvokeConfig() == nil, "aws_lambda of a route has no function")
	}, "set invoke_config"),
	needs("cache", "", func(m *cachev3.CacheConfig) string {
		return when(m.GetTypedConfig() == nil && !m.GetDisabled().GetValue(), noCache)
	}, "set typed_config, or disabled: true"),
	needs("cache", "", func(m *cachev2v3.CacheV2Config) string {
		return when(m.GetTypedConfig() == nil && !m.GetDisabled().GetValue(), noCache)
	}, "set typed_config, or disabled: true"),
	needs("composite-filters", "", func(m *compositev3.ExecuteFilterAction) string {
		return when(m.GetTypedConfig() == nil && m.GetDynamicConfig() == nil && m.GetFilterChain() == nil &&
			m.GetFilterChainName() == "", "the action executes no filter")
	}, "set typed_config, dynamic_config, filter_chain or filter_chain_name"),
	needs("composite-filters", "", func(m *compositev3.FilterChainConfiguration) string {
		return when(len(m.GetTypedConfig()) == 0, "the filter chain of composite has no filters")
	}, "list its filters in typed_config"),
	needs("ext-proc-service", "", func(m *extprocv3.ExternalProcessor) string {
		return when(m.GetGrpcService() == nil && m.GetHttpService() == nil, "ext_proc has no service")
	}, "set grpc_service or http_service"),
	needs("ip-tags", "", func(m *iptaggingv3.IPTagging) string {
		return when(len(m.GetIpTags()) == 0 && m.GetIpTagsDatasource() == nil, "ip_tagging has no tags")
	}, "set ip_tags or ip_tags_datasource"),
	needs("claim-to-header", "claim_path", func(m *jwtv3.JwtClaimToHeader) string {
		return when(m.GetClaimName() != "" && len(m.GetClaimPath()) > 0, "the claim has both claim_name and claim_path")
	}, "keep one of them"),
	needs("claim-to-header", "", func(m *jwtv3.JwtClaimToHeader) string {
		return when(m.GetClaimName() == "" && len(m.GetClaimPath()) == 0, "the header has no claim")
	}, "set claim_name or claim_path"),
	needs("oauth2-secret", "credentials", func(m *oauth2v3.OAuth2Config) string {
		c := m.GetCredentials()
		return when(c != nil && c.GetTokenSecret() == nil && m.GetAuthType() != oauth2v3.OAuth2Config_TLS_CLIENT_AUTH,
			"auth_type %s needs token_secret", m.GetAuthType())
	}, "set token_secret"),
	needs("on-demand-source", "", func(m *ondemandv3.OnDemandCds) string {
		return when(m.GetSource() == nil, "odcds has no source")
	}, "set source, for example to {ads: {}}"),
}

// networkFilters are the requirements of network filters.
var networkFilters = []requirement{
	needs("connection-limit", "", func(m *connectionlimitv3.ConnectionLimit) string {
		return when(m.GetMaxConnections() == nil, "connection_limit has no max_connections")
	}, "set max_connections"),
	needs("dubbo-method", "", func(m *dubbov3.RouteMatch) string {
		return when(m.GetMethod().GetName() == nil, "the Dubbo route has no method name")
	}, `set method.name; {safe_regex: {regex: ".*"}} matches all`),
	needs("ext-proc-service", "", func(m *networkextprocv3.NetworkExternalProcessor) string {
		return when(m.GetGrpcService() == nil, "ext_proc has no service")
	}, "set grpc_service"),
	needs("redis-routes", "", func(m *redisv3.RedisProxy) string {
		return when(len(m.GetPrefixRoutes().GetRoutes()) == 0 && m.GetPrefixRoutes().GetCatchAllRoute() == nil, "redis_proxy has no routes")
	}, "set prefix_routes with routes or a catch_all_route"),
	needs("early-data-size", "upstream_connect_mode", func(m *tcpproxyv3.TcpProxy) string {
		mode := m.GetUpstreamConnectMode()
		return when(mode != tcpproxyv3.UpstreamConnectMode_IMMEDIATE && m.GetMaxEarlyDataBytes() == nil, "upstream_connect_mode "+
			"%s needs max_early_data_bytes", mode)
	}, "set it to the number of bytes to buffer before the connection; 0 is allowed"),
	needs("thrift-inverted", "invert", func(m *thriftv3.RouteMatch) string {
		method, isMethod := m.GetMatchSpecifier().(*thriftv3.RouteMatch_MethodName)
		service, isService := m.GetMatchSpecifier().(*thriftv3.RouteMatch_ServiceName)
		return when(m.GetInvert() && (isMethod && method.MethodName == "" || isService && service.ServiceName == ""),
			"invert needs a name: without one the route matches nothing")
	}, "write the name of the method or service that must not match"),
}

// extensions are the requirements of extensions that filters use.
var extensions = []requirement{
	needs("mutation", "", func(m *corev3.KeyValueMutation) string {
		return when(m.GetAppend() == nil && m.GetRemove() == "", "the mutation neither appends nor removes")
	}, "set append or remove"),
	needs("tap-match", "", func(m *tapv3.TapConfig) string {
		return when(m.GetMatch() == nil && m.GetMatchConfig() == nil, "the tap has no match")
	}, "set match; {any_match: true} matches everything"),
	needs("aws-credentials", "", func(m *awsv3.AwsCredentialProvider) string {
		return when(m.GetCustomCredentialProviderChain() && !providesCredentials(m), "custom_credential_provider_chain has no provider")
	}, "set one of the providers"),
	{
		types: []protoreflect.FullName{
			"envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
			"envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilterPerRoute",
			"envoy.extensions.filters.listener.dynamic_modules.v3.DynamicModuleListenerFilter",
			"envoy.extensions.filters.network.dynamic_modules.v3.DynamicModuleNetworkFilter",
			"envoy.extensions.load_balancing_policies.dynamic_modules.v3.DynamicModulesLoadBalancerConfig",
		},
		check: "dynamic-module", path: "dynamic_module_config", lacks: lacksModule,
		help: "set name or module in dynamic_module_config",
	},
	needs("oauth2-secret", "", func(m *injectedoauth2v3.OAuth2_ClientCredentials) string {
		return when(m.GetClientSecret() == nil && m.GetAuthType() != injectedoauth2v3.OAuth2_TLS_CLIENT_AUTH, "auth_type %s needs "+
			"client_secret", m.GetAuthType())
	}, "set client_secret"),
	needs("adaptive-concurrency", "", func(m *adaptivev3.GradientControllerConfig_MinimumRTTCalculationParams) string {
		return when(m.GetInterval() == nil && m.GetFixedValue().AsDuration() < time.Millisecond, "the minimum round-trip time has "+
			"neither an interval nor a fixed_value")
	}, "set one of them, to at least 1ms"),
	needs("geoip-database", "", func(m *maxmindv3.MaxMindConfig) string {
		return when(m.GetCityDbPath() == "" && m.GetAsnDbPath() == "" && m.GetAnonDbPath() == "" && m.GetIspDbPath() == "" &&
			m.GetCountryDbPath() == "", "the geoip provider has no database")
	}, "set city_db_path, country_db_path, asn_db_path, isp_db_path or anon_db_path"),
	needs("mtls-condition", "", func(m *mtlsv3.Config) string {
		return when(m.GetSanMatcher() == nil && !m.GetAnyValidatedClientCertificate(), "the principal has no condition on the client certificate")
	}, "set san_matcher or any_validated_client_certificate"),
}

// lacksModule returns the message of the finding if a message names no dynamic module.
func lacksModule(m proto.Message) string {
	loads, ok := m.(interface {
		GetDynamicModuleConfig() *dynamicmodulesv3.DynamicModuleConfig
	})
	if !ok {
		return ""
	}
	c := loads.GetDynamicModuleConfig()
	return when(c.GetName() == "" && c.GetModule() == nil, "the dynamic module has neither a name nor a file")
}

const noCache = "the filter has no cache"

// providesCredentials reports whether a provider is set that Envoy takes into a custom chain of providers.
func providesCredentials(m *awsv3.AwsCredentialProvider) bool {
	found := false
	m.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		name := string(fd.Name())
		found = name == "inline_credential" || strings.HasSuffix(name, "_provider") && name != "config_credential_provider"
		return !found
	})
	return found
}
