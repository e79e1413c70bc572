package envoy_test

import (
	"xdspub/envoy"
)

// everything is a fixture with a subscription of each API. Each resource has the name of its folder.
type everything struct {
	*fixture
	more object // further fields of the bootstrap
}

const (
	secretType = typeURL + "envoy.extensions.transport_sockets.tls.v3.Secret"
	bufferType = typeURL + "envoy.extensions.filters.http.buffer.v3.Buffer"
	scopeType  = typeURL + "envoy.config.route.v3.ScopedRouteConfiguration"
)

func newEverything(s *fixture) everything {
	e := everything{fixture: s, more: object{"layered_runtime": object{"layers": []any{
		object{"name": "rtds", "rtds_layer": object{"name": "rtds", "rtds_config": s.source("rtds")}},
	}}}}
	for _, api := range apis {
		s.publish(api.folder, "v1", e.good(api.folder)...)
	}
	return e
}

// apis are the folders of everything, each with its API and its stat prefix.
var apis = []struct{ api, folder, root string }{
	{"SDS", "sds", envoy.SDS("sds")},
	{"EDS", "eds", envoy.EDS("c")},
	{"RDS", "rds", envoy.RDS("h", "rds")},
	{"SRDS", "srds", envoy.SRDS("s", "srds")},
	{"ECDS", "ecds", envoy.ECDS("http_filter", "ecds")},
	{"RTDS", "rtds", envoy.RTDS()},
	{"CDS", "cds", envoy.CDS()},
	{"LDS", "lds", envoy.LDS()},
}

// good returns resources of a folder's file that Envoy accepts.
func (e everything) good(folder string) []object {
	switch folder {
	case "sds":
		return []object{{"@type": secretType, "name": "sds", "validation_context": object{"trust_chain_verification": "ACCEPT_UNTRUSTED"}}}
	case "eds":
		return []object{{"@type": typeURL + "envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "eds"}}
	case "rds":
		return []object{routes("rds", "")}
	case "srds":
		return []object{{"@type": scopeType, "name": "scope", "route_configuration_name": "rds", "key": object{"fragments": []any{object{"string_key": "x"}}}}}
	case "ecds":
		return []object{{"@type": typeURL + "envoy.config.core.v3.TypedExtensionConfig", "name": "ecds", "typed_config": object{"@type": bufferType, "max_request_bytes": 5}}}
	case "rtds":
		return []object{{"@type": typeURL + "envoy.service.runtime.v3.Runtime", "name": "rtds", "layer": object{"a": 1}}}
	case "cds":
		cluster := static("c")
		cluster["type"] = "EDS"
		cluster["eds_cluster_config"] = object{"service_name": "eds", "eds_config": e.source("eds")}
		cluster["transport_socket"] = object{"name": "tls", "typed_config": object{
			"@type":              typeURL + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
			"common_tls_context": object{"validation_context_sds_secret_config": object{"name": "sds", "sds_config": e.source("sds")}},
		}}
		return []object{cluster}
	}
	rds := listener("l", 0, object{
		"rds":          object{"route_config_name": "rds", "config_source": e.source("rds")},
		"http_filters": []any{object{"name": "ecds", "config_discovery": object{"config_source": e.source("ecds"), "type_urls": []any{bufferType}}}, router},
	})
	srds := listener("s", 0, object{"stat_prefix": "s", "scoped_routes": object{
		"name":              "srds",
		"scope_key_builder": object{"fragments": []any{object{"header_value_extractor": object{"name": "x", "index": 0}}}},
		"scoped_rds":        object{"scoped_rds_config_source": e.source("srds")},
		"rds_config_source": e.source("rds"),
	}})
	return []object{rds, srds}
}
