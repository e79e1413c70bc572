package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// resource is a message outside of any bootstrap.
type resource struct {
	message string
	object  map[string]any
}

// signs recognizes a message without @type by members that only this type of resource has. All members of the
// object must be fields of the message.
var signs = []struct {
	message string
	members []string
}{
	{"envoy.config.cluster.v3.Cluster", []string{
		"load_assignment", "loadAssignment", "connect_timeout", "connectTimeout",
		"lb_policy", "lbPolicy", "eds_cluster_config", "edsClusterConfig",
	}},
	{"envoy.config.listener.v3.Listener", []string{"filter_chains", "filterChains", "default_filter_chain", "defaultFilterChain"}},
	{"envoy.config.route.v3.RouteConfiguration", []string{"virtual_hosts", "virtualHosts"}},
	{"envoy.config.endpoint.v3.ClusterLoadAssignment", []string{"endpoints"}},
	{"envoy.config.route.v3.VirtualHost", []string{"domains"}},
	{
		"envoy.extensions.transport_sockets.tls.v3.Secret",
		[]string{"tls_certificate", "tlsCertificate", "validation_context", "validationContext", "generic_secret", "genericSecret", "session_ticket_keys"},
	},
	{
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		[]string{"http_filters", "httpFilters", "route_config", "routeConfig"},
	},
	{"envoy.config.listener.v3.FilterChain", []string{"filter_chain_match", "filterChainMatch"}},
}

// guess returns the type of a message without @type by signs; empty if there is none.
func guess(object map[string]any) string {
	for _, s := range signs {
		if slices.ContainsFunc(s.members, func(key string) bool { return object[key] != nil }) && holdsOnly(object, s.message) {
			return s.message
		}
	}
	return ""
}

// place returns the function that puts the message into a bootstrap; nil if a bootstrap has no place for the
// message.
func (r resource) place() func(b *bootstrap, object map[string]any) {
	if place := places[r.message]; place != nil {
		return place
	}
	for _, category := range envoyapi.Latest.Categories(protoreflect.FullName(r.message)) {
		if place := extensionPlaces[category]; place != nil {
			return func(b *bootstrap, object map[string]any) {
				object["@type"] = xds.URLPrefix + r.message
				place(b, map[string]any{"name": "x", "typed_config": object})
			}
		}
	}
	return nil
}

// wrap makes bootstraps of resources. Resources of the same identity belong to different configurations, and so
// each goes into another bootstrap.
func wrap(resources []resource) (texts [][]byte) {
	var list []*bootstrap
	for _, r := range resources {
		id := r.identity()
		i := slices.IndexFunc(list, func(b *bootstrap) bool { return !b.taken[id] })
		if i < 0 {
			i = len(list)
			list = append(list, &bootstrap{taken: make(map[string]bool)})
		}
		list[i].taken[id] = true
		delete(r.object, "@type")
		r.place()(list[i], r.object)
	}
	for _, b := range list {
		text, err := json.MarshalIndent(map[string]any{
			"node":             map[string]any{"id": "worldwide", "cluster": "worldwide"},
			"static_resources": members{"listeners": b.listeners, "clusters": b.clusters, "secrets": b.secrets}.set(),
		}, "", " ")
		if err == nil { // an error means NaN, which YAML has and JSON lacks
			texts = append(texts, text)
		}
	}
	return texts
}

// identity returns the text by which wrap tells resources of a bootstrap apart: the type with the address, the name
// or, without both, the whole content.
func (r resource) identity() string {
	key := r.object["name"]
	if key == nil {
		key = r.object["cluster_name"]
	}
	if address := r.object["address"]; address != nil {
		key = address
	}
	if key == nil {
		key = r.object
	}
	text, _ := json.Marshal(key) // of JSON
	return r.message + " " + string(text)
}

// bootstrap is a bootstrap that wrap makes.
type bootstrap struct {
	listeners, clusters, secrets []any
	taken                        map[string]bool
}

// members is a JSON object of lists.
type members map[string][]any

// set returns the object without empty lists.
func (m members) set() map[string]any {
	object := make(map[string]any)
	for key, list := range m {
		if len(list) > 0 {
			object[key] = list
		}
	}
	return object
}

type object = map[string]any

// places has, by type of message, the function that puts a message other than an extension into a bootstrap.
var places = map[string]func(b *bootstrap, o object){
	"envoy.config.cluster.v3.Cluster":                  func(b *bootstrap, o object) { b.clusters = append(b.clusters, o) },
	"envoy.config.listener.v3.Listener":                func(b *bootstrap, o object) { b.listeners = append(b.listeners, o) },
	"envoy.extensions.transport_sockets.tls.v3.Secret": func(b *bootstrap, o object) { b.secrets = append(b.secrets, o) },
	"envoy.config.listener.v3.FilterChain":             (*bootstrap).chain,
	"envoy.config.route.v3.RouteConfiguration":         (*bootstrap).routes,
	"envoy.config.route.v3.VirtualHost": func(b *bootstrap, o object) {
		b.routes(object{"virtual_hosts": []any{o}})
	},
	"envoy.config.endpoint.v3.ClusterLoadAssignment": func(b *bootstrap, o object) {
		b.clusters = append(b.clusters, object{"name": fmt.Sprintf("assignment %d", len(b.clusters)), "type": "STATIC", "load_assignment": o})
	},
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager": (*bootstrap).manager,
}

// extensionPlaces is places for extensions, by category.
var extensionPlaces = map[string]func(b *bootstrap, extension object){
	"envoy.filters.network": func(b *bootstrap, e object) { b.chain(object{"filters": []any{e}}) },
	"envoy.filters.http":    func(b *bootstrap, e object) { b.manager(object{"http_filters": []any{e}}) },
	"envoy.filters.listener": func(b *bootstrap, e object) {
		b.chain(object{"filters": []any{}})
		b.listeners[len(b.listeners)-1].(object)["listener_filters"] = []any{e}
	},
	"envoy.access_loggers":               func(b *bootstrap, e object) { b.manager(object{"access_log": []any{e}}) },
	"envoy.tracers":                      func(b *bootstrap, e object) { b.manager(object{"tracing": object{"provider": e}}) },
	"envoy.transport_sockets.downstream": func(b *bootstrap, e object) { b.chain(object{"transport_socket": e}) },
	"envoy.transport_sockets.upstream":   func(b *bootstrap, e object) { b.cluster(object{"transport_socket": e}) },
	"envoy.clusters":                     func(b *bootstrap, e object) { b.cluster(object{"cluster_type": e}) },
	"envoy.load_balancing_policies": func(b *bootstrap, e object) {
		b.cluster(object{"load_balancing_policy": object{"policies": []any{object{"typed_extension_config": e}}}})
	},
	"envoy.upstream_options": func(b *bootstrap, e object) {
		config := e["typed_config"].(object)
		message := strings.TrimPrefix(config["@type"].(string), xds.URLPrefix)
		b.cluster(object{"typed_extension_protocol_options": object{message: config}})
	},
}

// chain puts a filter chain into a new listener.
func (b *bootstrap) chain(o object) {
	b.listeners = append(b.listeners, object{
		"name":          fmt.Sprintf("listener %d", len(b.listeners)),
		"address":       object{"socket_address": object{"address": "127.0.0.1", "port_value": 20000 + len(b.listeners)}},
		"filter_chains": []any{o},
	})
}

// manager puts a connection manager into a new listener, and adds the required fields that the connection manager
// lacks.
func (b *bootstrap) manager(o object) {
	if o["stat_prefix"] == nil && o["statPrefix"] == nil {
		o["stat_prefix"] = "x"
	}
	if !slices.ContainsFunc([]string{"rds", "route_config", "routeConfig", "scoped_routes", "scopedRoutes"}, func(key string) bool { return o[key] != nil }) {
		o["route_config"] = object{"name": "x"}
	}
	filters, _ := o["http_filters"].([]any)
	if text, _ := json.Marshal(o); !strings.Contains(string(text), ".Router\"") && o["httpFilters"] == nil {
		o["http_filters"] = append(filters, object{
			"name":         "router",
			"typed_config": object{"@type": xds.URLPrefix + "envoy.extensions.filters.http.router.v3.Router"},
		})
	}
	o["@type"] = xds.URLPrefix + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
	b.chain(object{"filters": []any{object{"name": "http", "typed_config": o}}})
}

// routes puts a route configuration into a connection manager. Unless the route configuration says otherwise, Envoy
// does not validate its clusters, as with RDS.
func (b *bootstrap) routes(o object) {
	if o["validate_clusters"] == nil && o["validateClusters"] == nil {
		o["validate_clusters"] = false
	}
	b.manager(object{"route_config": o})
}

// cluster adds a cluster, and gives it a name.
func (b *bootstrap) cluster(o object) {
	o["name"] = fmt.Sprintf("cluster %d", len(b.clusters))
	b.clusters = append(b.clusters, o)
}
