package reference

import (
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ondemandv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/on_demand/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/validate"
	"xdspub/xds"
)

// onDemandSource returns the config source of on-demand clusters, and its field.
func onDemandSource(n *xds.Node) (field string, source *corev3.ConfigSource) {
	switch m := n.Message.(type) {
	case *ondemandv3.OnDemandCds:
		return "source", m.GetSource()
	case *tcpproxyv3.TcpProxy_OnDemand:
		return "odcds_config", m.GetOdcdsConfig()
	}
	return "", nil
}

// fetched are the fields whose cluster Envoy gets on demand.
var fetched = []protoreflect.FullName{
	"envoy.config.route.v3.RouteAction.cluster",
	"envoy.config.route.v3.WeightedCluster.ClusterWeight.name",
	"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.cluster",
	"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight.name",
}

// comesOnDemand reports whether Envoy may get the cluster that a node names when a request needs the cluster:
// by the on_demand filter of the connection manager, by its configuration for a route, or by a TCP proxy.
func comesOnDemand(p *validate.LookupPass, n *xds.Node, use xds.Use) bool {
	if !slices.Contains(fetched, use.Field) {
		return false
	}
	for at := n; at != nil; at = at.Parent {
		switch m := at.Message.(type) {
		case *tcpproxyv3.TcpProxy:
			return m.GetOnDemand() != nil
		case *hcmv3.HttpConnectionManager:
			return slices.ContainsFunc(m.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool { return asksOnDemand(f.GetTypedConfig()) })
		case interface {
			GetTypedPerFilterConfig() map[string]*anypb.Any
		}:
			if slices.ContainsFunc(slices.Collect(maps.Values(m.GetTypedPerFilterConfig())), asksOnDemand) {
				return true
			}
		}
	}
	for _, name := range []string{routesOf(p.Resource), anyRoutes} {
		if _, ok := onDemandRoutes.First(p.Snapshot, name); ok {
			return true
		}
	}
	return false
}

// asksOnDemand reports whether the configuration of an on_demand filter, or that for a route, has a source of
// clusters.
func asksOnDemand(config *anypb.Any) bool {
	switch m := xds.Unpack(config).(type) {
	case *ondemandv3.OnDemand:
		return m.GetOdcds() != nil
	case *ondemandv3.PerRouteConfig:
		return m.GetOdcds() != nil
	}
	return false
}

// onDemandRoutes has the resources with a connection manager that gets clusters on demand, under the name of the
// route configuration that the connection manager asks RDS for. If the connection manager gets its routes in
// another way, or the filter is of ECDS, the name is anyRoutes.
var onDemandRoutes = validate.NewIndex([]*xds.Type{xds.Listener, xds.ExtensionConfig}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	for _, source := range r.Facts().ConfigSources {
		if source.Field() != "envoy.extensions.filters.http.on_demand.v3.OnDemandCds.source" {
			continue
		}
		manager, _ := xds.Enclosing[*hcmv3.HttpConnectionManager](source)
		switch {
		case manager.GetRds() != nil:
			add(manager.GetRds().GetRouteConfigName(), r)
		case manager.GetRouteConfig() == nil:
			add(anyRoutes, r)
		}
	}
})

// anyRoutes is the name in onDemandRoutes for all route configurations.
const anyRoutes = ""

// routesOf returns the name of the route configuration that a resource is, or that a virtual host is of.
func routesOf(r *xds.Resource) string {
	if r.Type != xds.VirtualHost {
		return r.Name
	}
	routes, _, _ := strings.Cut(r.Name, "/")
	return routes
}
