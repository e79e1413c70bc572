package bind_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/source/load"
	"xdspub/xds"
	"xdspub/xds/bind"
)

// stream is a medium that carries all types, and keeps the config sources.
type stream struct{}

func (stream) Source(xds.Subscription) *corev3.ConfigSource { return nil }
func (stream) Inline() bind.Inline                          { return bind.Inline{} }

const tree = `
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: api, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: web}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r, vhds: {config_source: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: r/h, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: [h]}}
- {"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s, route_configuration_name: r, key: {fragments: [{string_key: k}]}}
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: l, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, scoped_routes: {name: s, scope_key_builder: {fragments: [{}]}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}}}]}]}
`

func parse(t *testing.T, text string) *xds.Snapshot {
	t.Helper()
	result := load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: []byte(text)})
	if len(result.Diagnostics) > 0 {
		t.Fatal(result.Diagnostics)
	}
	return result.Snapshot()
}

// A medium that carries everything changes nothing: neither VHDS nor SRDS is inlined.
func TestNothingToBind(t *testing.T) {
	s := parse(t, tree)
	var b bind.Binder
	if bound := b.Bind(t.Context(), s, stream{}); !slices.Equal(bound.All(), s.All()) || bound.ID() != s.ID() {
		t.Errorf("bound are %v", bound.All())
	}
}

// A second Bind returns the same resources, except those that a change reaches.
func TestBindAgain(t *testing.T) {
	s := parse(t, tree)
	without := xds.NewSnapshot(slices.DeleteFunc(s.All(), func(r *xds.Resource) bool { return r.Type == xds.Endpoints }))
	var b bind.Binder
	inline := inlining{bind.Inline{Endpoints: true, ScopeRoutes: true, Groups: true}}
	first := b.Bind(t.Context(), s, inline)
	if again := b.Bind(t.Context(), s, inline); !slices.Equal(again.All(), first.All()) {
		t.Error("the same snapshot is bound again")
	}
	second := b.Bind(t.Context(), without, inline)
	for name, same := range map[string]bool{"web": false, "api": true} {
		if is := first.Lookup(xds.Cluster, name) == second.Lookup(xds.Cluster, name); is != same {
			t.Errorf("%s is the same: %v", name, is)
		}
	}
	if other := b.Bind(t.Context(), without, files{}); other.Lookup(xds.Cluster, "api") == second.Lookup(xds.Cluster, "api") {
		t.Error("another medium gets what was bound for the first")
	}
}

// Bind leaves out inlined resources, unless clients may ask for them.
func TestInline(t *testing.T) {
	s := parse(t, tree)
	for _, tt := range []struct {
		inline bind.Inline
		want   []string
	}{
		{bind.Inline{}, []string{"CDS api", "CDS web", "EDS web", "LDS l", "RDS r", "SRDS s", "VHDS r/h"}},
		{bind.Inline{Endpoints: true}, []string{"CDS api", "CDS web", "LDS l", "RDS r", "SRDS s", "VHDS r/h"}},
		{bind.Inline{Groups: true}, []string{"CDS api", "CDS web", "EDS web", "LDS l", "RDS r", "SRDS s"}},
		{bind.Inline{ScopeRoutes: true, Routes: true}, []string{"CDS api", "CDS web", "EDS web", "LDS l", "RDS r", "SRDS s", "VHDS r/h"}},
	} {
		var b bind.Binder
		var got []string
		for _, r := range b.Bind(t.Context(), s, inlining{tt.inline}).All() {
			got = append(got, r.Type.API+" "+r.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.inline, got, tt.want)
		}
	}
}

// A composed resource is for the clients that all its parts are for. Its secrets are for the clients that all parts
// with a secret are for.
func TestConstraints(t *testing.T) {
	wrapped := func(name, key, resource string) string {
		return `- {"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, resource_name: {name: ` + name + `, dynamic_parameter_constraints: {constraint: {key: ` + key + `, exists: {}}}}, resource: ` + resource + "}\n"
	}
	const (
		secret = `typed_per_filter_config: {auth: {"@type": type.googleapis.com/envoy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute, users: {inline_string: s}}}`
		hcm    = `filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, %s}}]}]`
	)
	s := parse(t, wrapped("c", "cluster", `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}`)+
		wrapped("c", "endpoints", `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c}`)+
		wrapped("l", "listener", `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: l, `+fmt.Sprintf(hcm, "rds: {route_config_name: r, config_source: {ads: {}}}")+"}")+
		wrapped("own", "listener", `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: own, `+fmt.Sprintf(hcm, "route_config: {name: r, vhds: {config_source: {ads: {}}}, "+secret+"}")+"}")+
		wrapped("r", "routes", `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r, vhds: {config_source: {ads: {}}}}`)+
		wrapped("r/a", "a", `{"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: a, domains: [a]}`)+
		wrapped("r/b", "b", `{"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: b, domains: [b], `+secret+"}")+
		wrapped("s", "scope", `{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s, route_configuration_name: r, key: {fragments: [{string_key: k}]}}`))
	for _, tt := range []struct {
		inline bind.Inline
		want   []string // name: For, SecretFor
	}{
		{bind.Inline{}, []string{"CDS c: cluster, cluster", "EDS c: endpoints, endpoints", "LDS l: listener, listener", "LDS own: listener, listener", "RDS r: routes, routes", "SRDS s: scope, scope", "VHDS r/a: a, a", "VHDS r/b: b, b"}},
		{
			bind.Inline{Endpoints: true, Groups: true},
			[]string{"CDS c: cluster and endpoints, any client", "LDS l: listener, listener", "LDS own: a and b and listener, b and listener", "RDS r: a and b and routes, b", "SRDS s: scope, scope"},
		},
		{
			bind.Inline{Routes: true, ScopeRoutes: true},
			[]string{"CDS c: cluster, cluster", "EDS c: endpoints, endpoints", "LDS l: listener, listener", "LDS own: listener, listener", "RDS r: routes, routes", "SRDS s: routes and scope, any client", "VHDS r/a: a, a", "VHDS r/b: b, b"},
		},
		{
			bind.Inline{Routes: true, ScopeRoutes: true, Groups: true},
			[]string{"CDS c: cluster, cluster", "EDS c: endpoints, endpoints", "LDS l: a and b and listener and routes, b", "LDS own: a and b and listener, b and listener", "RDS r: a and b and routes, b", "SRDS s: a and b and routes and scope, b"},
		},
	} {
		var b bind.Binder
		var got []string
		for _, r := range b.Bind(t.Context(), s, inlining{tt.inline}).All() {
			got = append(got, fmt.Sprintf("%s %s: %v, %v", r.Type.API, r.Name, r.For, r.SecretFor()))
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v:\n%s\nwant\n%s", tt.inline, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

type inlining struct{ inline bind.Inline }

func (inlining) Source(xds.Subscription) *corev3.ConfigSource { return nil }
func (i inlining) Inline() bind.Inline                        { return i.inline }
