package e2e

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
	"xdspub/tools/unixhttp"
)

// TestServeInvalidAtStart: a server that starts with an invalid source tree serves the files of its output
// directory. An Envoy that starts then gets the last valid configuration. After the tree is valid again, the Envoy
// gets the tree.
func TestServeInvalidAtStart(t *testing.T) {
	t.Parallel()
	port := envoytest.FreePort(t)
	routes := `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: %s}}}]}]}`
	s := serveTree(t, map[string]string{"listener.yaml": listener("in", port, rds("main")), "routes.yaml": fmt.Sprintf(routes, "one")})
	flags := append(s.intoOut(), "--drain-time", "1s")
	s.start(t, flags...)
	s.end(t)

	s.write(t, "bad.yaml", "name: [")
	s.begin(t, flags...)
	s.server.WaitLog(t, "event=serving-published ")
	startByADS(t, "DELTA_GRPC", s.socket)
	answers := func(want string) {
		t.Helper()
		envoytest.Eventually(t, patience, "Envoy answers "+want, func() (bool, string) {
			_, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
			return err == nil && body == want, fmt.Sprint(body, err)
		})
	}
	answers("one")
	s.write(t, "routes.yaml", fmt.Sprintf(routes, "two"))
	s.write(t, "bad.yaml", `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: good}`)
	answers("two")
}

// TestServeVariantsInvalidAtStart: the output directory has the variants for one kind of clients. A server that
// starts with an invalid source tree does not send them to other clients, and all clients keep their resources.
func TestServeVariantsInvalidAtStart(t *testing.T) {
	t.Parallel()
	s := serveTree(t, map[string]string{
		"prod.yaml":   `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: shop, type: STATIC, connect_timeout: 1s}`,
		"others.yaml": `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: shop, type: STATIC, connect_timeout: 2s}`,
		"xdspub.yaml": "when: [{files: prod.yaml, params: {env: prod}}, {files: others.yaml, params: {env: {not: prod}}}]",
	})
	flags := append(s.intoOut(), "--drain-time", "1s")
	s.start(t, flags...)
	s.end(t)

	s.write(t, "bad.yaml", "name: [")
	s.begin(t, flags...)
	s.server.WaitLog(t, "event=source-invalid ")
	s.write(t, "bad.yaml", `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: good}`)
	s.server.WaitLog(t, "event=published ")
	if log := s.server.Log(); strings.Contains(log, "event=serving-published ") {
		t.Errorf("the clients got what is in the output directory:\n%s", log)
	}
}

// intoOut sets an output directory, and returns the flags of a server on the socket that also publishes there.
func (s *servedTree) intoOut() []string {
	s.out = filepath.Join(filepath.Dir(s.src), "out")
	return []string{"--grpc", "unix:" + s.socket, "--out", s.out}
}

// end ends the server by SIGTERM.
func (s *servedTree) end(t *testing.T) {
	t.Helper()
	s.server.Signal(t, syscall.SIGTERM)
	s.server.Wait(t)
}

// startByADS starts an Envoy that gets clusters and listeners by ADS from a socket.
func startByADS(t *testing.T, api, socket string) *envoytest.Envoy {
	t.Helper()
	return envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, `
node: {id: edge, cluster: test}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: %s, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds_cluster}}]}
  cds_config: {resource_api_version: V3, ads: {}}
  lds_config: {resource_api_version: V3, ads: {}}
static_resources:
  clusters:
  - name: xds_cluster
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: xds_cluster, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: %q}}}}]}]}
`, api, socket)})
}

// TestServeRestart: while a server is down, a cluster and the route to it are replaced. With --out, the next server
// knows the resources of its clients: the old cluster stays until the routes have changed, and is removed after the
// trim delay, also by a later server. No request fails.
func TestServeRestart(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	for _, api := range []string{"GRPC", "DELTA_GRPC"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			blue, green, port := envoytest.NewUpstream(t, "blue").Port(), envoytest.NewUpstream(t, "green").Port(), envoytest.FreePort(t)
			s := serveTree(t, map[string]string{"in.yaml": listener("in", port, rds("main")), "one.yaml": documents(edsCluster("blue"), endpoints("blue", blue), routes("main", "blue"))})
			flags := s.intoOut()
			s.start(t, flags...)
			envoy := startByADS(t, api, s.socket)
			ofMain := request{port: port}
			becomes(t, "the answer", "200 blue", func() string { return ask(t, ofMain).text })

			stop := send(t, ofMain, func(answer string) bool { return answer == "200 blue" || answer == "200 green" })
			s.kill(t)
			s.write(t, "one.yaml", documents(edsCluster("green"), endpoints("green", green), routes("main", "green")))
			s.start(t, flags...)
			becomes(t, "the answer", "200 green", func() string { return ask(t, ofMain).text })
			stop()
			if n := strings.Count(s.server.Log(), "event=published "); n != 1 {
				t.Errorf("%d lines say that the tree is published", n)
			}
			// Envoy may need half a minute to connect again. A shorter trim delay would remove the cluster while
			// Envoy still has routes to it.
			s.kill(t)
			s.start(t, append(flags, "--trim-delay", "100ms")...)
			s.server.WaitLog(t, "event=resources-trimmed ")
			envoytest.Eventually(t, patience, "Envoy removes the old cluster", func() (bool, string) {
				text := envoy.Admin(t, "/clusters")
				return !strings.Contains(text, "blue::") && strings.Contains(text, "green::"), text
			})
		})
	}
}

// TestServeSecretsOfOthers: a server with --param env=prod has left a secret for prod in the output directory. The
// next server with this directory does not know whom the secret is for. It sends the secret to no client, whether
// its tree is valid or not, and serves its own tree.
func TestServeSecretsOfOthers(t *testing.T) {
	t.Parallel()
	secret := `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: %s, generic_secret: {secret: {inline_string: %s}}}`
	s := serveTree(t, map[string]string{
		"prod.yaml":   fmt.Sprintf(secret, "key", "canary"),
		"shared.yaml": fmt.Sprintf(secret, "shared", "for-all"),
		"xdspub.yaml": "when: [{files: prod.yaml, params: {env: prod}}]",
	})
	web := filepath.Join(filepath.Dir(s.src), "web.sock")
	flags := append(s.intoOut(), "--http", "unix:"+web, "--trim-delay", "1h", "--drain-time", "1s")
	ask := func() string {
		client := unixhttp.Client(web)
		client.Timeout = patience
		response, err := client.Post("http://xds/v3/discovery:secrets", "application/json", strings.NewReader(`{"node": {"id": "n"}, "resource_names": ["key", "shared"]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	s.start(t, append(flags, "--param", "env=prod")...)
	if got := ask(); !strings.Contains(got, "canary") || !strings.Contains(got, "for-all") {
		t.Fatalf("a client of --param env=prod gets %s", got)
	}
	s.end(t)

	// The tree no longer says that it had variants.
	s.write(t, "xdspub.yaml", "# no settings\n")
	s.write(t, "prod.yaml", "name: [")
	s.begin(t, flags...)
	s.server.WaitLog(t, "event=source-invalid ")
	if got := ask(); strings.Contains(got, "canary") {
		t.Errorf("while the tree is invalid, another client gets %s", got)
	}
	s.end(t)
	s.write(t, "prod.yaml", `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: good}`)
	s.start(t, flags...)
	if got := ask(); strings.Contains(got, "canary") || !strings.Contains(got, "for-all") {
		t.Errorf("a client of the next server gets %s", got)
	}
	if log := s.server.Log(); strings.Contains(log, "event=serving-published ") {
		t.Errorf("what is in the output directory was served:\n%s", log)
	}
}
