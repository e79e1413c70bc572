package envoyapi

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// IsTerminal reports whether a filter of that category and configuration ends its chain.
func (v *Version) IsTerminal(category string, config protoreflect.FullName) bool {
	return slices.Contains(v.terminal[category], config)
}

// terminalFilters are those of Envoy 1.40.0: every filter of its binary was put last, and
// before the last.
var terminalFilters = map[string][]protoreflect.FullName{
	"envoy.filters.network": {
		"envoy.extensions.filters.network.direct_response.v3.Config",
		"envoy.extensions.filters.network.dubbo_proxy.v3.DubboProxy",
		"envoy.extensions.filters.network.echo.v3.Echo",
		"envoy.extensions.filters.network.generic_proxy.v3.GenericProxy",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"envoy.extensions.filters.network.redis_proxy.v3.RedisProxy",
		"envoy.extensions.filters.network.reverse_tunnel.v3.DrainAwareHttpConnectionManager",
		"envoy.extensions.filters.network.reverse_tunnel.v3.ReverseTunnel",
		"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
		"envoy.extensions.filters.network.thrift_proxy.v3.ThriftProxy",
	},
	"envoy.filters.http": {
		"envoy.extensions.filters.http.mcp_router.v3.McpRouter",
		"envoy.extensions.filters.http.router.v3.Router",
	},
	"envoy.generic_proxy.filters": {
		"envoy.extensions.filters.network.generic_proxy.router.v3.Router",
	},
	"envoy.filters.http.upstream": {
		"envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
	},
}
