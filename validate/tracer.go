package validate

import (
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/xds"
)

// ofIdleTracer reports whether a finding is about the tracer of the bootstrap, and nothing
// traces by it: Envoy then looks up its type, and goes no further.
func (p *Pass) ofIdleTracer(r *xds.Resource, f Finding) bool {
	return r.Type == xds.Bootstrap && strings.HasPrefix(string(f.Path), "tracing.http.typed_config") &&
		!f.Eager && !p.view.tracesByBootstrap()
}

// tracers are the types of resources that hold connection managers.
var tracers = []*xds.Type{xds.Listener, xds.ExtensionConfig}

// tracesByBootstrap reports whether a connection manager traces and names no provider of
// its own: then Envoy makes the tracer of the bootstrap for it.
func tracesByBootstrap(s *xds.Snapshot) bool {
	found := false
	search := xds.NewSearch("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing")
	for _, t := range tracers {
		for _, r := range s.Of(t) {
			search.Walk(r.Message, func(n *xds.Node) {
				m, ok := n.Message.(*hcmv3.HttpConnectionManager_Tracing)
				found = found || ok && m.GetProvider() == nil
			})
		}
	}
	return found
}
