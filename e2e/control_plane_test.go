package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	listenerservice "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routeservice "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"xdspub/source/load"
	"xdspub/source/upstream"
	"xdspub/tools/envoytest"
	"xdspub/tools/unixhttp"
	"xdspub/xds"
)

// following returns a fixture whose watch follows a control plane on a socket.
func following(t *testing.T, socket string, args ...string) *fixture {
	t.Helper()
	m := newFixture(t, nil, append(args, "--node-id", "edge", "--quiet-period", "20ms")...)
	m.src = "xds+unix:" + socket
	return m
}

// straight starts an Envoy that asks a control plane itself, and gives up soon.
func straight(t *testing.T, socket string) *envoytest.Envoy {
	t.Helper()
	return straightOf(t, socket, "test")
}

// straightOf is straight for an Envoy of a cluster.
func straightOf(t *testing.T, socket, cluster string) *envoytest.Envoy {
	t.Helper()
	return envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, `
node: {id: edge, cluster: %s}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: plane}}]}
  cds_config: {resource_api_version: V3, ads: {}, initial_fetch_timeout: 1s}
  lds_config: {resource_api_version: V3, ads: {}, initial_fetch_timeout: 1s}
static_resources:
  clusters:
  - name: plane
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: plane, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: %q}}}}]}]}
`, cluster, socket)})
}

// TestLastKnownGood kills a control plane, and restarts the Envoy behind a watch that follows the control plane: the
// Envoy has the last valid configuration. An Envoy that asks the control plane itself comes up empty. The watch is
// killed, too, and starts without the control plane. Only requests during Envoy's own restart fail.
func TestLastKnownGood(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	blue, green, port := envoytest.NewUpstream(t, "blue").Port(), envoytest.NewUpstream(t, "green").Port(), envoytest.FreePort(t)
	s := serveTree(t, map[string]string{"in.yaml": listener("in", port, rds("main")), "one.yaml": documents(edsCluster("blue"), endpoints("blue", blue), routes("main", "blue"))})
	s.start(t, "--grpc", "unix:"+s.socket)
	of := request{port: port}
	answer := func() string { return ask(t, of).text }
	live := straight(t, s.socket)
	becomes(t, "the answer of an Envoy at the control plane", "200 blue", answer)
	live.Stop(t)

	m := following(t, s.socket, "--max-stale", "100ms")
	m.http = filepath.Join(filepath.Dir(s.socket), "http")
	m.startWatch(t)
	m.startEnvoy(t)
	becomes(t, "the answer", "200 blue", answer)
	becomes(t, "the readiness", "200 ok", func() string { return readiness(t, m.http) })
	out := m.published(t)
	isBlue := func(answer string) bool { return answer == "200 blue" }
	stop := send(t, of, isBlue)
	s.kill(t)
	m.watch.WaitLog(t, "event=upstream-lost ")
	becomes(t, "the readiness", "503 not ready", func() string { return readiness(t, m.http) })
	if text, _, exit := xdspub(t, "status", "--out", m.out); exit != 1 || !strings.HasPrefix(text, "not in sync: the control plane is gone since ") {
		t.Errorf("status: exit status %d\n%s", exit, text)
	}
	stop()
	m.envoy.Stop(t)
	m.startEnvoy(t)
	becomes(t, "the answer after a restart", "200 blue", answer)
	stop = send(t, of, isBlue)
	m.watch.Signal(t, syscall.SIGKILL)
	m.watch.Wait(t)
	m.beginWatch(t)
	m.watch.WaitLog(t, "event=failed ")
	stop()
	if is := m.published(t); is != out {
		t.Errorf("the published files have changed:\n%s\n%s", out, is)
	}
	m.envoy.Stop(t)
	empty := straight(t, s.socket)
	if text := empty.Admin(t, "/listeners"); text != "" {
		t.Errorf("an Envoy without a control plane has listeners: %s", text)
	}
	empty.Stop(t)

	m.startEnvoy(t)
	becomes(t, "the answer after another restart", "200 blue", answer)
	stop = send(t, of, func(answer string) bool { return answer == "200 blue" || answer == "200 green" })
	s.write(t, "one.yaml", documents(edsCluster("green"), endpoints("green", green), routes("main", "green")))
	s.start(t, "--grpc", "unix:"+s.socket)
	m.watch.WaitLog(t, "event=upstream-connected ")
	becomes(t, "the readiness", "200 ok", func() string { return readiness(t, m.http) })
	becomes(t, "the answer of the next control plane", "200 green", answer)
	stop()
	content(t, m.envoy)
}

// TestRelay: a server follows a control plane, and serves its resources. The control plane is killed, and a new Envoy
// gets the last valid configuration; also from a new server, which has the resources in its output directory.
func TestRelay(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	blue, port := envoytest.NewUpstream(t, "blue").Port(), envoytest.FreePort(t)
	s := serveTree(t, map[string]string{"all.yaml": documents(listener("in", port, rds("main")), edsCluster("blue"), endpoints("blue", blue), routes("main", "blue"))})
	s.start(t, "--grpc", "unix:"+s.socket)
	socket := filepath.Join(filepath.Dir(s.socket), "relay")
	relay := func(want string) *process {
		t.Helper()
		p := start(t, watcher, "serve", "--grpc", "unix:"+socket, "--out", filepath.Join(filepath.Dir(s.socket), "out"), "--node-id", "relay", "xds+unix:"+s.socket)
		p.WaitLog(t, want)
		return p
	}
	served := func() {
		t.Helper()
		envoy := straight(t, socket)
		becomes(t, "the answer", "200 blue", func() string { return ask(t, request{port: port}).text })
		envoy.Stop(t)
	}
	first := relay("event=published ")
	served()
	s.kill(t)
	first.WaitLog(t, "event=upstream-lost ")
	served()
	first.Signal(t, syscall.SIGKILL)
	first.Wait(t)
	relay("event=serving-published ")
	served()
}

// TestAggregates: a relay asks a control plane for Envoys of two clusters, each with its own listener. Without the
// control plane, a new Envoy gets the last valid configuration of its cluster, and an Envoy of an unknown cluster
// gets nothing.
func TestAggregates(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	web, api := envoytest.FreePort(t), envoytest.FreePort(t)
	blue, green := envoytest.NewUpstream(t, "blue").Port(), envoytest.NewUpstream(t, "green").Port()
	s := serveTree(t, map[string]string{
		"web/all.yaml":    documents(listener("web", web, rds("web")), edsCluster("blue"), endpoints("blue", blue), routes("web", "blue")),
		"api/all.yaml":    documents(listener("api", api, rds("api")), edsCluster("green"), endpoints("green", green), routes("api", "green")),
		"web/xdspub.yaml": "when: {role: web}\n", "api/xdspub.yaml": "when: {role: api}\n",
	})
	s.start(t, "--grpc", "unix:"+s.socket, "--node-param", "role=cluster")
	socket := filepath.Join(filepath.Dir(s.socket), "relay")
	relay := start(t, watcher, "serve", "--grpc", "unix:"+socket, "--node-id", "relay", "--node-cluster", "web", "--aggregate-by", "cluster", "xds+unix:"+s.socket)
	relay.WaitLog(t, "event=published ")
	first, second := straightOf(t, socket, "web"), straightOf(t, socket, "api")
	becomes(t, "the answer to web", "200 blue", func() string { return ask(t, request{port: web}).text })
	becomes(t, "the answer to api", "200 green", func() string { return ask(t, request{port: api}).text })
	text, _, _ := xdspub(t, "status", "--serve", "unix:"+s.socket)
	if n := strings.Count(text, "client \"relay\""); n != 2 || strings.Contains(text, "edge") {
		t.Errorf("the control plane has other clients than the relay:\n%s", text)
	}
	if admin := first.Admin(t, "/listeners"); strings.Contains(admin, fmt.Sprint(api)) {
		t.Errorf("an Envoy of web has the listener of api: %s", admin)
	}
	s.kill(t)
	relay.WaitLog(t, "event=upstream-lost target=aggregate-1 ")
	first.Stop(t)
	second.Stop(t)
	straightOf(t, socket, "api")
	becomes(t, "the answer without the control plane", "200 green", func() string { return ask(t, request{port: api}).text })
	if admin := straightOf(t, socket, "unknown").Admin(t, "/listeners"); admin != "" {
		t.Errorf("an Envoy of an unknown cluster has listeners: %s", admin)
	}
}

// readiness returns the status and the first line of /readyz.
func readiness(t *testing.T, socket string) string {
	t.Helper()
	response, err := unixhttp.Client(socket).Get("http://xdspub/readyz")
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	first, _, _ := strings.Cut(string(text), "\n")
	return fmt.Sprint(response.StatusCode, " ", first)
}

// plane is the server of go-control-plane, and what its client has answered.
type plane struct {
	cache  cachev3.SnapshotCache
	socket string
	n      int

	mu      sync.Mutex
	answers []string // ACK, or the words of a NACK, after the API of the type
}

func startPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{cache: cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil), socket: filepath.Join(t.TempDir(), "s")}
	server := serverv3.NewServer(t.Context(), p.cache, serverv3.CallbackFuncs{
		StreamDeltaRequestFunc: func(_ int64, r *discoveryv3.DeltaDiscoveryRequest) error {
			if r.GetNode().GetId() == "denied" {
				return status.Error(codes.PermissionDenied, "nothing for this node")
			}
			p.hear(r.GetTypeUrl(), r.GetResponseNonce(), r.GetErrorDetail())
			return nil
		},
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			p.hear(r.GetTypeUrl(), r.GetResponseNonce(), r.GetErrorDetail())
			return nil
		},
	})
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, server)
	clusterservice.RegisterClusterDiscoveryServiceServer(g, server)
	endpointservice.RegisterEndpointDiscoveryServiceServer(g, server)
	listenerservice.RegisterListenerDiscoveryServiceServer(g, server)
	routeservice.RegisterRouteDiscoveryServiceServer(g, server)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	t.Cleanup(func() { g.Stop(); serving.Wait() })
	return p
}

// hear keeps an answer of the client.
func (p *plane) hear(url, nonce string, refused *rpcstatus.Status) {
	if nonce != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.answers = append(p.answers, strings.TrimPrefix(url, "type.googleapis.com/envoy.config.")+": "+refused.GetMessage())
	}
}

// set serves the resources of YAML documents to the node edge, and forgets the answers.
func (p *plane) set(t *testing.T, text string) {
	t.Helper()
	p.setFor(t, "edge", text)
}

// setFor is set for a node.
func (p *plane) setFor(t *testing.T, node, text string) {
	t.Helper()
	read := load.AsWritten(load.Input{Name: "plane.yaml", Format: "yaml", Data: []byte(text)})
	all := make(map[string][]types.Resource)
	for _, r := range read.Resources() {
		all[r.Type.URL()] = append(all[r.Type.URL()], r.Message())
	}
	p.n++
	snapshot, err := cachev3.NewSnapshot(fmt.Sprint(p.n), all)
	p.mu.Lock()
	p.answers = nil
	p.mu.Unlock()
	if err == nil {
		err = p.cache.SetSnapshot(context.Background(), node, snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// clustersFor returns the names of the clusters that a server has for a node.
func clustersFor(t *testing.T, socket, node string) (names []string) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: xds.Cluster.URL()}); err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.GetResources() {
		names = append(names, c.GetName())
	}
	return names
}

// TestAggregatesApart: a control plane sends one node of a relay what is refused, and refuses another node. The other
// aggregates go on, and the relay stays ready and names both.
func TestAggregatesApart(t *testing.T) {
	t.Parallel()
	p := startPlane(t)
	p.setFor(t, "relay", staticCluster("own", 1))
	p.setFor(t, "bad", staticCluster("bad", 1))
	p.setFor(t, "good", staticCluster("good", 1))
	dir := filepath.Dir(p.socket)
	socket, web := filepath.Join(dir, "relay"), filepath.Join(dir, "http")
	relay := start(t, watcher, "serve", "--grpc", "unix:"+socket, "--http", "unix:"+web, "--node-id", "relay", "--aggregate-by", "id", "xds+unix:"+p.socket)
	relay.WaitLog(t, "event=published ")
	for _, node := range []string{"bad", "good"} {
		if got := clustersFor(t, socket, node); len(got) != 1 || got[0] != node {
			t.Errorf("%s gets %q", node, got)
		}
	}
	p.setFor(t, "bad", staticCluster("bad", 1, "lb_policy: MAGLEV, maglev_lb_config: {table_size: 4}"))
	p.hears(t, "cluster.v3.Cluster: bad: ", "table_size 4 of maglev is not a prime number")
	go func() { // waits for a response that never comes
		conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err == nil {
			defer conn.Close()
			if s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context()); err == nil {
				_ = s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "denied"}, TypeUrl: xds.Cluster.URL()})
				_, _ = s.Recv()
			}
		}
	}()
	relay.WaitLog(t, `event=aggregate-started target=aggregate-3 node="id=denied"`)
	becomes(t, "the readiness", "200 ok", func() string { return readiness(t, web) })
	p.setFor(t, "good", documents(staticCluster("good", 1), staticCluster("more", 1)))
	becomes(t, "the clusters of the good node", "good more", func() string { return strings.Join(clustersFor(t, socket, "good"), " ") })
	if got := clustersFor(t, socket, "bad"); len(got) != 1 || got[0] != "bad" {
		t.Errorf("the bad node gets %q", got)
	}
	becomes(t, "the status", "", func() string {
		text, _, _ := xdspub(t, "status", "--serve", "unix:"+socket)
		for _, part := range []string{"aggregate-1: the source tree is invalid (1 error", "aggregate-3: nothing is published", "PermissionDenied: nothing for this node"} {
			if !strings.Contains(text, part) {
				return text
			}
		}
		return ""
	})
}

// hears waits for an answer of the client.
func (p *plane) hears(t *testing.T, parts ...string) {
	t.Helper()
	envoytest.Eventually(t, patience, "the control plane hears "+strings.Join(parts, " "), func() (bool, string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, answer := range p.answers {
			missing := false
			for _, part := range parts {
				missing = missing || !strings.Contains(answer, part)
			}
			if !missing {
				return true, ""
			}
		}
		return false, strings.Join(p.answers, "\n")
	})
}

// TestControlPlaneHears: a control plane gets an ACK for what is published, and a NACK with the words and the names for
// what the rules or Envoy refuse. The last valid files stay.
func TestControlPlaneHears(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	blue, port := envoytest.NewUpstream(t, "blue").Port(), envoytest.FreePort(t)
	good := documents(listener("in", port, rds("main")), edsCluster("blue"), endpoints("blue", blue), routes("main", "blue"))
	p := startPlane(t)
	p.set(t, good)
	m := following(t, p.socket)
	m.startWatch(t)
	p.hears(t, "cluster.v3.Cluster: ")
	m.startEnvoy(t)
	becomes(t, "the answer", "200 blue", func() string { return ask(t, request{port: port}).text })
	m.watch.Signal(t, syscall.SIGTERM)
	m.watch.Wait(t)
	m.startWatch(t, "--envoy-admin", "http://"+address(m.admin))
	out := m.published(t)

	p.set(t, documents(good, edsCluster("wrong", "lb_policy: MAGLEV, maglev_lb_config: {table_size: 4}"), endpoints("wrong", blue)))
	p.hears(t, "cluster.v3.Cluster: wrong: ", "table_size 4 of maglev is not a prime number")
	p.hears(t, "ClusterLoadAssignment: nothing of this response is published, because of other resources: wrong: ")
	if is := m.published(t); is != out {
		t.Errorf("the published files have changed:\n%s\n%s", out, is)
	}

	busy, err := net.Listen("tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	p.set(t, documents(good, listener("busy", busy.Addr().(*net.TCPAddr).Port, rds("main"))))
	p.hears(t, "listener.v3.Listener: busy: ", "cannot bind")
	m.watch.WaitLog(t, "event=rolled-back ")
	becomes(t, "the answer", "200 blue", func() string { return ask(t, request{port: port}).text })

	p.set(t, strings.Replace(good, `"blue", type: EDS`, `"blue", connect_timeout: 3s, type: EDS`, 1))
	m.watch.WaitLog(t, "event=published ")
	p.hears(t, "cluster.v3.Cluster: ")
}

// TestTransports: by each transport, a control plane hears an ACK of what is published, and a NACK of what is refused,
// and the valid resources after that are published.
func TestTransports(t *testing.T) {
	t.Parallel()
	for _, by := range upstream.Transports {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			good := documents(listener("in", 1, rds("main")), edsCluster("blue"), endpoints("blue", 1), routes("main", "blue"))
			p := startPlane(t)
			p.set(t, good)
			m := following(t, p.socket, "--upstream-transport", string(by))
			m.startWatch(t)
			p.hears(t, "listener.v3.Listener: ")
			p.hears(t, "cluster.v3.Cluster: ")
			out := m.published(t)
			p.set(t, documents(good, edsCluster("wrong", "lb_policy: MAGLEV, maglev_lb_config: {table_size: 4}"), endpoints("wrong", 1)))
			p.hears(t, "cluster.v3.Cluster: wrong: ", "table_size 4 of maglev is not a prime number")
			if is := m.published(t); is != out {
				t.Errorf("the published files have changed:\n%s\n%s", out, is)
			}
			p.set(t, documents(listener("in", 1, rds("main")), edsCluster("green"), endpoints("green", 1), routes("main", "green")))
			becomes(t, "the published files", "green", func() string {
				if is := m.published(t); strings.Contains(is, "green") && !strings.Contains(is, "wrong") {
					return "green"
				}
				return "others"
			})
		})
	}
}
