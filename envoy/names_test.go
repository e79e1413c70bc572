package envoy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"xdspub/envoy"
)

// strange are names that Envoy may write differently in a statistic.
var strange = []string{
	"plain", "a.b", "a:b", "a/b", "a://b", "a:/b", "spiffe://x/y:1", "a::b", "a:", ":", ".", "..", ".a.", "..a..", "a..b",
	"a\x00b", "a b", `a"b\c`, "ä€", "a\tb", "a|b#c@d", "[a](b)*", strings.Repeat("long", 100),
}

// TestNames gives Envoy a subscription of each API for each strange name, and expects its statistics under the stat
// prefix of the functions of this package.
func TestNames(t *testing.T) {
	for api, c := range map[string]struct {
		folder  string
		add     func(s *fixture, i int, name string) object
		root    func(name string) string
		without []string // names that Envoy does not take
	}{
		"EDS": {"cds", func(s *fixture, i int, name string) object {
			folder := fmt.Sprintf("eds%d", i)
			s.publish(folder, fmt.Sprint("v", i), object{"@type": typeURL + "envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": name})
			cluster := static(name)
			cluster["type"] = "EDS"
			cluster["eds_cluster_config"] = object{"eds_config": s.source(folder)}
			return cluster
		}, envoy.EDS, nil},
		"alt_stat_name": {"cds", func(s *fixture, i int, name string) object {
			folder := fmt.Sprintf("eds%d", i)
			s.publish(folder, fmt.Sprint("v", i), object{"@type": typeURL + "envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "c" + folder})
			cluster := static("c" + folder)
			cluster["alt_stat_name"] = name
			cluster["type"] = "EDS"
			cluster["eds_cluster_config"] = object{"eds_config": s.source(folder)}
			return cluster
		}, envoy.EDS, nil},
		"RDS": {"lds", func(s *fixture, i int, name string) object {
			folder := fmt.Sprintf("rds%d", i)
			s.publish(folder, fmt.Sprint("v", i), routes(name, ""))
			return listener(folder, 0, object{"rds": object{"route_config_name": name, "config_source": s.source(folder)}})
		}, func(name string) string { return envoy.RDS("h", name) }, nil},
		"RDS of a stat_prefix": {"lds", func(s *fixture, i int, name string) object {
			folder := fmt.Sprintf("rds%d", i)
			s.publish(folder, fmt.Sprint("v", i), routes("r", ""))
			return listener(folder, 0, object{"stat_prefix": name, "rds": object{"route_config_name": "r", "config_source": s.source(folder)}})
		}, func(name string) string { return envoy.RDS(name, "r") }, nil},
		"SRDS": {"lds", func(s *fixture, i int, name string) object {
			folder := fmt.Sprintf("srds%d", i)
			s.publish(folder, fmt.Sprint("v", i))
			return listener(folder, 0, object{"scoped_routes": object{
				"name":              name,
				"scope_key_builder": object{"fragments": []any{object{"header_value_extractor": object{"name": "x", "index": 0}}}},
				"scoped_rds":        object{"scoped_rds_config_source": s.source(folder)},
				"rds_config_source": s.source("lds"),
			}})
		}, func(name string) string { return envoy.SRDS("h", name) }, nil},
		"SDS": {"cds", func(s *fixture, i int, name string) object {
			folder := fmt.Sprintf("sds%d", i)
			s.publish(folder, fmt.Sprint("v", i), object{
				"@type": typeURL + "envoy.extensions.transport_sockets.tls.v3.Secret", "name": name,
				"validation_context": object{"trust_chain_verification": "ACCEPT_UNTRUSTED"},
			})
			cluster := static(folder)
			cluster["transport_socket"] = object{"name": "tls", "typed_config": object{
				"@type":              typeURL + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"common_tls_context": object{"validation_context_sds_secret_config": object{"name": name, "sds_config": s.source(folder)}},
			}}
			return cluster
		}, envoy.SDS, nil},
		"ECDS": {"lds", func(s *fixture, i int, name string) object {
			folder := fmt.Sprintf("ecds%d", i)
			s.publish(folder, fmt.Sprint("v", i), object{
				"@type": typeURL + "envoy.config.core.v3.TypedExtensionConfig", "name": name,
				"typed_config": object{"@type": typeURL + "envoy.extensions.filters.http.buffer.v3.Buffer", "max_request_bytes": 5},
			})
			return listener(folder, 0, object{
				"route_config": object{},
				"http_filters": []any{
					object{"name": name, "config_discovery": object{"config_source": s.source(folder), "type_urls": []any{typeURL + "envoy.extensions.filters.http.buffer.v3.Buffer"}}},
					router,
				},
			})
		}, func(name string) string { return envoy.ECDS("http_filter", name) }, nil},
	} {
		t.Run(api, func(t *testing.T) {
			s := newFixture(t)
			var resources []object
			var roots []string
			versions := make(map[string][]string)
			for i, name := range strange {
				if slices.Contains(c.without, name) {
					continue
				}
				resources = append(resources, c.add(s, i, name))
				root := c.root(name)
				roots = append(roots, root)
				versions[root] = append(versions[root], fmt.Sprint("v", i))
			}
			s.publish(c.folder, "v1", resources...)
			e, a := s.start(nil)
			o := read(t, a, roots...)
			for _, root := range slices.Sorted(maps.Keys(versions)) {
				got, ok := o.Counters[root]
				if !ok || got.Successes != uint64(len(versions[root])) || !slices.Contains(versions[root], got.Version) {
					t.Errorf("root %q has %+v, want %d successes and one of %v", root, got, len(versions[root]), versions[root])
				}
			}
			if t.Failed() {
				for name, value := range e.Stats(t, `version_text$`) {
					t.Logf("Envoy has %q: %s", name, value)
				}
			}
		})
	}
}
