package reference

import (
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// perFilter are the maps from the name of an HTTP filter to its configuration for a route.
var perFilter = []protoreflect.FullName{
	"envoy.config.route.v3.RouteConfiguration.typed_per_filter_config",
	"envoy.config.route.v3.VirtualHost.typed_per_filter_config",
	"envoy.config.route.v3.Route.typed_per_filter_config",
	"envoy.config.route.v3.WeightedCluster.ClusterWeight.typed_per_filter_config",
}

// checkOverride checks the names in a route's configuration for a filter: the name of the filter, and names that
// the filter defines. Filters are defined in the connection managers that use the route.
func checkOverride(p *validate.LookupPass, n *xds.Node, use xds.Use) {
	switch {
	case slices.Contains(perFilter, use.Field):
		managers, around, all := managersOf(p, n)
		filters := validate.Once(&p.Pass, definedBy{definer: around, noun: "HTTP filter"}, func() *defined { return newDefined(filterNames(managers), true) })
		if len(managers) == 0 || !all || filters.has[use.Name] {
			return
		}
		upstream := validate.Once(&p.Pass, definedBy{definer: around, noun: "upstream HTTP filter"},
			func() *defined { return newDefined(upstreamFilters(managers), true) })
		if !upstream.has[use.Name] && upstreamFiltersOfClusters.Lacks(p.Snapshot, use.Name) {
			checkAmong(&p.Pass, use, "HTTP filter", filters)
		}
	case use.Field == "envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig.requirement_name":
		checkDefined(p, n, use, "JWT requirement", func(m *jwtv3.JwtAuthentication) []string {
			return slices.Sorted(maps.Keys(m.GetRequirementMap()))
		})
	case use.Field == "envoy.extensions.filters.http.lua.v3.LuaPerRoute.name":
		checkDefined(p, n, use, "Lua source code", func(m *luav3.Lua) []string {
			return slices.Sorted(maps.Keys(m.GetSourceCodes()))
		})
	}
}

// checkDefined checks a name in a route's configuration for a filter. A filter with a configuration of type M
// defines the name. find returns the names that the filter defines.
func checkDefined[M any](p *validate.LookupPass, n *xds.Node, use xds.Use, noun string, find func(M) []string) {
	at := n
	for at != nil && !slices.Contains(perFilter, at.Field()) {
		at = at.Parent
	}
	if at == nil {
		return
	}
	managers, around, all := managersOf(p, n)
	names := validate.Once(&p.Pass, definedBy{around, noun, at.Key()}, func() *defined {
		var names []string
		known := false
		for _, manager := range managers {
			for _, f := range manager.GetHttpFilters() {
				if f.GetName() != at.Key() {
					continue
				}
				for _, config := range facts.FilterConfigs(p, f.GetName(), f.GetTypedConfig(), f.GetConfigDiscovery()) {
					m, _ := config.UnmarshalNew()
					if filter, ok := m.(M); ok {
						names, known = append(names, find(filter)...), true
					}
				}
			}
		}
		return newDefined(names, known)
	})
	if names.ok && all {
		checkAmong(&p.Pass, use, noun, names)
	}
}

// managersOf returns the connection managers whose requests may reach a route. If the route is in a connection
// manager, around is this manager, and the only one. Otherwise they are the connection managers of the Snapshot
// that use the route configuration, and around is nil. all is false if there may be further connection managers.
func managersOf(p *validate.LookupPass, n *xds.Node) (managers []*hcmv3.HttpConnectionManager, around *hcmv3.HttpConnectionManager, all bool) {
	if around, _ := xds.Enclosing[*hcmv3.HttpConnectionManager](n); around != nil {
		return []*hcmv3.HttpConnectionManager{around}, around, true
	}
	switch p.Resource.Type {
	case xds.RouteConfiguration:
		managers = managersByName(p, p.Resource.Name)
	case xds.VirtualHost:
		managers = managersByName(p, xds.RoutesOfHost(p.Resource.Name))
	case xds.ScopedRoutes:
		managers = managersOfRoutes.Lookup(p.Snapshot, "")
	}
	return managers, nil, managersOfRoutes.Complete(p.Snapshot) && scopesOfRoutes.Complete(p.Snapshot)
}

// managersByName returns the connection managers that get a route configuration by its name or by a scope.
func managersByName(p *validate.LookupPass, routes string) []*hcmv3.HttpConnectionManager {
	managers := slices.Clip(managersOfRoutes.Lookup(p.Snapshot, routes))
	if scoped := managersOfRoutes.Lookup(p.Snapshot, ""); routes != "" && len(scoped) > 0 {
		for range scopesOfRoutes.Lookup(p.Snapshot, routes) {
			managers = append(managers, scoped...)
		}
	}
	return managers
}

// managersOfRoutes maps the name of a route configuration to the connection managers that subscribe to it.
// Connection managers with scoped routes are under "".
var managersOfRoutes = validate.NewIndex([]*xds.Type{xds.ExtensionConfig, xds.Listener},
	func(_ *xds.Snapshot, r *xds.Resource, add func(string, *hcmv3.HttpConnectionManager)) {
		for _, s := range r.Facts().Subscriptions {
			switch s.Node.Message.(type) {
			case *hcmv3.Rds, *hcmv3.ScopedRds:
				manager, _ := xds.Enclosing[*hcmv3.HttpConnectionManager](s.Node)
				add(s.Name, manager)
			}
		}
	})

// scopesOfRoutes maps the name of a route configuration to the scopes that name it.
var scopesOfRoutes = validate.NewIndex([]*xds.Type{xds.ScopedRoutes}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	if name := r.Message().(*routev3.ScopedRouteConfiguration).GetRouteConfigurationName(); name != "" {
		add(name, r)
	}
})

// upstreamFiltersOfClusters maps the name of an upstream HTTP filter to the clusters that have it.
var upstreamFiltersOfClusters = validate.NewIndex([]*xds.Type{xds.Cluster}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	for _, options := range r.Message().(*clusterv3.Cluster).GetTypedExtensionProtocolOptions() {
		var http httpv3.HttpProtocolOptions
		if options.UnmarshalTo(&http) == nil {
			for _, f := range http.GetHttpFilters() {
				add(f.GetName(), r)
			}
		}
	}
})

// filterNames returns the names of the HTTP filters of connection managers, without repetitions.
func filterNames(managers []*hcmv3.HttpConnectionManager) (names []string) {
	seen := make(map[string]bool)
	for _, m := range managers {
		for _, f := range m.GetHttpFilters() {
			if name := f.GetName(); !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// upstreamFilters returns the names of the upstream HTTP filters that the routers of connection managers have. A
// route can configure these filters, too.
func upstreamFilters(managers []*hcmv3.HttpConnectionManager) (names []string) {
	for _, m := range managers {
		for _, f := range m.GetHttpFilters() {
			var router routerv3.Router
			if f.GetTypedConfig().UnmarshalTo(&router) == nil {
				for _, upstream := range router.GetUpstreamHttpFilters() {
					names = append(names, upstream.GetName())
				}
			}
		}
	}
	return names
}
