package rules_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// repeat returns the texts that make returns for 0 to n-1, joined.
func repeat(n int, make func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(make(i))
	}
	return b.String()
}

// kinds are functions that return a tree with n things of one kind: n resources, or n parts of one resource.
var kinds = map[string]func(n int) string{
	"clusters": func(n int) string {
		return repeat(n, func(i int) string { return cluster(fmt.Sprint("c", i), "") })
	},
	"clusters of one name": func(n int) string {
		return repeat(n, func(int) string { return cluster("c", "") })
	},
	"clusters that lead to the next": func(n int) string {
		return repeat(n, func(i int) string {
			return fmt.Sprintf("- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: c%d\n  lb_policy: CLUSTER_PROVIDED\n  cluster_type: {name: a, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [c%d]}}\n", i, (i+1)%n)
		})
	},
	"endpoints": func(n int) string {
		return cluster("c", "load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: ["+repeat(n, func(i int) string {
			return fmt.Sprintf("{endpoint: {address: {socket_address: {address: 10.%d.%d.%d, port_value: 80}}}}, ", i>>16, i>>8&255, i&255)
		})+"]}]}")
	},
	"endpoints that are one": func(n int) string {
		return cluster("c", "load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: ["+repeat(n, func(int) string {
			return "{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}, "
		})+"]}]}")
	},
	"localities": func(n int) string {
		return cluster("c", "load_assignment: {cluster_name: c, endpoints: ["+repeat(n, func(i int) string {
			return fmt.Sprintf("{locality: {zone: z%d}, lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}, ", i)
		})+"]}")
	},
	"endpoint assignments": func(n int) string {
		return repeat(n, func(i int) string {
			return cluster(fmt.Sprint("c", i), "type: EDS, eds_cluster_config: {eds_config: {ads: {}}}") +
				fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c%d, endpoints: []}\n", i)
		})
	},
	"endpoint assignments of nobody": func(n int) string {
		return repeat(n, func(i int) string {
			return fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c%d, endpoints: []}\n", i)
		})
	},
	"transport socket matches": func(n int) string {
		return cluster("c", "transport_socket_matches: ["+repeat(n, func(i int) string {
			return fmt.Sprintf("{name: m%d, match: {a: %d}, transport_socket: {name: raw, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}}, ", i, i)
		})+"]")
	},
	"domains": func(n int) string {
		return hosts("- {name: v, domains: [" + repeat(n, func(i int) string { return fmt.Sprintf("d%d.example, ", i) }) + "], routes: []}\n")
	},
	"domains that are one": func(n int) string {
		return hosts("- {name: v, domains: [" + repeat(n, func(int) string { return "d.example, " }) + "], routes: []}\n")
	},
	"virtual hosts": func(n int) string {
		return hosts(repeat(n, func(i int) string { return fmt.Sprintf("- {name: v%d, domains: [d%d.example], routes: []}\n  ", i, i) }))
	},
	"virtual hosts of one name": func(n int) string {
		return hosts(repeat(n, func(i int) string { return fmt.Sprintf("- {name: v, domains: [d%d.example], routes: []}\n  ", i) }))
	},
	"routes": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: [" + repeat(n, func(i int) string { return fmt.Sprintf("{match: {path: /r%d}, direct_response: {status: 200}}, ", i) }) + "]}\n")
	},
	"routes by prefix": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: [" + repeat(n, func(i int) string {
			return fmt.Sprintf("{match: {prefix: /r%d/}, direct_response: {status: 200}}, ", i)
		}) + "]}\n")
	},
	"routes that are one": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: [" + repeat(n, func(int) string { return "{match: {prefix: /r}, direct_response: {status: 200}}, " }) + "]}\n")
	},
	"routes with headers": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: [" + repeat(n, func(i int) string {
			return fmt.Sprintf("{match: {prefix: /, headers: [{name: a, string_match: {exact: v%d}}]}, direct_response: {status: 200}}, ", i)
		}) + "]}\n")
	},
	"headers of a route": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: [{match: {prefix: /, headers: [" + repeat(n, func(i int) string {
			return fmt.Sprintf("{name: h%d, string_match: {exact: v}}, ", i)
		}) + "]}, direct_response: {status: 200}}]}\n")
	},
	"headers that are added": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: [], request_headers_to_add: [" + repeat(n, func(i int) string {
			return fmt.Sprintf("{header: {key: h%d, value: '%%START_TIME%%'}}, ", i)
		}) + "]}\n")
	},
	"weighted clusters": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {weighted_clusters: {clusters: ["+repeat(n, func(i int) string {
			return fmt.Sprintf("{name: c, weight: %d}, ", i+1)
		})+"]}}}]}\n") + cluster("c", "")
	},
	"routes to what is not there": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: ["+repeat(n, func(i int) string {
			return fmt.Sprintf("{match: {path: /r%d}, route: {cluster: service-%d-x}}, ", i, i)
		})+"]}\n") + repeat(n, func(i int) string { return cluster(fmt.Sprintf("service-%d", i), "") })
	},
	"route configurations": func(n int) string {
		return repeat(n, func(i int) string {
			return strings.Replace(hosts("- {name: v, domains: ['*'], routes: []}\n"), "name: r", fmt.Sprint("name: r", i), 1)
		})
	},
	"route configurations that ask for hosts": func(n int) string {
		return repeat(n, func(i int) string {
			return fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r%d, vhds: {config_source: {ads: {}}}}\n", i) +
				fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource, name: r%d/h, resource: {\"@type\": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: ['*'], routes: []}}\n", i)
		})
	},
	"scopes": func(n int) string {
		return repeat(n, func(i int) string {
			return fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s%d, route_configuration_name: r, key: {fragments: [{string_key: k%d}]}}\n", i, i)
		}) + hosts("- {name: v, domains: ['*'], routes: []}\n")
	},
	"scopes of one key": func(n int) string {
		return repeat(n, func(i int) string {
			return fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s%d, route_configuration_name: r, key: {fragments: [{string_key: k}]}}\n", i)
		}) + hosts("- {name: v, domains: ['*'], routes: []}\n")
	},
	"listeners": func(n int) string {
		return repeat(n, func(i int) string {
			return listener(fmt.Sprint("l", i), fmt.Sprintf("10.0.%d.%d", i>>8, i&255), chain("web"))
		})
	},
	"listeners on one address": func(n int) string {
		return repeat(n, func(i int) string { return listener(fmt.Sprint("l", i), "10.0.0.1", chain("web")) })
	},
	"listeners on one port": func(n int) string {
		return listener("all", "0.0.0.0", chain("web")) + repeat(n, func(i int) string {
			return listener(fmt.Sprint("l", i), fmt.Sprintf("10.0.%d.%d", i>>8, i&255), chain("web"))
		})
	},
	"addresses of a listener": func(n int) string {
		return strings.TrimSuffix(listener("l", "10.0.0.1", chain("web")), "\n") + "\n  additional_addresses: [" + repeat(n, func(i int) string {
			return fmt.Sprintf("{address: {socket_address: {address: 10.1.%d.%d, port_value: 80}}}, ", i>>8, i&255)
		}) + "]\n"
	},
	"internal listeners that lead to the next": func(n int) string {
		return repeat(n, func(i int) string {
			return fmt.Sprintf("- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n  name: l%d\n  internal_listener: {}\n  filter_chains: [{filters: [{name: t, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: c%d}}]}]\n", i, i) +
				cluster(fmt.Sprint("c", i), fmt.Sprintf("load_assignment: {cluster_name: c%d, endpoints: [{lb_endpoints: [{endpoint: {address: {envoy_internal_address: {server_listener_name: l%d}}}}]}]}", i, (i+1)%n))
		})
	},
	"filter chains": func(n int) string {
		return listener("l", "10.0.0.1", repeat(n, func(i int) string { return chain(fmt.Sprintf("n%d.example", i)) }))
	},
	"filter chains that are one": func(n int) string {
		return listener("l", "10.0.0.1", repeat(n, func(int) string { return chain("web") }))
	},
	"values of filter chains": func(n int) string {
		names := repeat(n, func(i int) string { return fmt.Sprintf("n%d.example, ", i) })
		ranges := repeat(n, func(i int) string {
			return fmt.Sprintf("{address_prefix: 10.0.%d.%d, prefix_len: 32}, ", i>>8, i&255)
		})
		return listener("l", "10.0.0.1", repeat(2, func(i int) string {
			return fmt.Sprintf("\n  - {filter_chain_match: {destination_port: %d, server_names: [%s], prefix_ranges: [%s], source_prefix_ranges: [%s]}, filters: []}", i+1, names, ranges, ranges)
		}))
	},
	"filters": func(n int) string {
		return manager("http_filters: [" + repeat(n, func(i int) string {
			return fmt.Sprintf("{name: f%d, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1}}, ", i)
		}) + router + "], route_config: {}")
	},
	"configurations per filter": func(n int) string {
		return manager("http_filters: [" + router + "], route_config: {virtual_hosts: [{name: v, domains: ['*'], routes: [], typed_per_filter_config: {" + repeat(n, func(i int) string {
			return fmt.Sprintf("f%d: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true}, ", i)
		}) + "}}]}")
	},
	"access logs": func(n int) string {
		return manager("route_config: {}, http_filters: [" + router + "], access_log: [" + repeat(n, func(i int) string {
			return fmt.Sprintf("{name: a, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /x/%d}}, ", i)
		}) + "]")
	},
	"connection managers of one route configuration": func(n int) string {
		return hosts("- {name: v, domains: ['*'], routes: []}\n") + repeat(n, func(i int) string {
			return strings.Replace(manager("http_filters: ["+router+"], rds: {route_config_name: r, config_source: {ads: {}}}"), "name: l", fmt.Sprint("name: l", i), 1)
		})
	},
	"JWT providers that rules name": func(n int) string {
		return manager("route_config: {}, http_filters: [{name: jwt, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication, providers: {" +
			repeat(n, func(i int) string {
				return fmt.Sprintf("p%d: {local_jwks: {inline_string: '{\"keys\":[{\"kty\":\"oct\",\"k\":\"AQAB\"}]}'}}, ", i)
			}) +
			"}, rules: [" + repeat(n, func(i int) string { return fmt.Sprintf("{match: {path: /%d}, requires: {provider_name: p%d}}, ", i, i) }) + "]}}, " + router + "]")
	},
	"named filter chains that actions name": func(n int) string {
		const composite = "type.googleapis.com/envoy.extensions.filters.http.composite.v3"
		return manager("route_config: {}, http_filters: [{name: c, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher, extension_config: {name: c, typed_config: {\"@type\": " + composite + ".Composite, named_filter_chains: {" +
			repeat(n, func(i int) string { return fmt.Sprintf("chain%d: {typed_config: []}, ", i) }) + "}}}, xds_matcher: {matcher_tree: {" +
			"input: {name: i, typed_config: {\"@type\": type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput, header_name: x}}, exact_match_map: {map: {" +
			repeat(n, func(i int) string {
				return fmt.Sprintf("v%d: {action: {name: a, typed_config: {\"@type\": %s.ExecuteFilterAction, filter_chain_name: chain%d}}}, ", i, composite, i)
			}) + "}}}}}}, " + router + "]")
	},
	"routes that allow redirects to routes": func(n int) string {
		const policy = "internal_redirect_policy: {predicates: [{name: a, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.internal_redirect.allow_listed_routes.v3.AllowListedRoutesConfig"
		return hosts("- {name: v, domains: ['*'], routes: ["+repeat(n, func(i int) string {
			return fmt.Sprintf("{name: r%d, match: {path: /r%d}, route: {cluster: c, %s, allowed_route_names: [r%d]}}]}}}, ", i, i, policy, i)
		})+"]}\n") + cluster("c", "")
	},
	"unknown names of configurations per filter": func(n int) string {
		return manager("http_filters: [" + repeat(n, func(i int) string {
			return fmt.Sprintf("{name: f%d, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1}}, ", i)
		}) + router + "], route_config: {virtual_hosts: [{name: v, domains: ['*'], routes: [], typed_per_filter_config: {" + repeat(n, func(i int) string {
			return fmt.Sprintf("g%d: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true}, ", i)
		}) + "}}]}")
	},
	"secrets": func(n int) string {
		return repeat(n, func(i int) string {
			return fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: s%d, generic_secret: {secret: {inline_string: x}}}\n", i)
		})
	},
	"layers": func(n int) string {
		return repeat(n, func(i int) string {
			return fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: l%d, layer: {a: %d}}\n", i, i)
		})
	},
	"keys of a layer": func(n int) string {
		return "- {\"@type\": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: l, layer: {" + repeat(n, func(i int) string { return fmt.Sprintf("k%d: %d, ", i, i) }) + "}}\n"
	},
}

const router = `{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}`

func cluster(name, more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf("- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %s, connect_timeout: 1s%s}\n", name, more)
}

func hosts(list string) string {
	return "- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n  name: r\n  virtual_hosts:\n  " + list
}

func listener(name, address, chains string) string {
	return fmt.Sprintf("- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n  name: %s\n  address: {socket_address: {address: %s, port_value: 80}}\n  filter_chains:%s\n", name, address, chains)
}

func chain(serverName string) string {
	return fmt.Sprintf("\n  - {filter_chain_match: {server_names: [%s]}, filters: [{name: e, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}", serverName)
}

func manager(more string) string {
	return listener("l", "10.0.0.1", fmt.Sprintf("\n  - {filters: [{name: h, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, %s}}]}", more))
}

// TestGrowth: the memory for references to names in the same resource grows no faster than the number of
// references.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("allocates hundreds of megabytes, in one goroutine: nothing for the race detector")
	}
	for _, kind := range []string{
		"JWT providers that rules name", "named filter chains that actions name",
		"routes that allow redirects to routes", "unknown names of configurations per filter",
	} {
		allocated := func(n int) uint64 {
			loaded := load.Parse(load.Input{Name: "a.yaml", Format: "yaml", Data: []byte(kinds[kind](n))})
			if loaded.Diagnostics.HasErrors() || len(loaded.Resources()) == 0 {
				t.Fatal(kind, loaded.Diagnostics[0])
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			validate.Run(t.Context(), loaded.Snapshot(), rules.All, validate.Options{})
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := allocated(500), allocated(2000); many > 7*few {
			t.Errorf("%s: %d bytes are allocated for 500, %d for 2000", kind, few, many)
		}
	}
}

// BenchmarkGrowth judges trees of doubling size. If the time is linear, ns/unit, the time for one thing, hardly
// grows.
func BenchmarkGrowth(b *testing.B) {
	for kind, text := range kinds {
		for _, n := range []int{1_000, 2_000, 4_000, 8_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				loaded := load.Parse(load.Input{Name: "a.yaml", Format: "yaml", Data: []byte(text(n))})
				if loaded.Diagnostics.HasErrors() || len(loaded.Resources()) == 0 {
					b.Fatal(loaded.Diagnostics[0])
				}
				for b.Loop() {
					validate.Run(b.Context(), loaded.Snapshot(), rules.All, validate.Options{})
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/unit")
			})
		}
	}
}
