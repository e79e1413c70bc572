package facts

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dynamicmodulesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_modules/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

// Filter is a filter of a chain of any kind.
type Filter struct {
	Name     string
	Path     xds.Path
	Disabled bool
	// Configs are the configurations that the filter may have, as FilterConfigs returns them.
	Configs []FilterConfig
}

// FilterConfig is a configuration of a filter.
type FilterConfig struct {
	*anypb.Any
	// From is the ECDS resource that holds the configuration; nil if the configuration stands in the filter.
	From *xds.Resource
}

// HTTPFilters returns the HTTP filters in a field of the node's message.
func HTTPFilters(p *validate.LookupPass, n *xds.Node, field string, filters []*hcmv3.HttpFilter) (chain []Filter) {
	for i, f := range filters {
		chain = append(chain, Filter{
			Name: f.GetName(), Path: n.Path().Field(field).Index(i), Disabled: f.GetDisabled(),
			Configs: FilterConfigs(p, f.GetName(), f.GetTypedConfig(), f.GetConfigDiscovery()),
		})
	}
	return chain
}

// NetworkFilters returns the network filters of the node's filter chain.
func NetworkFilters(p *validate.LookupPass, n *xds.Node, filters []*listenerv3.Filter) (chain []Filter) {
	for i, f := range filters {
		chain = append(chain, Filter{
			Name: f.GetName(), Path: n.Path().Field("filters").Index(i),
			Configs: FilterConfigs(p, f.GetName(), f.GetTypedConfig(), f.GetConfigDiscovery()),
		})
	}
	return chain
}

// GenericFilters returns the filters of a generic_proxy.
func GenericFilters(n *xds.Node, filters []*corev3.TypedExtensionConfig) (chain []Filter) {
	for i, f := range filters {
		chain = append(chain, Filter{
			Name: f.GetName(), Path: n.Path().Field("filters").Index(i), Configs: []FilterConfig{{Any: f.GetTypedConfig()}},
		})
	}
	return chain
}

// FilterConfigs returns the possible configurations of a filter: typed if set, otherwise the default configuration
// and the configuration of the ECDS resource in the Snapshot, if they exist.
func FilterConfigs(p *validate.LookupPass, name string, typed *anypb.Any, discovery *corev3.ExtensionConfigSource) (configs []FilterConfig) {
	if typed != nil {
		return []FilterConfig{{Any: typed}}
	}
	if discovery.GetDefaultConfig() != nil {
		configs = append(configs, FilterConfig{Any: discovery.GetDefaultConfig()})
	}
	sub := xds.Subscription{Target: xds.ExtensionConfig, Name: name, Source: discovery.GetConfigSource()}
	if r := p.Snapshot.Answer(sub); r != nil {
		configs = append(configs, FilterConfig{r.Message().(*corev3.TypedExtensionConfig).GetTypedConfig(), r})
	}
	return configs
}

// ChainKind is a kind of filter chain that ends in a terminal filter.
type ChainKind struct {
	// Noun is the noun for a filter of the chain in messages.
	Noun string
	// End is the text in messages for the filters that can end a chain.
	End string
	// family is the prefix of the full names of the filters' messages. A filter with another prefix is misplaced.
	family string
	// category is Envoy's category of the filters.
	category string
}

// The kinds of chains that Envoy has.
var (
	NetworkChain = ChainKind{
		Noun:     "network filter",
		End:      "a terminal filter such as tcp_proxy or http_connection_manager",
		family:   "envoy.extensions.filters.network.",
		category: "envoy.filters.network",
	}
	HTTPChain = ChainKind{
		Noun:     "HTTP filter",
		End:      "the router",
		family:   "envoy.extensions.filters.http.",
		category: "envoy.filters.http",
	}
	GenericChain = ChainKind{
		Noun:     "generic_proxy filter",
		End:      "the router of generic_proxy",
		family:   "envoy.extensions.filters.network.generic_proxy.",
		category: "envoy.generic_proxy.filters",
	}
	UpstreamChain = ChainKind{
		Noun:     "upstream HTTP filter",
		End:      "upstream_codec",
		family:   "envoy.extensions.filters.http.",
		category: "envoy.filters.http.upstream",
	}
)

// Ends reports whether a filter with the configuration is a terminal filter. known is false if the configuration
// does not belong to a filter of this kind of chain.
func (k ChainKind) Ends(v *envoyapi.Version, c FilterConfig) (terminal, known bool) {
	name := xds.PayloadType(c.Any)
	switch {
	case v.IsTerminal(k.category, name):
		return true, true
	case name == "envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter":
		var module dynamicmodulesv3.DynamicModuleFilter
		return c.UnmarshalTo(&module) == nil && module.GetTerminalFilter(), true
	case name == "envoy.extensions.common.matching.v3.ExtensionWithMatcher":
		// Envoy does not look at the filter inside: the wrapper is never terminal.
		return false, k.family == HTTPChain.family
	default:
		return false, strings.HasPrefix(string(name), k.family) && v.Holds(name)
	}
}
