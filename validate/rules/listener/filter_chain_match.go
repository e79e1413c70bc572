package listener

import (
	"fmt"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var filterChainMatch = &validate.Rule{
	Code: "filter-chain-match",
	Doc: `A filter_chain_match has a criterion that Envoy does not support.

In server_names Envoy accepts *.example.com, and rejects * alone or in any other place
("partial wildcards are not supported"). To match every name, omit server_names. It rejects
address_suffix and suffix_len ("contains unimplemented fields") in any filter chain but the
default one.

Envoy ignores the filter_chain_match of the default filter chain, and of every chain beside a
filter_chain_matcher (warnings).`,
	Checks: []diag.Check{
		{Name: "beside-matcher", Summary: "Envoy ignores a filter_chain_match beside a filter_chain_matcher."},
		{Name: "default-chain", Summary: "Envoy ignores the filter_chain_match of the default filter chain."},
		{Name: "unimplemented", Summary: "Envoy does not implement a field."},
		{Name: "wildcard", Summary: "A server name has an invalid wildcard."},
	},
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		if t := facts.TransportOf(l); t == facts.LibraryCalls || t == facts.Datagrams {
			return
		}
		for _, c := range filterChains(l) {
			checkMatch(p, l, c)
		}
	},
}

func checkMatch(p *validate.Pass, l *listenerv3.Listener, c placedChain) {
	m, at := c.GetFilterChainMatch(), c.path.Field("filter_chain_match")
	switch {
	case m == nil:
		return
	case c.FilterChain == l.GetDefaultFilterChain():
		p.Report(validate.Finding{
			Check: "default-chain",
			Path:  at, Warning: true,
			Message: "Envoy ignores the filter_chain_match of the default filter chain",
			Help:    "remove it, or move the chain to filter_chains",
		})
		return
	case m.GetAddressSuffix() != "":
		reportUnimplemented(p, at, "address_suffix")
	case m.GetSuffixLen() != nil:
		reportUnimplemented(p, at, "suffix_len")
	case l.GetFilterChainMatcher() != nil:
		p.Report(validate.Finding{
			Check: "beside-matcher",
			Path:  at, Warning: true,
			Message: "Envoy ignores filter_chain_match beside a filter_chain_matcher",
			Help:    "remove it, and match in the filter_chain_matcher",
		})
		return
	}
	for i, name := range m.GetServerNames() {
		if strings.Contains(name, "*") && !strings.HasPrefix(name, "*.") {
			p.Report(validate.Finding{
				Check:   "wildcard",
				Path:    at.Field("server_names").Index(i),
				Message: fmt.Sprintf("server name %q has an invalid wildcard: only the first label can be *, as in *.example.com", name),
				Help:    "to match every name, remove server_names",
			})
		}
	}
}

func reportUnimplemented(p *validate.Pass, at xds.Path, field string) {
	p.Report(validate.Finding{
		Check:   "unimplemented",
		Path:    at.Field(field),
		Message: fmt.Sprintf("Envoy does not implement %s", field),
		Help:    "use prefix_ranges",
	})
}
