package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// Source documents, each one line of YAML in the style of JSON. config has further fields, such as
// `connect_timeout: 3s`.

// document returns a resource of a type. config is a format for args.
func document(typ, config string, args ...any) string {
	return fmt.Sprintf(`{"@type": type.googleapis.com/`+typ+`, `+config+"}\n", args...)
}

// documents returns a YAML file of documents.
func documents(list ...string) string { return strings.Join(list, "---\n") }

// staticCluster returns a cluster with one endpoint on 127.0.0.1.
func staticCluster(name string, port int, config ...string) string {
	return document("envoy.config.cluster.v3.Cluster", `name: %q, type: STATIC, load_assignment: %s%s`, name, assignment(name, port), more(config))
}

// edsCluster returns an EDS cluster, which asks for the endpoints of its own name.
func edsCluster(name string, config ...string) string {
	return document("envoy.config.cluster.v3.Cluster", `name: %q, type: EDS%s`, name, more(config))
}

func endpoints(name string, port int) string {
	return `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, ` + assignment(name, port)[1:] + "\n"
}

func assignment(name string, port int) string {
	return fmt.Sprintf(`{cluster_name: %q, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]}`, name, port)
}

// routes returns a route configuration with the further routes, and a route of all other requests to a cluster.
func routes(name, cluster string, further ...string) string {
	return document("envoy.config.route.v3.RouteConfiguration", `name: %q, %s`, name, hosts(cluster, further...))
}

// hosts returns the field virtual_hosts of routes.
func hosts(cluster string, further ...string) string {
	return fmt.Sprintf(`virtual_hosts: [{name: all, domains: ["*"], routes: [%s]}]`,
		strings.Join(append(further, fmt.Sprintf(`{match: {prefix: /}, route: {cluster: %q}}`, cluster)), ", "))
}

// listener returns an HTTP listener. hcm are fields of its connection manager, with the routes.
func listener(name string, port int, hcm ...string) string {
	return tlsListener(name, port, "", hcm...)
}

// tlsListener is listener with fields of the filter chain.
func tlsListener(name string, port int, chain string, hcm ...string) string {
	manager := fmt.Sprintf(`"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: %q%s`, name, more(hcm))
	if !strings.Contains(manager, "http_filters:") {
		manager += ", http_filters: [" + router + "]"
	}
	return document("envoy.config.listener.v3.Listener", `name: %q, address: {socket_address: {address: 127.0.0.1, port_value: %d}}, filter_chains: [{filters: [{name: hcm, typed_config: {%s}}]%s}]`,
		name, port, manager, more([]string{chain}))
}

const (
	router = `{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}`
	here   = `{ads: {}, resource_api_version: V3}` // "from this tree"
)

// rds returns a field of a connection manager that asks for a route configuration.
func rds(name string) string {
	return fmt.Sprintf(`rds: {route_config_name: %q, config_source: %s}`, name, here)
}

// srds returns a field of a connection manager that chooses a scope by the header x-tenant.
func srds(name string) string {
	return fmt.Sprintf(`scoped_routes: {name: %q, scope_key_builder: {fragments: [{header_value_extractor: {name: x-tenant, index: 0}}]}, rds_config_source: %[2]s, scoped_rds: {scoped_rds_config_source: %[2]s}}`, name, here)
}

func scope(name, key, routes string) string {
	return document("envoy.config.route.v3.ScopedRouteConfiguration", `name: %q, route_configuration_name: %q, key: {fragments: [{string_key: %q}]}`, name, routes, key)
}

// virtualHost returns a virtual host of VHDS for a route configuration.
func virtualHost(routes, name, domain, cluster string) string {
	return document("envoy.service.discovery.v3.Resource", `name: "%s/%s", resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: %q, domains: [%q], routes: [{match: {prefix: /}, route: {cluster: %q}}]}`,
		routes, name, name, domain, cluster)
}

func runtimeLayer(name, layer string) string {
	return document("envoy.service.runtime.v3.Runtime", `name: %q, layer: %s`, name, layer)
}

// extension returns a resource of ECDS with the configuration of a filter.
func extension(name, config string) string {
	return document("envoy.config.core.v3.TypedExtensionConfig", `name: %q, typed_config: %s`, name, config)
}

// discovered returns a filter that gets its configuration by ECDS.
func discovered(name, typ string, source ...string) string {
	return fmt.Sprintf(`{name: %q, config_discovery: {config_source: {ads: {}%s}, type_urls: [type.googleapis.com/%s]}}`, name, more(source), typ)
}

const headerMutation = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"

// responseHeader returns the configuration of a filter that adds the header x-extension to responses.
func responseHeader(value string) string {
	return fmt.Sprintf(`{"@type": type.googleapis.com/`+headerMutation+`, mutations: {response_mutations: [{append: {header: {key: x-extension, value: %q}}}]}}`, value)
}

// more returns fields, each after a comma.
func more(fields []string) string {
	var b strings.Builder
	for _, f := range fields {
		if f != "" {
			b.WriteString(", " + f)
		}
	}
	return b.String()
}

// downstreamTLS returns a filter chain's transport socket with a certificate by SDS.
func downstreamTLS(secret string, source ...string) string {
	return tlsSocket("Downstream", fmt.Sprintf(`tls_certificate_sds_secret_configs: [{name: %q, sds_config: {ads: {}%s}}]`, secret, more(source)))
}

// upstreamTLS returns a cluster's transport socket with a certificate by SDS.
func upstreamTLS(secret string) string {
	return tlsSocket("Upstream", fmt.Sprintf(`tls_certificate_sds_secret_configs: [{name: %q, sds_config: %s}]`, secret, here))
}

func tlsSocket(side, common string) string {
	return fmt.Sprintf(`transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.%sTlsContext, common_tls_context: {%s}}}`, side, common)
}

// certificate returns a secret with an inline certificate and key.
func certificate(name string, p pair) string {
	return document("envoy.extensions.transport_sockets.tls.v3.Secret", `name: %q, tls_certificate: {certificate_chain: {inline_string: %q}, private_key: {inline_string: %q}}`,
		name, p.certificate, p.key)
}

// pair is a certificate and its key, as PEM.
type pair struct{ certificate, key string }

// newPair makes a self-signed pair with a common name, which is valid for a day.
func newPair(t testing.TB, name string) pair {
	t.Helper()
	return datedPair(t, name, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour))
}

// datedPair makes a self-signed pair that is valid between two times.
func datedPair(t testing.TB, name string, from, until time.Time) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: from, NotAfter: until,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public})),
		key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
}
