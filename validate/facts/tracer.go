package facts

import (
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/validate"
	"xdspub/xds"
)

// IdleTracer is the Idle of all rules. It is about findings in the tracer of the bootstrap:
// as long as nothing traces by it, Envoy looks up its type, and goes no further.
func IdleTracer(v validate.View, r *xds.Resource, f validate.Finding) string {
	if r.Type != xds.Bootstrap || !strings.HasPrefix(string(f.Path), "tracing.http.typed_config") {
		return ""
	}
	if _, traced := tracesByBootstrap.First(v, ""); traced {
		return ""
	}
	return "no connection manager traces by this tracer yet"
}

// LoadsFirst reports whether Envoy loads a node of the judged resource before any resource of a
// subscription. That is all of the bootstrap, except for a tracer that only connection managers of
// other resources use.
func LoadsFirst(p *validate.LookupPass, n *xds.Node) bool {
	if !p.Resource.OfBootstrap() || !Inside(n, "envoy.config.bootstrap.v3.Bootstrap.tracing") {
		return p.Resource.OfBootstrap()
	}
	_, traced := tracesByBootstrap.First(p.Snapshot, xds.StaticResources)
	return traced
}

// tracesByBootstrap has, under the empty name, the resources with a connection manager that
// traces and names no provider of its own: Envoy makes the tracer of the bootstrap for it. Under
// StaticResources it has the static ones.
var tracesByBootstrap = validate.NewIndex([]*xds.Type{xds.Listener, xds.ExtensionConfig}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	traces := false
	tracing.Walk(r.Message(), func(n *xds.Node) {
		m, ok := n.Message.(*hcmv3.HttpConnectionManager_Tracing)
		traces = traces || ok && m.GetProvider() == nil
	})
	if traces {
		add("", r)
	}
	if traces && r.OfBootstrap() {
		add(xds.StaticResources, r)
	}
})

var tracing = xds.NewSearch("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing")
