package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"

	"xdspub/tools/envoytest"
)

// grpcClients are the implementations of gRPC that TestGRPCClients tries. Except for Go, they are programs whose
// packages scripts/interop installs below XDSPUB_INTEROP.
var grpcClients = []struct {
	name    string
	command func(installed string) []string // nil for grpc-go
}{
	{name: "go"},
	{"python", func(installed string) []string {
		return []string{filepath.Join(installed, "python/bin/python"), "interop/python/client.py"}
	}},
	{"node", func(installed string) []string {
		return []string{"node", "interop/node/client.js"}
	}},
	{"java", func(installed string) []string {
		return []string{"java", "-cp", filepath.Join(installed, "java", "*"), "interop/java/Client.java"}
	}},
	{"rust", func(installed string) []string { return []string{filepath.Join(installed, "rust/client")} }},
}

// TestGRPCClients has gRPC clients find a backend by xdspub serve. They call the backend all the time, while its
// endpoint and its cluster change, the server is killed and restarted, and the tree is invalid. No call fails.
func TestGRPCClients(t *testing.T) {
	installed := os.Getenv("XDSPUB_INTEROP")
	for _, c := range grpcClients {
		if c.command != nil && installed == "" {
			continue // only make interop tests this client
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			blue, green := newBackend(t, "blue"), newBackend(t, "green")
			s := serveTree(t, map[string]string{"listener.yaml": apiListener, "api.yaml": apiCluster("first", blue)})
			s.start(t)
			var call caller
			if c.command == nil {
				call = goClient(t, s.grpcBootstrap(t, "go"))
			} else {
				call = programOf(t, s, c.command(installed))
			}
			calls := callAllTheTime(t, call)
			calls.become(t, "blue")

			s.write(t, "api.yaml", apiCluster("first", green))
			calls.become(t, "green")
			s.write(t, "api.yaml", apiCluster("second", blue))
			calls.become(t, "blue")

			s.kill(t)
			calls.goOn(t, "blue")
			s.write(t, "api.yaml", apiCluster("second", green))
			s.start(t, "--trim-delay", "1ms")
			calls.become(t, "green")

			s.write(t, "api.yaml", apiCluster("second", blue)+"bogus: 1\n")
			s.server.WaitLog(t, "event=source-invalid ")
			calls.goOn(t, "green")
			s.write(t, "api.yaml", apiCluster("third", blue))
			calls.become(t, "blue")
			s.server.WaitLog(t, "event=resources-trimmed ")
			calls.goOn(t, "blue")
		})
	}
}

// TestResourceErrors has the client in Python call by a listener that does not exist. If the client reads
// resource_errors, the call fails at once with the error of the server. Otherwise, the call fails after the wait
// for a listener.
func TestResourceErrors(t *testing.T) {
	installed := os.Getenv("XDSPUB_INTEROP")
	if installed == "" {
		return // only make interop runs this test
	}
	t.Run("python", func(t *testing.T) {
		for _, test := range []struct{ name, env, want string }{
			{"read", "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING=true", "LDS resource api: the server has no resource of this name"},
			{"ignored", "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING=false", "LDS resource api: does not exist"},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				blue := newBackend(t, "blue")
				s := serveTree(t, map[string]string{"api.yaml": apiCluster("first", blue)})
				s.start(t)
				call := programOf(t, s, []string{filepath.Join(installed, "python/bin/python"), "interop/python/client.py"}, test.env)
				if _, err := call(); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("the call fails by %v, want %s", err, test.want)
				}
				s.write(t, "listener.yaml", apiListener)
				envoytest.Eventually(t, patience, "blue answers", func() (bool, string) {
					name, err := call()
					return name == "blue", fmt.Sprint(name, err)
				})
			})
		}
	})
}

const apiListener = `resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: api
  api_listener:
    api_listener:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: api
      rds: {route_config_name: api, config_source: {ads: {}}}
      http_filters:
      - name: envoy.filters.http.router
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`

// prodListener is apiListener with the name that a client with the authority prod asks for.
var prodListener = strings.Replace(apiListener, "name: api\n", "name: xdstp://prod/envoy.config.listener.v3.Listener/api\n", 1)

// apiCluster returns the resources beside apiListener: routes to a cluster with one endpoint.
func apiCluster(name string, port int) string {
	return fmt.Sprintf(`resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: api
  virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: ""}, route: {cluster: %[1]s}}]}]
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: %[1]s
  type: EDS
  eds_cluster_config: {eds_config: {ads: {}}}
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: %[1]s
  endpoints:
  - locality: {region: r}
    load_balancing_weight: 1
    lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}}}]
`, name, port)
}

// backend is a health service with its name in the trailing metadata of each answer.
type backend struct {
	*health.Server
	name string
}

func (b backend) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if err := grpc.SetTrailer(ctx, metadata.Pairs("backend", b.name)); err != nil {
		return nil, err
	}
	return b.Server.Check(ctx, r)
}

// newBackend starts a backend, and returns its port.
func newBackend(t *testing.T, name string) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(g, backend{health.NewServer(), name})
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return l.Addr().(*net.TCPAddr).Port
}

// caller makes a call, and returns the name of the answering backend.
type caller func() (backend string, err error)

// goClient returns a grpc-go client of xds:///api.
func goClient(t *testing.T, bootstrap []byte) caller {
	t.Helper()
	return goClientOf(t, bootstrap, "xds:///api")
}

// goClientOf returns a grpc-go client of a target.
func goClientOf(t *testing.T, bootstrap []byte, target string) caller {
	t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return func() (string, error) {
		for {
			backend, err := askHealth(t, conn)
			// grpc-go routes calls to a new cluster before it can pick a backend, and fails the calls that begin in
			// between, whatever the server does.
			if err == nil || !strings.Contains(err.Error(), "unknown cluster selected for RPC") {
				return backend, err
			}
		}
	}
}

// askHealth calls the health service of a backend, and returns the name of the backend.
func askHealth(t *testing.T, conn *grpc.ClientConn) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	var trailer metadata.MD
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(&trailer)); err != nil {
		return "", err
	}
	return strings.Join(trailer.Get("backend"), ","), nil
}

// programOf starts a client program, which makes a call for each line that it reads, and prints a line with the
// result.
func programOf(t *testing.T, s *servedTree, command []string, env ...string) caller {
	t.Helper()
	bootstrap := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(bootstrap, s.grpcBootstrap(t, filepath.Base(command[0])), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd := exec.Command(command[0], append(command[1:], "xds:///api")...)
	cmd.Env = append(environment(), "GRPC_XDS_BOOTSTRAP="+bootstrap, "NODE_PATH="+filepath.Join(os.Getenv("XDSPUB_INTEROP"), "node/node_modules"))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = &errs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // ends the program
		late := time.AfterFunc(stopTimeout, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", cmd, err)
		}
		if t.Failed() {
			t.Logf("%v:\n%s", cmd, errs.String())
		}
	})
	lines := bufio.NewScanner(stdout)
	return func() (string, error) {
		if _, err := io.WriteString(stdin, "\n"); err != nil {
			return "", err
		}
		if !lines.Scan() {
			return "", errors.Join(errors.New("it has ended"), lines.Err())
		}
		if message, failed := strings.CutPrefix(lines.Text(), "error: "); failed {
			return "", errors.New(message)
		}
		return lines.Text(), nil
	}
}

// calls makes calls, one after another, until the test ends. A failed call fails the test.
type calls struct {
	mu   sync.Mutex
	last string // the backend of the last answer
	err  error
	made int
}

func callAllTheTime(t *testing.T, call caller) *calls {
	c := &calls{}
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond): // leaves the processors to other processes
			}
			if !c.make(call) {
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-stopped
		if c.err != nil {
			t.Errorf("call %d is lost: %v", c.made, c.err)
		}
		t.Logf("%d calls", c.made)
	})
	return c
}

// make makes a call. It returns false if the call fails.
func (c *calls) make(call caller) bool {
	backend, err := call()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	if c.last = backend; err != nil {
		c.err = err
	}
	return err == nil
}

// become waits until a backend answers.
func (c *calls) become(t *testing.T, backend string) {
	t.Helper()
	envoytest.Eventually(t, patience, backend+" answers", func() (bool, string) {
		last, _ := c.state(t)
		return last == backend, last + " answers"
	})
}

// goOn waits until a backend has answered another 50 calls.
func (c *calls) goOn(t *testing.T, backend string) {
	t.Helper()
	_, before := c.state(t)
	envoytest.Eventually(t, patience, "calls go on", func() (bool, string) {
		last, now := c.state(t)
		if last != backend {
			t.Fatalf("%s answers, want %s", last, backend)
		}
		return now >= before+50, fmt.Sprintf("%d, were %d", now, before)
	})
}

func (c *calls) state(t *testing.T) (last string, made int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		t.Fatalf("call %d is lost: %v", c.made, c.err)
	}
	return c.last, c.made
}

// TestGRPCServer has a grpc-go server get its listener from xdspub serve. The server begins to serve when its
// listener exists, applies changed routes, and continues when xdspub serve is down.
func TestGRPCServer(t *testing.T) {
	t.Parallel()
	s := serveTree(t, map[string]string{"api.yaml": apiCluster("api", 1)})
	s.start(t)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := xds.NewGRPCServer(xds.BootstrapContentsForTesting(s.grpcBootstrap(t, "server")))
	if err != nil {
		t.Fatal(err)
	}
	grpc_health_v1.RegisterHealthServer(g, backend{health.NewServer(), "server"})
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	s.write(t, "server.yaml", fmt.Sprintf(grpcListener, l.Addr().(*net.TCPAddr).Port))
	s.write(t, "routes.yaml", fmt.Sprintf(grpcServerRoutes, "ALLOW"))

	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	calls := callAllTheTime(t, func() (string, error) {
		name, err := askHealth(t, conn)
		if status.Code(err) == codes.PermissionDenied {
			return "denied", nil
		}
		return name, err
	})
	calls.become(t, "server")
	s.kill(t)
	calls.goOn(t, "server")
	s.start(t)
	s.write(t, "routes.yaml", "bogus: 1\n")
	s.server.WaitLog(t, "event=source-invalid ")
	calls.goOn(t, "server")
	s.write(t, "routes.yaml", fmt.Sprintf(grpcServerRoutes, "DENY"))
	calls.become(t, "denied")
	s.write(t, "routes.yaml", fmt.Sprintf(grpcServerRoutes, "ALLOW"))
	calls.become(t, "server")
}

const grpcListener = `resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: grpc/server?xds.resource.listening_address=127.0.0.1:%[1]d
  address: {socket_address: {address: 127.0.0.1, port_value: %[1]d}}
  filter_chains:
  - filters:
    - name: hcm
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: server
        rds: {route_config_name: server, config_source: {ads: {}}}
        http_filters:
        - name: rbac
          typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC}
        - name: router
          typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`

const grpcServerRoutes = `resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: server
  virtual_hosts:
  - name: all
    domains: ["*"]
    routes:
    - match: {prefix: /}
      non_forwarding_action: {}
      typed_per_filter_config:
        rbac:
          "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute
          rbac: {rules: {action: %s, policies: {all: {permissions: [{any: true}], principals: [{any: true}]}}}}
`
