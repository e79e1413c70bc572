package listener

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var filterChainName = &validate.Rule{
	Code: "filter-chain-name",
	Doc: `A filter chain's name is missing or duplicate.

A filter_chain_matcher selects filter chains by name. Beside one, Envoy rejects a chain
without a name ("field is required when using a listener matcher") and two chains with the
same name ("field is duplicated"). The default filter chain needs no name, and without a
filter_chain_matcher names are free.`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		if l.GetFilterChainMatcher() == nil || facts.TransportOf(l) == facts.LibraryCalls || facts.TransportOf(l) == facts.Datagrams {
			return
		}
		seen := make(map[string]xds.Path)
		for i, c := range l.GetFilterChains() {
			path := xds.Path("filter_chains").Index(i)
			first, twice := seen[c.GetName()]
			switch {
			case c.GetName() == "":
				p.Report(validate.Finding{
					Path:    path,
					Message: "the filter chain has no name, and the filter_chain_matcher selects by name",
					Help:    "add a name",
				})
			case twice:
				p.Report(validate.Finding{
					Path:    path.Field("name"),
					Message: fmt.Sprintf("two filter chains have the name %q", c.GetName()),
					Help:    "give each a unique name: the filter_chain_matcher selects by name",
					Related: facts.Related(p.Resource, first.Field("name"), "the first one is here"),
				})
			default:
				seen[c.GetName()] = path
			}
		}
	},
}
