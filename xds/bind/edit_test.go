package bind_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"xdspub/tools/edits"
	"xdspub/xds"
	"xdspub/xds/bind"
)

// contents has the possible contents of each resource of TestEdit.
var contents = func() (list [][]string) {
	const (
		hcm = `{"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, %s}`
		in  = `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: l%d, filter_chains: [{filters: [{name: hcm, typed_config: ` + hcm + `}]}]}`
	)
	scoped := func(source string) string {
		return "scoped_routes: {name: s, scope_key_builder: {fragments: [{}]}, rds_config_source: {" + source + "}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}"
	}
	listed := func(source string, routes int) string {
		return fmt.Sprintf("scoped_routes: {name: s, scope_key_builder: {fragments: [{}]}, rds_config_source: {%s}, scoped_route_configurations_list: {scoped_route_configurations: [{name: s, route_configuration_name: r%d, key: {fragments: [{string_key: k}]}}]}}", source, routes)
	}
	const (
		leds     = `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c%d, endpoints: [{leds_cluster_locality_config: {leds_config: {ads: {}}, leds_collection_name: xdstp://a/envoy.config.endpoint.v3.LbEndpoint/%s}}]}`
		endpoint = `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: xdstp://a/envoy.config.endpoint.v3.LbEndpoint/%d/e%d, resource: {"@type": type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint, load_balancing_weight: %d}}`
	)
	for n := range 3 {
		eds := fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c%d, `, n)
		tls := `transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context_sds_secret_config: {name: a%d}}}}`
		routes := fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r%d`, n)
		host := fmt.Sprintf(`{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: r%d/h%%d, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h%%[1]d, domains: [%%s]}}`, n)
		scope := fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s%d, route_configuration_name: r%%d, key: {fragments: [{string_key: k%%d}]}}`, n)
		list = append(list,
			[]string{eds + "type: EDS}", eds + "type: EDS, eds_cluster_config: {service_name: c0}}", eds + "type: STATIC}", eds + fmt.Sprintf(tls, n) + "}"},
			[]string{
				fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c%d}`, n),
				fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c%d, policy: {overprovisioning_factor: 150}}`, n),
				fmt.Sprintf(leds, n, "0/*"), fmt.Sprintf(leds, n, fmt.Sprintf("%d/*", n)), fmt.Sprintf(leds, n, "0/e1"),
			},
			[]string{fmt.Sprintf(endpoint, 0, n, 1), fmt.Sprintf(endpoint, 0, n, 2)},
			[]string{fmt.Sprintf(endpoint, n, 3, 1), fmt.Sprintf(endpoint, n, 3, 2)},
			[]string{routes + "}", routes + ", vhds: {config_source: {ads: {}}}}", routes + ", ignore_port_in_host_matching: true, vhds: {config_source: {ads: {}}}}"},
			[]string{fmt.Sprintf(host, 0, "a"), fmt.Sprintf(host, 0, "b"), strings.Replace(fmt.Sprintf(host, 0, "a"), fmt.Sprintf("name: r%d/h0", n), fmt.Sprintf("resource_name: {name: r%d/h0, dynamic_parameter_constraints: {constraint: {key: env, value: prod}}}", n), 1)},
			[]string{fmt.Sprintf(host, 1, "c"), fmt.Sprintf(host, 1, "d")},
			[]string{fmt.Sprintf(scope, n, n), fmt.Sprintf(scope, (n+1)%3, n), fmt.Sprintf(scope, n, n+3)},
			[]string{
				fmt.Sprintf(in, n, fmt.Sprintf("rds: {route_config_name: r%d, config_source: {ads: {}}}", n)), fmt.Sprintf(in, n, "route_config: {name: r0, vhds: {config_source: {ads: {}}}}"),
				fmt.Sprintf(in, n, scoped("ads: {}")), fmt.Sprintf(in, n, scoped("path: /r")),
				fmt.Sprintf(in, n, listed("ads: {}", n)), fmt.Sprintf(in, n, listed("path: /r", n)),
			},
			[]string{
				fmt.Sprintf(`{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: a%d, validation_context: {}}`, n),
				fmt.Sprintf(`{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: a%d, validation_context: {only_verify_leaf_cert_crl: true}}`, n),
			},
		)
	}
	return list
}()

// TestEdit: after random changes, the results of Edit turn the old bound resources into those of a new Binder.
func TestEdit(t *testing.T) {
	reached := make(map[string]int)
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := filesWith{inline: bind.Inline{Endpoints: random.IntN(2) == 0, Routes: random.IntN(2) == 0, ScopeRoutes: random.IntN(4) > 0, Groups: random.IntN(4) > 0}}
		var b bind.Binder
		s := xds.NewSnapshot(nil)
		is := b.Bind(t.Context(), s, m)
		for range 30 {
			before := s
			s = s.Apply(edits.Random(random, s, contents))
			changes, ok := s.ChangesSince(before)
			if !ok {
				t.Fatal("the changes are not known")
			}
			changed, ok := b.Edit(s, changes)
			if !ok {
				t.Fatal("Bind is needed")
			}
			for _, e := range changed {
				reached[e.Key().Type.API]++
			}
			is = is.Apply(xds.ChangeOf(changed))
			compare(t, fmt.Sprint(seed), new(bind.Binder).Bind(t.Context(), s, m), is)
			if random.IntN(10) == 0 { // sometimes, Bind instead of Edit
				is = b.Bind(t.Context(), s, m)
			}
		}
	}
	for _, typ := range xds.Types {
		if typ != xds.ExtensionConfig && typ != xds.Runtime && reached[typ.API] == 0 {
			t.Errorf("no %s has changed", typ.Noun)
		}
	}
}

func compare(t *testing.T, history string, want, got *xds.Snapshot) {
	t.Helper()
	text := func(s *xds.Snapshot) (list []string) {
		for _, r := range s.All() {
			data, err := r.Canonical()
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf("%s %q for %v, secrets for %v", r.Key, data, r.For, r.SecretFor()))
		}
		return list
	}
	if w, g := text(want), text(got); !slices.Equal(w, g) {
		t.Fatalf("%s: bound are\n%q\nwant\n%q", history, g, w)
	}
}

// filesWith is the medium files with other inlined resources.
type filesWith struct {
	files
	inline bind.Inline
}

func (f filesWith) Inline() bind.Inline { return f.inline }
