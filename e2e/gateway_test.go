package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// gateway is an Envoy Gateway without Kubernetes, whose resources are files.
type gateway struct {
	dir    string // has the certificates, the configuration and the resources
	port   int    // of the Gateway
	server *process
}

// gatewayConfig is the configuration of Envoy Gateway. The directory has all that Envoy Gateway reads and writes.
const gatewayConfig = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyGateway
gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
provider:
  type: Custom
  custom:
    resource: {type: File, file: {paths: [%[1]s/resources]}}
    infrastructure: {type: Host, host: {configHome: %[1]s, dataHome: %[1]s/data, stateHome: %[1]s/state, runtimeDir: %[1]s/run}}
extensionApis: {enableBackend: true}
`

// gatewayResources are a Gateway on a port, which runs Envoy 1.0.0, and the backends blue and green.
const gatewayResources = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, name: eg, namespace: default}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyProxy
metadata: {name: eg, namespace: default}
spec: {provider: {type: Host, host: {envoyVersion: 1.0.0}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: eg, namespace: default}
spec: {gatewayClassName: eg, listeners: [{name: http, protocol: HTTP, port: %d}]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: {name: blue, namespace: default}
spec: {endpoints: [{ip: {address: 127.0.0.1, port: %d}}]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: {name: green, namespace: default}
spec: {endpoints: [{ip: {address: 127.0.0.1, port: %d}}]}
`

// gatewayRoute is a route to a backend.
const gatewayRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec:
  parentRefs: [{name: eg}]
  hostnames: [www.example.com]
  rules: [{backendRefs: [{group: gateway.envoyproxy.io, kind: Backend, name: %s}]}]
`

// newGateway makes the certificates and the files of an Envoy Gateway, whose route leads to blue. Envoy Gateway starts
// an Envoy of its own, which would take the port of the Gateway: it starts a program that waits instead.
func newGateway(t *testing.T, program string) *gateway {
	t.Helper()
	g := &gateway{dir: t.TempDir(), port: envoytest.FreePort(t)}
	if out, err := exec.Command(program, "certgen", "--local", "--config-home", g.dir).CombinedOutput(); err != nil {
		t.Fatalf("the certificates of Envoy Gateway: %v\n%s", err, out)
	}
	own := filepath.Join(g.dir, "data/envoy-versions/1.0.0/bin/envoy")
	envoytest.Publish(t, own, "#!/bin/sh\nexec sleep infinity\n")
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	blue, green := envoytest.NewUpstream(t, "blue").Port(), envoytest.NewUpstream(t, "green").Port()
	g.write(t, "gateway.yaml", fmt.Sprintf(gatewayConfig, g.dir))
	g.write(t, "resources/gateway.yaml", fmt.Sprintf(gatewayResources, g.port, blue, green))
	g.route(t, "blue")
	g.server = start(t, program, "server", "--config-path", filepath.Join(g.dir, "gateway.yaml"))
	return g
}

func (g *gateway) write(t *testing.T, name, text string) {
	t.Helper()
	envoytest.Publish(t, filepath.Join(g.dir, name), text)
}

// route changes the backend of the route.
func (g *gateway) route(t *testing.T, backend string) {
	t.Helper()
	g.write(t, "resources/route.yaml", fmt.Sprintf(gatewayRoute, backend))
}

// watch returns a fixture whose watch follows Envoy Gateway, with the certificate that Envoy Gateway has made for its
// Envoys.
func (g *gateway) watch(t *testing.T, transport string) *fixture {
	t.Helper()
	certs := filepath.Join(g.dir, "certs/envoy")
	m := newFixture(t, nil, "--node-id", "edge", "--node-cluster", "default/eg", "--upstream-transport", transport,
		"--upstream-ca", filepath.Join(certs, "ca.crt"), "--upstream-cert", filepath.Join(certs, "tls.crt"),
		"--upstream-key", filepath.Join(certs, "tls.key"), "--upstream-server-name", "envoy-gateway")
	m.src = "xds://127.0.0.1:18000"
	return m
}

// TestGateway: a watch follows an Envoy Gateway by each transport, and an Envoy runs from the files of the watch. Its
// requests take the route of Envoy Gateway, also after a change of the route. When Envoy Gateway is killed and the
// Envoy restarts, the requests still take the last route.
//
// XDSPUB_GATEWAY is the path of Envoy Gateway, which takes fixed ports: the test needs a network namespace of its own.
func TestGateway(t *testing.T) {
	program := os.Getenv("XDSPUB_GATEWAY")
	if program == "" {
		t.Skip("NOT TESTED: XDSPUB_GATEWAY is not set. Run make soak PART=gateway")
	}
	envoytest.Binary(t)
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("ip: %v\n%s", err, out)
	}
	for _, transport := range []string{"delta-ads", "ads", "delta-grpc", "grpc"} {
		t.Run(transport, func(t *testing.T) {
			g := newGateway(t, program)
			m := g.watch(t, transport)
			m.startWatch(t)
			m.startEnvoy(t)
			answer := func() string { return ask(t, request{port: g.port, host: "www.example.com"}).text }
			becomes(t, "the answer", "200 blue", answer)
			g.route(t, "green")
			becomes(t, "the answer by the new route", "200 green", answer)
			g.server.Signal(t, syscall.SIGKILL)
			g.server.Wait(t)
			m.watch.WaitLog(t, "event=upstream-lost ")
			m.envoy.Stop(t)
			m.startEnvoy(t)
			becomes(t, "the answer without Envoy Gateway", "200 green", answer)
			content(t, m.envoy)
		})
	}
}
