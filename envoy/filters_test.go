package envoy_test

import (
	"testing"

	"xdspub/envoy"
)

// TestFilterKinds has a filter of ECDS in each place for such a filter, and searches for its statistics.
func TestFilterKinds(t *testing.T) {
	s := newFixture(t)
	// discovered is a filter whose configuration is in the file of a folder.
	discovered := func(name, filter string) object {
		s.publish(name, "v1", object{"@type": typeURL + "envoy.config.core.v3.TypedExtensionConfig", "name": name, "typed_config": object{"@type": typeURL + filter}})
		return object{"name": name, "config_discovery": object{"config_source": s.source(name), "type_urls": []any{typeURL + filter}}}
	}
	chains := func(listener object) object { return listener["filter_chains"].([]any)[0].(object) }

	http := listener("http", 0, object{"route_config": object{}, "http_filters": []any{
		discovered("http", "envoy.extensions.filters.http.cors.v3.Cors"),
		object{"name": "composite", "typed_config": object{
			"@type":            typeURL + "envoy.extensions.common.matching.v3.ExtensionWithMatcher",
			"extension_config": object{"name": "composite", "typed_config": object{"@type": typeURL + "envoy.extensions.filters.http.composite.v3.Composite"}},
			"xds_matcher": object{"on_no_match": object{"action": object{"name": "a", "typed_config": object{
				"@type":          typeURL + "envoy.extensions.filters.http.composite.v3.ExecuteFilterAction",
				"dynamic_config": discovered("composite", "envoy.extensions.filters.http.cors.v3.Cors"),
			}}}},
		}},
		router,
	}})
	chains(http)["filters"] = append([]any{discovered("network", "envoy.extensions.filters.network.sni_cluster.v3.SniCluster")}, chains(http)["filters"].([]any)...)
	http["listener_filters"] = []any{discovered("tcp", "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector")}

	udp := object{
		"@type": typeURL + "envoy.config.listener.v3.Listener", "name": "udp", "udp_listener_config": object{},
		"address": object{"socket_address": object{"protocol": "UDP", "address": "127.0.0.1", "port_value": 0}},
		"listener_filters": []any{object{"name": "udp", "typed_config": object{
			"@type": typeURL + "envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig", "stat_prefix": "u",
			"matcher": object{"on_no_match": object{"action": object{"name": "route", "typed_config": object{
				"@type": typeURL + "envoy.extensions.filters.udp.udp_proxy.v3.Route", "cluster": "c",
			}}}},
			"session_filters": []any{discovered("session", "envoy.extensions.filters.udp.udp_proxy.session.http_capsule.v3.FilterConfig")},
		}}},
	}

	cluster := static("c")
	cluster["filters"] = []any{discovered("upstream_network", "envoy.extensions.filters.network.sni_cluster.v3.SniCluster")}
	cluster["typed_extension_protocol_options"] = object{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": object{
		"@type":                typeURL + "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
		"explicit_http_config": object{"http_protocol_options": object{}},
		"http_filters": []any{
			discovered("upstream_http", "envoy.extensions.filters.http.buffer.v3.Buffer"),
			object{"name": "codec", "typed_config": object{"@type": typeURL + "envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"}},
		},
	}}
	s.publish("cds", "v1", cluster)
	s.publish("lds", "v1", http, udp)
	e, a := s.start(nil)
	// Envoy need not accept the filter. A filter that a composite filter executes is an HTTP filter. Listeners of
	// QUIC have a kind, too, but Envoy has no filter that can come by ECDS there.
	for name, kind := range map[string]string{
		"http": "http_filter", "composite": "http_filter", "network": "network_filter", "tcp": "tcp_listener_filter",
		"session": "udp_session_filter", "upstream_network": "upstream_network_filter", "upstream_http": "upstream_http_filter",
	} {
		if got := read(t, a, envoy.ECDS(kind, name)).Counters[envoy.ECDS(kind, name)]; got.Attempts != 1 || got.Successes+got.Rejections != 1 {
			t.Errorf("%s: %+v", envoy.ECDS(kind, name), got)
		}
	}
	if t.Failed() {
		t.Log(e.Stats(t, `extension_config_discovery.*update_(rejected|success)|(lds|cds).update_rejected`))
	}
}
