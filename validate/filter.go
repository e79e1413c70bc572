package validate

import (
	"slices"
	"strings"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dynamicmodulesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_modules/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

// filter is one filter of a chain, whatever the kind of chain.
type filter struct {
	name     string
	path     xds.Path
	disabled bool
	// configs are its configuration, or what it can get by discovery.
	configs []filterConfig
}

type filterConfig struct {
	*anypb.Any
	// from is the ECDS resource that holds it, nil where it stands in the filter.
	from *xds.Resource
}

func httpFilters(p *LookupPass, n *xds.Node, field string, filters []*hcmv3.HttpFilter) (chain []filter) {
	for i, f := range filters {
		chain = append(chain, filter{
			name: f.GetName(), path: n.Path().Field(field).Index(i), disabled: f.GetDisabled(),
			configs: filterConfigs(p, f.GetName(), f.GetTypedConfig(), f.GetConfigDiscovery()),
		})
	}
	return chain
}

func networkFilters(p *LookupPass, n *xds.Node, filters []*listenerv3.Filter) (chain []filter) {
	for i, f := range filters {
		chain = append(chain, filter{
			name: f.GetName(), path: n.Path().Field("filters").Index(i),
			configs: filterConfigs(p, f.GetName(), f.GetTypedConfig(), f.GetConfigDiscovery()),
		})
	}
	return chain
}

func genericFilters(n *xds.Node, filters []*corev3.TypedExtensionConfig) (chain []filter) {
	for i, f := range filters {
		chain = append(chain, filter{
			name: f.GetName(), path: n.Path().Field("filters").Index(i), configs: []filterConfig{{Any: f.GetTypedConfig()}},
		})
	}
	return chain
}

func filterConfigs(p *LookupPass, name string, typed *anypb.Any, discovery *corev3.ExtensionConfigSource) (configs []filterConfig) {
	if typed != nil {
		return []filterConfig{{Any: typed}}
	}
	if discovery.GetDefaultConfig() != nil {
		configs = append(configs, filterConfig{Any: discovery.GetDefaultConfig()})
	}
	sub := xds.Subscription{Target: xds.ExtensionConfig, Name: name, Source: discovery.GetConfigSource()}
	if r := p.Snapshot.Answer(sub); r != nil {
		configs = append(configs, filterConfig{r.Message.(*corev3.TypedExtensionConfig).GetTypedConfig(), r})
	}
	return configs
}

// typeOf is the type that an Any holds, or that the TypedStruct in it stands for.
func typeOf(a *anypb.Any) protoreflect.FullName {
	name := nameIn(a.GetTypeUrl())
	if name != "xds.type.v3.TypedStruct" && name != "udpa.type.v1.TypedStruct" {
		return name // most are, and need not be unpacked
	}
	switch m, _ := a.UnmarshalNew(); m := m.(type) {
	case *xdstypev3.TypedStruct:
		return nameIn(m.GetTypeUrl())
	case *udpatypev1.TypedStruct:
		return nameIn(m.GetTypeUrl())
	}
	return name
}

// nameIn is the message name in a type URL.
func nameIn(url string) protoreflect.FullName {
	return protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
}

// chainKind is a kind of filter chain that ends in a terminal filter.
type chainKind struct {
	// noun is what one of its filters is called.
	noun string
	// end says what a chain can end in.
	end string
	// family are the message names of its filters; others are in the wrong place.
	family string
	// terminal are those that end a chain, as Envoy 1.40.0 has it: every filter of
	// its binary was put last, and before the last.
	terminal []protoreflect.FullName
}

var (
	networkChain = chainKind{
		noun:   "network filter",
		end:    "a terminal filter such as tcp_proxy or http_connection_manager",
		family: "envoy.extensions.filters.network.",
		terminal: []protoreflect.FullName{
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
	}
	httpChain = chainKind{
		noun:   "HTTP filter",
		end:    "the router",
		family: "envoy.extensions.filters.http.",
		terminal: []protoreflect.FullName{
			"envoy.extensions.filters.http.mcp_router.v3.McpRouter",
			"envoy.extensions.filters.http.router.v3.Router",
		},
	}
	genericChain = chainKind{
		noun:     "generic_proxy filter",
		end:      "the router of generic_proxy",
		family:   "envoy.extensions.filters.network.generic_proxy.",
		terminal: []protoreflect.FullName{"envoy.extensions.filters.network.generic_proxy.router.v3.Router"},
	}
	upstreamChain = chainKind{
		noun:     "upstream HTTP filter",
		end:      "upstream_codec",
		family:   "envoy.extensions.filters.http.",
		terminal: []protoreflect.FullName{"envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"},
	}
)

// ends tells whether a filter of that configuration ends a chain. known is false
// for what is none of its filters.
func (k chainKind) ends(c filterConfig) (terminal, known bool) {
	name := typeOf(c.Any)
	switch {
	case slices.Contains(k.terminal, name):
		return true, true
	case name == "envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter":
		var module dynamicmodulesv3.DynamicModuleFilter
		return c.UnmarshalTo(&module) == nil && module.GetTerminalFilter(), true
	case name == "envoy.extensions.common.matching.v3.ExtensionWithMatcher":
		// Whatever filter is in it.
		return false, k.family == httpChain.family
	default:
		return false, strings.HasPrefix(string(name), k.family) && xds.InEnvoy(name)
	}
}
