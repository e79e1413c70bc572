package facts

import (
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/validate"
	"xdspub/xds"
)

// IdleTracer is the Rule.Idle of all families. It gives a reason only for a finding in the tracer of the bootstrap:
// until a connection manager uses this tracer, Envoy checks no more than the type of its configuration.
func IdleTracer(v validate.View, r *xds.Resource, f validate.Finding) string {
	if r.Type != xds.Bootstrap || !strings.HasPrefix(string(f.Path), "tracing.http.typed_config") {
		return ""
	}
	if _, traced := tracesByBootstrap.First(v, ""); traced {
		return ""
	}
	return "no connection manager traces by this tracer yet"
}

// LoadsFirst reports whether Envoy loads a node of the judged resource before any resource of a subscription. This
// is true for every node of the bootstrap. An exception is a tracer that no static connection manager uses.
func LoadsFirst(p *validate.LookupPass, n *xds.Node) bool {
	if !p.Resource.OfBootstrap() || !Inside(n, "envoy.config.bootstrap.v3.Bootstrap.tracing") {
		return p.Resource.OfBootstrap()
	}
	_, traced := tracesByBootstrap.First(p.Snapshot, xds.StaticResources)
	return traced
}

// tracesByBootstrap indexes the resources with a connection manager that traces without a provider of its own, so
// that Envoy uses the tracer of the bootstrap. All are under the empty name, and the static ones also under
// StaticResources.
var tracesByBootstrap = validate.NewIndex([]*xds.Type{xds.Listener, xds.ExtensionConfig},
	func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
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
