package filter

import (
	"fmt"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	genericv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/generic_proxy/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var terminalFilter = &validate.Rule{
	Code: "terminal-filter",
	Doc: `A filter chain does not end with a terminal filter.

A chain of network filters ends with a filter that handles the connection
(http_connection_manager, tcp_proxy, redis_proxy, …), a chain of HTTP filters with one that
handles the request (router), a chain of upstream HTTP filters with upstream_codec, and
generic_proxy with its router ("A terminal L7 filter is necessary"). Envoy rejects a listener
if a terminal filter is not the last one, or if the last filter is not terminal or is
disabled. A filter with config_discovery counts as the configuration that it receives.

Envoy accepts an http_connection_manager without filters, and every request hangs: an error.
It accepts a filter chain without filters, and closes every connection: a warning.`,
	Checks: []diag.Check{
		{Name: "disabled-at-end", Summary: "The last filter of a chain can be disabled."},
		{Name: "no-filters", Summary: "A listener's filter chain has no filters."},
		{Name: "no-generic-filters", Summary: "generic_proxy has no filters."},
		{Name: "no-http-filters", Summary: "http_connection_manager has no filters."},
		{Name: "not-at-end", Summary: "A terminal filter is not the last one of its chain."},
		{Name: "not-terminal", Summary: "The last filter of a chain is not terminal."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.listener.v3.FilterChain",
		"envoy.extensions.filters.http.router.v3.Router",
		"envoy.extensions.filters.network.generic_proxy.v3.GenericProxy",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.UpgradeConfig",
		"envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
	},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *listenerv3.FilterChain:
			l, _ := xds.Enclosing[*listenerv3.Listener](n)
			if len(m.GetFilters()) == 0 && facts.TransportOf(l) != facts.QUIC { // otherwise reported by quic-listener
				p.Report(validate.Finding{
					Check: "no-filters",
					Path:  n.Path(), Warning: true,
					Message: "the filter chain has no filters: Envoy closes every connection",
					Help:    "add tcp_proxy, http_connection_manager or another terminal filter",
				})
			}
			checkChain(&p.Pass, facts.NetworkChain, facts.NetworkFilters(p, n, m.GetFilters()))
		case *genericv3.GenericProxy:
			if len(m.GetFilters()) == 0 {
				p.Report(validate.Finding{
					Check:   "no-generic-filters",
					Path:    n.Path(),
					Message: "generic_proxy has no filters: " + p.Resource.Refusal(),
					Help:    "add the router of generic_proxy",
				})
			}
			checkChain(&p.Pass, facts.GenericChain, facts.GenericFilters(n, m.GetFilters()))
		case *hcmv3.HttpConnectionManager:
			if len(m.GetHttpFilters()) == 0 {
				p.Report(validate.Finding{
					Check:   "no-http-filters",
					Path:    n.Path(),
					Message: "http_connection_manager has no http_filters: Envoy accepts it, and every request hangs",
					Help:    "add the filter envoy.filters.http.router",
				})
			}
			checkChain(&p.Pass, facts.HTTPChain, facts.HTTPFilters(p, n, "http_filters", m.GetHttpFilters()))
		case *hcmv3.HttpConnectionManager_UpgradeConfig:
			checkChain(&p.Pass, facts.HTTPChain, facts.HTTPFilters(p, n, "filters", m.GetFilters()))
		case *routerv3.Router:
			checkChain(&p.Pass, facts.UpstreamChain, facts.HTTPFilters(p, n, "upstream_http_filters", m.GetUpstreamHttpFilters()))
		case *upstreamhttpv3.HttpProtocolOptions:
			if strings.HasSuffix(string(n.Path()), string(xds.Path("").Key(facts.OlderHTTPProtocolOptions))) {
				return // cluster-protocol-options reports options that Envoy does not apply
			}
			checkChain(&p.Pass, facts.UpstreamChain, facts.HTTPFilters(p, n, "http_filters", m.GetHttpFilters()))
		}
	},
}

// checkChain checks whether the last filter of a chain, and no other, is a terminal filter.
func checkChain(p *validate.Pass, kind facts.ChainKind, chain []facts.Filter) {
	if len(chain) == 0 {
		return
	}
	report := func(check validate.CheckName, f facts.Filter, from *xds.Resource, what, help string) {
		finding := validate.Finding{Check: check, Path: f.Path, Message: fmt.Sprintf("%s %q %s", kind.Noun, f.Name, what), Help: help}
		if from != nil {
			finding.Related = facts.Related(from, "typed_config", "its configuration is here")
		}
		p.Report(finding)
	}
	last := len(chain) - 1
	misplaced := false
	for _, f := range chain[:last] {
		for _, c := range f.Configs {
			if ends, _ := kind.Ends(p.Envoy, c); ends {
				misplaced = true
				report("not-at-end", f, c.From, "is terminal, but not the last filter of its chain", "move it to the end, or remove it")
				break
			}
		}
	}
	if misplaced {
		return // the misplaced filter is the fault: do not also report the last filter
	}
	if chain[last].Disabled {
		report("disabled-at-end", chain[last], nil, "is the last filter of its chain and "+
			"can't be disabled", "enable it; only filters before it can be disabled")
		return
	}
	for _, c := range chain[last].Configs {
		if ends, known := kind.Ends(p.Envoy, c); known && !ends {
			report("not-terminal", chain[last], c.From, "is the last filter of its chain, but not terminal", "end the chain with "+kind.End)
			return
		}
	}
}
