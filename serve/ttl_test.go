package serve_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/serve"
	"xdspub/serve/cache"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// heartbeats counts the responses that restart a TTL, by type.
type heartbeats struct {
	mu    sync.Mutex
	count map[*xds.Type]int
}

func (h *heartbeats) of(t *xds.Type) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count[t]
}

func (h *heartbeats) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, countingStream{stream, h})
}

type countingStream struct {
	grpc.ServerStream
	*heartbeats
}

func (s countingStream) SendMsg(m any) error {
	switch m := m.(type) {
	case *discoveryv3.DiscoveryResponse:
		s.saw(m.GetTypeUrl()) // each of them restarts the TTL
	case *discoveryv3.DeltaDiscoveryResponse:
		for _, r := range m.GetResources() {
			if r.GetResource() == nil {
				s.saw(m.GetTypeUrl())
				break
			}
		}
	}
	return s.ServerStream.SendMsg(m)
}

func (h *heartbeats) saw(typeURL string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count[xds.TypeOfURL(typeURL)]++
}

// mortal returns a resource in a wrapper with a TTL. mortal adds the TTL to a resource that has a wrapper.
func mortal(ttl, resource string) string {
	const wrapper = `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, `
	body := strings.TrimPrefix(strings.TrimSpace(resource), "- ")
	if rest, wrapped := strings.CutPrefix(body, wrapper); wrapped {
		body = rest
	} else {
		body = "resource: " + body + "}"
	}
	return fmt.Sprintf("\n- %sttl: %s, %s\n", wrapper, ttl, body)
}

// TestEnvoyTTL has an Envoy count TTLs, by each variant over gRPC. Heartbeats must keep the resources.
// Without a server the Envoy must remove them.
func TestEnvoyTTL(t *testing.T) {
	for _, k := range kinds {
		t.Run(string(k.kind), func(t *testing.T) {
			t.Parallel()
			c := cache.New(cache.Options{Cluster: "xds_cluster"})
			socket := socketPath(t)
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			h := &heartbeats{count: make(map[*xds.Type]int)}
			g := grpc.NewServer(grpc.StreamInterceptor(h.intercept))
			serve.Register(g, c)
			go func() { _ = g.Serve(l) }()
			t.Cleanup(g.Stop)

			up := envoytest.NewUpstream(t, "blue")
			in, gone := envoytest.FreePort(t), envoytest.FreePort(t)
			clusters := strings.Split(strings.TrimSpace(fmt.Sprintf(clusterTo, "blue", up.Port())), "\n")
			const ttl = "3s"
			tree := mortal(ttl, clusters[0]) + mortal(ttl, clusters[1]) + mortal(ttl, fmt.Sprintf(listenerAt, "mortal", gone, "127.0.0.1")) +
				fmt.Sprintf(listenerAt, "in", in, "127.0.0.1") + mortal(ttl, fmt.Sprintf(routeTo, "blue")) +
				mortal(ttl, `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: flags, layer: {a.b: 1}}`)
			if err := c.Publish(t.Context(), parse(t, tree)); err != nil {
				t.Fatal(err)
			}
			source := "ads: {}"
			if k.singleton {
				source = k.cds
			}
			envoy := start(t, k, "pipe: {path: "+socket+"}", "layered_runtime: {layers: [{name: flags, rtds_layer: {name: flags, rtds_config: {resource_api_version: V3, "+source+"}}}]}")
			answers := func(port, want int) {
				t.Helper()
				envoytest.Eventually(t, patience, fmt.Sprint("Envoy answers ", want), func() (bool, string) {
					status, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
					return want == 0 && err != nil || err == nil && status == want, fmt.Sprint(status, body, err)
				})
			}
			answers(in, 200)
			answers(gone, 200)
			types := []*xds.Type{xds.Cluster, xds.Listener, xds.Runtime}
			if k.delta {
				types = append(types, xds.Endpoints, xds.RouteConfiguration)
			}
			for _, typ := range types {
				envoytest.Eventually(t, patience, "five heartbeats of "+typ.API, func() (bool, string) { return h.of(typ) >= 5, fmt.Sprint(h.of(typ)) })
			}
			if log := envoy.Log(); strings.Contains(log, "rejected") {
				t.Error(log)
			}
			for stat, want := range map[string]int64{"cluster_manager.cluster_removed": 0, "cluster_manager.cluster_added": 2, "listener_manager.listener_removed": 0, "listener_manager.listener_added": 2} {
				if n := envoy.Stat(t, stat); n != want {
					t.Errorf("%s is %d", stat, n)
				}
			}
			answers(gone, 200)
			if runtime := envoy.Admin(t, "/runtime"); !strings.Contains(runtime, `"a.b"`) {
				t.Errorf("runtime: %s", runtime)
			}
			g.Stop()
			answers(gone, 0)
			envoytest.Eventually(t, patience, "the cluster goes", func() (bool, string) {
				n := envoy.Stat(t, "cluster_manager.cluster_removed")
				return n == 1, fmt.Sprint(n)
			})
			envoytest.Eventually(t, patience, "the layer goes", func() (bool, string) {
				runtime := envoy.Admin(t, "/runtime")
				return !strings.Contains(runtime, `"a.b"`), runtime
			})
		})
	}
}

// TestEnvoyTTLCrash shows why endpoints and routes have no TTL by state of the world: when the TTL is over,
// an Envoy with an aggregated stream crashes.
func TestEnvoyTTLCrash(t *testing.T) {
	envoy := startMortal(t, &mortalServer{t: t, tree: snapshot(t, []string{"c/blue", "e/blue"}), ttl: map[*xds.Type]time.Duration{xds.Endpoints: time.Second}})
	envoy.Wait(t)
	if log := envoy.Log(); !strings.Contains(log, "Caught Segmentation fault") {
		t.Errorf("Envoy ended otherwise: %s", log)
	}
}

// TestEnvoyEmptyHeartbeat shows why heartbeats by state of the world have resources: on a heartbeat without
// resources, Envoy removes clusters, and lets the TTLs of other types end.
func TestEnvoyEmptyHeartbeat(t *testing.T) {
	envoy := startMortal(t, &mortalServer{t: t, tree: snapshot(t, []string{"s/blue"}), beats: true, ttl: map[*xds.Type]time.Duration{xds.Cluster: time.Hour, xds.Runtime: time.Second}})
	envoytest.Eventually(t, patience, "the cluster goes", func() (bool, string) {
		n := envoy.Stat(t, "cluster_manager.cluster_removed")
		return n == 1, fmt.Sprint(n)
	})
	envoytest.Eventually(t, patience, "the layer goes", func() (bool, string) {
		runtime := envoy.Admin(t, "/runtime")
		return !strings.Contains(runtime, `"a"`), runtime
	})
}

func startMortal(t *testing.T, m *mortalServer) *envoytest.Envoy {
	t.Helper()
	l, err := net.Listen("unix", socketPath(t))
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, m)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return start(t, kinds[0], "pipe: {path: "+l.Addr().String()+"}", "layered_runtime: {layers: [{name: quiet, rtds_layer: {name: quiet, rtds_config: {resource_api_version: V3, ads: {}}}}]}")
}

// mortalServer sends resources with TTLs. With beats, mortalServer also sends heartbeats without resources.
type mortalServer struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	t     *testing.T
	tree  *xds.Snapshot
	ttl   map[*xds.Type]time.Duration
	beats bool
}

func (m *mortalServer) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	for nonce := 1; ; nonce++ {
		q, err := stream.Recv()
		if err != nil {
			return err
		}
		ttl, mortal := m.ttl[xds.TypeOfURL(q.GetTypeUrl())]
		first := q.GetResponseNonce() == ""
		if !first && !(mortal && m.beats) {
			continue
		}
		r := &discoveryv3.DiscoveryResponse{TypeUrl: q.GetTypeUrl(), VersionInfo: "1", Nonce: fmt.Sprint(nonce)}
		for _, resource := range m.tree.Of(xds.TypeOfURL(q.GetTypeUrl())) {
			any := anyOf(m.t, resource)
			if mortal {
				w := &discoveryv3.Resource{Name: resource.Name, Ttl: durationpb.New(ttl)}
				if first {
					w.Resource = any
				}
				if any, err = anypb.New(w); err != nil {
					return err
				}
			}
			r.Resources = append(r.Resources, any)
		}
		if err := stream.Send(r); err != nil {
			return err
		}
	}
}
