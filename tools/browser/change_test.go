package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// edge is a tree with a listener, a route, endpoints and a secret. Its parameters are the name of a filter chain, the
// cluster of the route, the connect timeout of the cluster shop, the weight of an endpoint, and the secret.
const edge = `
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: edge
  address: {socket_address: {address: 127.0.0.1, port_value: 10000}}
  filter_chains:
  - name: %s
    filters:
    - name: http
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: edge
        rds: {route_config_name: main, config_source: {ads: {}, resource_api_version: V3}}
        http_filters:
        - name: router
          typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: main
  virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: %s}}]}]
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: shop, type: STATIC, connect_timeout: %s}
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: api
  type: EDS
  eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: api
  endpoints:
  - lb_endpoints:
    - {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}, load_balancing_weight: 1}
    - {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}, load_balancing_weight: %d}
- {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: token, generic_secret: {secret: {inline_string: %s}}}
`

// TestChange: the page shows what the last change does to an Envoy, also the change of a part of a refused tree. It
// shows no secret.
func TestChange(t *testing.T) {
	w, b := start(t, "--while-refused", "endpoints,secrets", "--step-gap", "0s"), open(t)
	b.visit(t, w)
	w.write(t, "edge.yaml", fmt.Sprintf(edge, "one", "shop", "1s", 1, "hidden-one"))
	b.shows(t, "#events", "LDS/edge")
	w.write(t, "edge.yaml", fmt.Sprintf(edge, "two", "api", "2s", 3, "hidden-two"))
	for _, effect := range []string{
		`listener "edge" at 127.0.0.1:10000 stays, and its filter chain "one" drains`,
		`cluster "shop" is replaced, and loses its connection pools`,
		`route configuration "main": GET http://example.com/ goes to cluster "api" instead of cluster "shop"`,
		`gives endpoint 10.0.0.2:80 75.0% of the weight instead of 50.0%`,
		`secret "token" rotates from generic secret sha256:`,
	} {
		b.shows(t, "#state .effects", effect)
	}
	b.accessible(t, "change")
	picture(t, b, "change")

	w.write(t, "bad.yaml", fmt.Sprintf(cluster, "bad", "lb_polcy: ROUND_ROBIN"))
	b.shows(t, "#state", "the source tree is invalid (1 error)")
	w.write(t, "edge.yaml", fmt.Sprintf(edge, "three", "api", "2s", 1, "hidden-three"))
	b.shows(t, "#state", "Last change, a part of the source tree")
	b.shows(t, "#state .effects", `gives endpoint 10.0.0.2:80 50.0% of the weight instead of 75.0%`)
	b.shows(t, "#state .effects", `secret "token" rotates`)
	if text := run(t, b, chromedp.Evaluate[string](`document.documentElement.innerText`)); strings.Contains(text, "hidden") {
		t.Errorf("the page shows a secret: %s", text)
	}
	if text := run(t, b, chromedp.Evaluate[string](`document.querySelector(".effects").innerText`)); strings.Contains(text, "drains") {
		t.Errorf("the page shows an effect of a change that waits: %s", text)
	}
	for _, complaint := range b.complaints {
		t.Errorf("the console says: %s", complaint)
	}
}
