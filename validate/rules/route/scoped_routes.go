package route

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var scopedRoutes = &validate.Rule{
	Code: "scoped-routes",
	Doc: `Scoped routes are incomplete, or have duplicate keys.

Envoy rejects a listener whose inline scopes use RDS ("is not supported with inline scoped
routes"; xdspub inlines the route configurations of this tree) or have no routes, and a scope key
builder without an extractor ("extract_type not set") or with an index but no element_separator.
It rejects a whole file of scopes if two have the same key ("scope key conflict found"); of
inline scopes the last one wins (a warning). It also rejects a scope without a key, a scope
without routes ("route_configuration_name is empty"), and scoped routes without
rds_config_source for the names ("Missing config source specifier"). srds_resources_locator
needs ADS or a delta gRPC source; files do not support it.`,
	Checks: []diag.Check{
		{Name: "extractor", Summary: "An extractor has neither index nor element, or no element_separator for its index."},
		{Name: "inline-rds", Summary: "An inline scope uses RDS."},
		{Name: "locator", Summary: "The config source does not support srds_resources_locator."},
		{Name: "no-routes", Summary: "A scope has no routes."},
		{Name: "rds-source", Summary: "Scopes name route configurations, and the listener has no source of them."},
		{Name: "same-key", Summary: "Two scopes have one key."},
	},
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.network.http_connection_manager.v3.ScopedRds",
		"envoy.extensions.filters.network.http_connection_manager.v3.ScopedRouteConfigurationsList",
		"envoy.extensions.filters.network.http_connection_manager.v3.ScopedRoutes.ScopeKeyBuilder.FragmentBuilder.HeaderValueExtractor",
	},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *hcmv3.ScopedRouteConfigurationsList:
			checkInlineScopes(p, n, m)
		case *hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor:
			checkScopeKeyBuilder(&p.Pass, n, m)
		case *hcmv3.ScopedRds:
			locator, source := m.GetSrdsResourcesLocator(), m.GetScopedRdsConfigSource()
			if locator != "" && source.GetApiConfigSource().GetApiType() != corev3.ApiConfigSource_DELTA_GRPC {
				p.Report(validate.Finding{
					Check:   "locator",
					Path:    n.Path().Field("srds_resources_locator"),
					Message: fmt.Sprintf("this config source does not support srds_resources_locator %q", locator),
					Help:    "remove the locator: the file has all scopes",
				})
			}
		}
	},
	Resource: func(p *validate.LookupPass) {
		if p.Resource.Type == xds.ScopedRoutes && p.Resource.Name != "" {
			checkScope(p, p.Resource.Message().(*routev3.ScopedRouteConfiguration))
		}
		checkRouteSources(p)
	},
}

// scopesByKey maps the key of a scope to the scopes with this key. All scopes share a file, so each needs its own
// key. Under namesRoutes it has the scopes that name a route configuration.
var scopesByKey = validate.NewIndex([]*xds.Type{xds.ScopedRoutes}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	if r.Name == "" {
		return
	}
	m := r.Message().(*routev3.ScopedRouteConfiguration)
	if key := scopeKey(m); key != "" {
		add(key, r)
	}
	if m.GetRouteConfigurationName() != "" {
		add(namesRoutes, r)
	}
})

// namesRoutes can't be the key of a scope, because such keys begin with a quotation mark.
const namesRoutes = "names its routes"

func checkScope(p *validate.LookupPass, m *routev3.ScopedRouteConfiguration) {
	if m.GetRouteConfigurationName() == "" && m.GetRouteConfiguration() == nil {
		p.Report(validate.Finding{
			Check:   "no-routes",
			Message: fmt.Sprintf("scope %q has no routes", m.GetName()),
			Help:    "set route_configuration_name",
		})
	}
	key := scopeKey(m)
	if key == "" {
		return
	}
	if other, taken := scopesByKey.First(p.Snapshot, key); taken && other.Name != p.Resource.Name { // otherwise reported by duplicate-resource
		p.Report(validate.Finding{
			Check:   "same-key",
			Path:    "key",
			Message: fmt.Sprintf("scope %q has the same key as scope %q", p.Resource.Name, other.Name),
			Help:    "give each scope a unique key",
			Related: facts.Related(other, "key", "the first scope with this key"),
		})
	}
}

// scopedRDS returns the subscription of a connection manager to its scopes.
func scopedRDS(m *hcmv3.ScopedRoutes) xds.Subscription {
	return xds.Subscription{Target: xds.ScopedRoutes, Source: m.GetScopedRds().GetScopedRdsConfigSource()}
}

// routeSources has, under "", the resources that take both scopes and the route configurations of scopes from this
// Snapshot.
var routeSources = validate.NewIndex(nil, func(s *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	for _, sub := range r.Facts().Subscriptions {
		if m, ok := sub.Node.Message.(*hcmv3.ScopedRoutes); ok && s.Serves(scopedRDS(m)) && s.Serves(sub) {
			add("", r)
		}
	}
})

// checkRouteSources reports a listener that takes scopes from this tree and has no source for their route
// configurations, if a scope names a route configuration. If another listener takes route configurations from this
// tree, the scopes carry their routes, and checkRouteSources reports nothing.
func checkRouteSources(p *validate.LookupPass) {
	for _, s := range p.Resource.Facts().Subscriptions {
		scopes, ok := s.Node.Message.(*hcmv3.ScopedRoutes)
		if !ok || s.Source.GetConfigSourceSpecifier() != nil || !p.Snapshot.Serves(scopedRDS(scopes)) {
			continue
		}
		_, named := scopesByKey.First(p.Snapshot, namesRoutes)
		if named && routeSources.Lacks(p.Snapshot, "") {
			p.Report(validate.Finding{
				Check:   "rds-source",
				Path:    s.NamePath,
				Message: fmt.Sprintf("scoped routes %q need rds_config_source, since scopes refer to route configurations by name", scopes.GetName()),
				Help:    "set rds_config_source; {ads: {}} reads route configurations of this tree",
			})
		}
	}
}

func checkInlineScopes(p *validate.LookupPass, n *xds.Node, list *hcmv3.ScopedRouteConfigurationsList) {
	first := make(map[string]*routev3.ScopedRouteConfiguration)
	for i, m := range list.GetScopedRouteConfigurations() {
		f := validate.Finding{Path: n.Path().Field("scoped_route_configurations").Index(i), Help: "set route_configuration, or use scoped_rds"}
		switch {
		case m.GetRouteConfigurationName() != "" && !inlinesRoutes(p, n, m):
			f.Path = f.Path.Field("route_configuration_name")
			f.Check = "inline-rds"
			f.Message = fmt.Sprintf("inline scope %q can't use RDS", m.GetName())
			p.Report(f)
		case m.GetRouteConfigurationName() == "" && m.GetRouteConfiguration() == nil:
			f.Check = "no-routes"
			f.Message = fmt.Sprintf("inline scope %q has no route_configuration", m.GetName())
			p.Report(f)
		}
		if other := first[scopeKey(m)]; other != nil {
			p.Report(validate.Finding{
				Check:   "same-key",
				Path:    n.Path().Field("scoped_route_configurations").Index(i).Field("key"),
				Message: fmt.Sprintf("scope %q has the same key as scope %q, and replaces it", m.GetName(), other.GetName()),
				Help:    "give each scope a unique key",
				Warning: true,
			})
		}
		first[scopeKey(m)] = m
	}
}

// inlinesRoutes reports whether xdspub writes the route configuration that an inline scope names into the scope: the
// connection manager takes route configurations from this tree, which has the route configuration.
func inlinesRoutes(p *validate.LookupPass, n *xds.Node, m *routev3.ScopedRouteConfiguration) bool {
	_, scopes := xds.Enclosing[*hcmv3.ScopedRoutes](n)
	if scopes == nil {
		return false
	}
	s, ok := scopes.Subscription()
	return ok && p.Snapshot.Serves(s) && p.Snapshot.Lookup(xds.RouteConfiguration, m.GetRouteConfigurationName()) != nil
}

// scopeKey returns the key of a scope as one text. It is empty for a scope without a key, which breaks a
// constraint.
func scopeKey(m *routev3.ScopedRouteConfiguration) string {
	var key strings.Builder
	for _, fragment := range m.GetKey().GetFragments() {
		fmt.Fprintf(&key, "%q", fragment.GetStringKey())
	}
	return key.String()
}

func checkScopeKeyBuilder(p *validate.Pass, n *xds.Node, m *hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor) {
	switch {
	case m.GetExtractType() == nil:
		p.Report(validate.Finding{
			Check:   "extractor",
			Path:    n.Path(),
			Message: fmt.Sprintf("the extractor of header %q has neither index nor element", m.GetName()),
			Help:    "set element, or index: 0 for the whole value",
		})
	case m.GetIndex() > 0 && m.GetElementSeparator() == "":
		p.Report(validate.Finding{
			Check:   "extractor",
			Path:    n.Path().Field("index"),
			Message: fmt.Sprintf("index %d needs an element_separator", m.GetIndex()),
			Help:    "set element_separator, or index: 0",
		})
	}
}
