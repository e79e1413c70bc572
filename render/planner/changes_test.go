package planner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"xdspub/check"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
)

const (
	scope   = `{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s, route_configuration_name: main, key: {fragments: [{string_key: k}]}}`
	scope2  = `{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s2, route_configuration_name: main, key: {fragments: [{string_key: l}]}}`
	dynamic = `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, vhds: {config_source: {ads: {}}}}`
	host    = `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: main/h, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: [h]}}`
	host2   = `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: main/i, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: i, domains: [i]}}`
	filter  = `{"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, name: marker, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation}}`
)

// in returns fixture.Listener with another name and port.
func in(name, port string) string {
	return strings.NewReplacer("name: in,", "name: "+name+",", "10000", port, `"%s"`, "x").Replace(fixture.Listener)
}

// TestChanges checks that the plan of added or removed resources has only the files that change, and has the
// same result as the plan of a new Planner.
func TestChanges(t *testing.T) {
	routes := strings.Replace(fixture.RoutesTo, "%s", "blue", 1)
	other := strings.NewReplacer("name: main", "name: other", "%s", "blue").Replace(fixture.RoutesTo)
	otherIn := strings.Replace(in("second", "10001"), "route_config_name: main", "route_config_name: other", 1)
	filtered := strings.Replace(in("in", "10000"), "http_filters: [", "http_filters: [{name: marker, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation]}}, ", 1)
	mutation := strings.Replace(filter, "HeaderMutation}", "HeaderMutation, mutations: {response_mutations: [{remove: x}]}}", 1)
	secret := strings.Replace(fixture.Secret, "%s", "x", 1)
	base := []string{fixture.Blue, fixture.BlueEndpoints, routes, in("in", "10000")}
	with := func(more ...string) []string { return slices.Concat(base, more) }
	for _, tt := range []struct {
		name        string
		before, now []string
		want        string // the files of the plan
	}{
		{"a cluster and its endpoint assignment", base, with(fixture.Green, fixture.GreenEndpoints), "eds/green/eds.json cds/cds.json"},
		{"without them", with(fixture.Green, fixture.GreenEndpoints), base, ""},
		{"an endpoint assignment of a cluster that is there", with(strings.Replace(fixture.Green, "EDS", "STATIC", 1)), with(fixture.Green, fixture.GreenEndpoints), "eds/green/eds.json cds/cds.json"},
		{"a route configuration and its listener", base, with(other, otherIn), "rds/other/rds.json lds/lds.json"},
		{"without them", with(other, otherIn), base, "lds/lds.json"},
		{"a secret", base, with(secret), "sds/token/sds.json"},
		{"without it", with(secret), base, ""},
		{"a layer", base, with(fixture.Layer), "rtds/flags/rtds.json"},
		{"without it", with(fixture.Layer), base, "rtds/flags/rtds.json"},
		{"another extension config", []string{fixture.Blue, fixture.BlueEndpoints, routes, filtered, filter}, []string{fixture.Blue, fixture.BlueEndpoints, routes, filtered, mutation}, "ecds/marker/ecds.json"},
		{"a scope", with(scope), with(scope, scope2), "srds/srds.json"},
		{"without it", with(scope, scope2), with(scope), "srds/srds.json"},
		{"a virtual host", []string{dynamic, host, in("in", "10000")}, []string{dynamic, host, host2, in("in", "10000")}, "rds/main/rds.json"},
		{"without it", []string{dynamic, host, host2, in("in", "10000")}, []string{dynamic, host, in("in", "10000")}, "rds/main/rds.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fixture.New(t, func(o *pipeline.Options) {
				o.Endpoints, o.Source.Disable = planner.EndpointsFile, []string{"orphan-endpoints"}
			})
			dir := s.Open()
			s.Tree(fixture.Tree(tt.before...))
			for range 2 { // in the second pass, the transition rules are known to find nothing
				if _, err := s.P.Publish(t.Context(), dir, s.Plan()); err != nil {
					t.Fatal(err)
				}
			}
			s.P.Trust(true)
			s.Tree(fixture.Tree(tt.now...))
			plan := s.Plan()
			if got := strings.Join(filesOf(plan), " "); got != tt.want {
				t.Errorf("the plan has %q, want %q", got, tt.want)
			}
			compareCold(t, s, plan)
		})
	}
}

// filesOf returns the files of a plan, in its order.
func filesOf(plan *planner.Plan) (files []string) {
	for _, step := range plan.Change.Steps {
		for _, f := range step.Write {
			files = append(files, f.Path)
		}
	}
	return files
}

// compareCold compares a plan with the plan of a new pipeline.
func compareCold(t *testing.T, s *fixture.Fixture, plan *planner.Plan) {
	t.Helper()
	cold := pipeline.New(s.Options)
	checked, err := check.New(s.Options.Source).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, list, err := cold.Plan(t.Context(), checked.Snapshot, s.Now)
	if err != nil || len(list) > 0 {
		t.Fatal(err, list)
	}
	for _, p := range []*planner.Plan{want, plan} {
		if p.Change, err = publish.Pending(s.Options.Out, p.Change, publish.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, plan, cmpopts.IgnoreFields(planner.Plan{}, "Snapshot", "Bound"), cmpopts.IgnoreUnexported(publish.File{})); diff != "" {
		t.Errorf("the plan (-cold +warm):\n%s", diff)
	}
	if id := plan.Bound.ID(); id != plan.Delivery {
		t.Errorf("the bound resources have the id %s, and Envoy gets %s", id, plan.Delivery)
	}
}

// TestWholePlans checks which changes need a plan of all files.
func TestWholePlans(t *testing.T) {
	routes := strings.Replace(fixture.RoutesTo, "%s", "blue", 1)
	moved := strings.Replace(in("second", "10000"), "route_config_name: other", "route_config_name: main", 1)
	base := []string{fixture.Blue, fixture.BlueEndpoints, routes, in("in", "10000")}
	shared := strings.Replace(fixture.Green, "type: EDS", "type: EDS, eds_cluster_config: {service_name: blue}", 1)
	for _, tt := range []struct {
		name   string
		now    []string
		change func(t *testing.T, s *fixture.Fixture)
		whole  bool
	}{
		{"a listener leaves its address to another", []string{fixture.Blue, fixture.BlueEndpoints, routes, in("in", "10001"), moved}, nil, true},
		{"a file that a new cluster names is there", slices.Concat(base, []string{shared}), nil, false},
		{"a file that a new cluster names was removed", slices.Concat(base, []string{shared}), func(t *testing.T, s *fixture.Fixture) {
			if err := os.Remove(filepath.Join(s.Options.Out, "eds/blue/eds.json")); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fixture.New(t, func(o *pipeline.Options) { o.Endpoints = planner.EndpointsFile })
			dir := s.Open()
			s.Tree(fixture.Tree(base...))
			if _, err := s.P.Publish(t.Context(), dir, s.Plan()); err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				tt.change(t, s)
			}
			s.P.Trust(true)
			s.Tree(fixture.Tree(tt.now...))
			plan := s.Plan()
			if whole := slices.Contains(filesOf(plan), "rds/main/rds.json"); whole != tt.whole {
				t.Errorf("the plan has %v", filesOf(plan))
			}
			compareCold(t, s, plan)
		})
	}
}

// TestWarningOfWhatRuns checks that the next plan has the warning of a transition rule about the published
// state, even if the next plan is for an edit of another resource.
func TestWarningOfWhatRuns(t *testing.T) {
	const redis = `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: NAME, address: {socket_address: {address: 127.0.0.1, port_value: PORT}}, filter_chains: [{filters: [{name: redis, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy, stat_prefix: redis, prefix_routes: {catch_all_route: {cluster: blue}}, settings: {op_timeout: 1s, dns_cache_config: {name: hosts, dns_lookup_family: V4_ONLY}}}}]}]}`
	one := strings.NewReplacer("NAME", "a", "PORT", "10001").Replace(redis)
	two := strings.NewReplacer("NAME", "b", "PORT", "10002", "V4_ONLY", "V6_ONLY").Replace(redis)
	edited := strings.TrimSuffix(fixture.BlueEndpoints, "}") + ", policy: {overprovisioning_factor: 150}}"

	s := fixture.New(t, func(o *pipeline.Options) { o.Endpoints = planner.EndpointsFile })
	dir := s.Open()
	for _, step := range []struct {
		documents []string
		want      string
	}{
		{[]string{fixture.Blue, fixture.BlueEndpoints, one, two}, ""}, // nothing is published yet
		{[]string{fixture.Blue, edited, one, two}, "shared-settings-changed"},
		{[]string{fixture.Blue, fixture.BlueEndpoints, one, two}, "shared-settings-changed"},
	} {
		s.Tree(fixture.Tree(step.documents...))
		plan, list := s.Planned()
		var codes []string
		for _, d := range list {
			codes = append(codes, d.Code)
		}
		if got := strings.Join(codes, " "); got != step.want || list.HasErrors() {
			t.Errorf("%v, want %q", list, step.want)
		}
		if _, err := s.P.Publish(t.Context(), dir, plan); err != nil {
			t.Fatal(err)
		}
		s.P.Trust(true)
	}
}
