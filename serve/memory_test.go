package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"xdspub/serve"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// editedTree returns a tree whose resources, and whose constraints, differ for each n.
func editedTree(t *testing.T, n int) string {
	const cluster = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %s, connect_timeout: %ds}`
	return "[" + strings.Join([]string{
		fmt.Sprintf(cluster, "web", n),
		fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: web, policy: {overprovisioning_factor: %d}}`, n),
		variant(t, "v", fmt.Sprintf("env=prod,n=%d", n), fmt.Sprintf(cluster, "v", 1)),
		variant(t, "v", "!env", fmt.Sprintf(cluster, "v", n+1)),
	}, ", ") + "]"
}

// TestOldResourcesGo has clients of all kinds follow a tree that is edited again and again. The resources that the tree
// no longer has must become garbage, and 300 edits must leave no more objects behind than 100.
func TestOldResourcesGo(t *testing.T) {
	s := run(t, serve.Options{})
	var old []weak.Pointer[xds.Resource]
	edits := 0
	edit := func(times int) {
		for range times {
			edits++
			snapshot := parse(t, editedTree(t, edits))
			for _, r := range snapshot.All() {
				old = append(old, weak.Make(r))
			}
			if err := s.Publish(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // clients take some of the edits
		}
	}
	edit(1)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for name, follow := range followers(s) {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := follow(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	// objects returns the number of live objects, after most snapshots have become garbage. Each stream keeps
	// the resources of its first eight responses for 30 seconds.
	objects := func() (n uint64) {
		envoytest.Eventually(t, patience, "most snapshots are gone", func() (bool, string) {
			runtime.GC()
			there := make(map[int]bool)
			for i, r := range old {
				if r.Value() != nil {
					there[i/4] = true
				}
			}
			return len(there) <= 30, fmt.Sprintf("resources of %d of %d snapshots", len(there), edits)
		})
		runtime.GC() // the second collection frees objects with finalizers and empties pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	edit(100) // a state has the last 64 changes
	before := objects()
	edit(200)
	envoytest.Eventually(t, patience, "200 more edits leave few objects", func() (bool, string) {
		after := objects() // a busy machine keeps garbage longer
		return after <= before+5_000, fmt.Sprintf("%d objects after 100 edits, %d after %d", before, after, edits)
	})
}

// followers returns clients of all kinds. Each function follows the server until ctx ends or the client
// leaves, and may be called again.
func followers(s *running) map[string]func(context.Context) error {
	node := func(name string) *corev3.Node { return &corev3.Node{Id: name} }
	byADS := func(name string, most int, refuses bool, locators ...*discoveryv3.ResourceLocator) func(context.Context) error {
		return func(ctx context.Context) error {
			return s.connected(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
				stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
				if err != nil {
					return err
				}
				first := []*discoveryv3.DiscoveryRequest{{Node: node(name), TypeUrl: xds.Cluster.URL(), ResourceLocators: locators}, {Node: node(name), TypeUrl: xds.Endpoints.URL(), ResourceNames: []string{"web"}}}
				return followWorld(stream, first, most, refuses)
			})
		}
	}
	byDelta := func(name string, most int, refuses bool, locators ...*discoveryv3.ResourceLocator) func(context.Context) error {
		return func(ctx context.Context) error {
			return s.connected(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
				stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
				if err != nil {
					return err
				}
				first := []*discoveryv3.DeltaDiscoveryRequest{{Node: node(name), TypeUrl: xds.Cluster.URL(), ResourceLocatorsSubscribe: locators}, {Node: node(name), TypeUrl: xds.Endpoints.URL(), ResourceNamesSubscribe: []string{"web"}}}
				return followDelta(stream, first, most, refuses)
			})
		}
	}
	return map[string]func(context.Context) error{
		"ADS": byADS("ads", never, false), "ADS that refuses": byADS("nack", never, true), "ADS that comes back": byADS("back", 3, false),
		"ADS that locates": byADS("located", never, false, locator("v", "env=prod}")),
		"ADS of two sets":  byADS("sets", never, false, locator("v", "env=prod}"), locator("v", "env=test}")),
		"delta":            byDelta("delta", never, false), "delta that refuses": byDelta("delta-nack", never, true), "delta that comes back": byDelta("delta-back", 3, false),
		"delta that locates": byDelta("delta-located", never, false, locator("v", "env=prod}")),
		"delta of two sets":  byDelta("delta-sets", never, false, locator("v", "env=prod}"), locator("v", "}")),
		"singleton": func(ctx context.Context) error {
			return s.connected(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
				stream, err := endpointservice.NewEndpointDiscoveryServiceClient(conn).StreamEndpoints(ctx)
				if err != nil {
					return err
				}
				return followWorld(stream, []*discoveryv3.DiscoveryRequest{{Node: node("singleton"), TypeUrl: xds.Endpoints.URL(), ResourceNames: []string{"web"}}}, never, false)
			})
		},
		"REST": s.pollAll,
	}
}

// never is more responses than any client gets before it leaves.
const never = 1 << 30

// connected calls client with a connection, and closes the connection after the call.
func (s *running) connected(ctx context.Context, client func(context.Context, *grpc.ClientConn) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	return client(ctx, conn)
}

// refusedSometimes returns the error_detail of a client's answer to the n-th response; nil for an ACK.
func refusedSometimes(n int, refuses bool) *rpcstatus.Status {
	if refuses && n%3 == 1 {
		return &rpcstatus.Status{Code: 3, Message: "refused by the test"}
	}
	return nil
}

// followWorld sends the first requests, and answers most responses.
func followWorld(stream grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse], first []*discoveryv3.DiscoveryRequest, most int, refuses bool) error {
	asks := make(map[string]*discoveryv3.DiscoveryRequest)
	for _, q := range first {
		asks[q.TypeUrl] = q
		if err := stream.Send(q); err != nil {
			return err
		}
	}
	for n := range most {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		q := asks[r.TypeUrl]
		if q.ResponseNonce, q.ErrorDetail = r.Nonce, refusedSometimes(n, refuses); q.ErrorDetail == nil {
			q.VersionInfo = r.VersionInfo
		}
		if err := stream.Send(q); err != nil {
			return err
		}
	}
	return nil
}

// followDelta sends the first requests, and answers most responses.
func followDelta(stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse], first []*discoveryv3.DeltaDiscoveryRequest, most int, refuses bool) error {
	for _, q := range first {
		if err := stream.Send(q); err != nil {
			return err
		}
	}
	for n := range most {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce, ErrorDetail: refusedSometimes(n, refuses)}); err != nil {
			return err
		}
	}
	return nil
}

// pollAll sends requests over REST until ctx ends, and accepts all responses.
func (s *running) pollAll(ctx context.Context) error {
	version := ""
	for n := 0; ; n++ {
		body := fmt.Sprintf(`{"node": {"id": "rest-%d"}, "resource_names": ["web"], "version_info": "%s"}`, n%2, version)
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.web+"/v3/discovery:endpoints", strings.NewReader(body))
		if err != nil {
			return err
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", "1000")
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			return err
		}
		var r struct {
			Version string `json:"version_info"`
		}
		err = json.NewDecoder(a.Body).Decode(&r)
		a.Body.Close()
		switch {
		case a.StatusCode == http.StatusNotModified:
		case a.StatusCode != http.StatusOK || err != nil && err != io.EOF:
			return fmt.Errorf("%s, %w", a.Status, err)
		default:
			version = r.Version
		}
	}
}

// TestLargeResponse checks that a response larger than a connection's limit is sent to all clients, one after
// the other.
func TestLargeResponse(t *testing.T) {
	s := run(t, serve.Options{ClientMemory: 8 << 20})
	s.publish(`[{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s, metadata: {filter_metadata: {a: {b: "` + strings.Repeat("x", 3<<20) + `"}}}}]`)
	var clients sync.WaitGroup
	for range 10 {
		stream := openDelta(t, dial(t, "unix:"+s.socket, nil))
		clients.Go(func() {
			if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceNamesSubscribe: []string{"web"}}); err != nil {
				t.Error(err)
			}
			if r, err := stream.Recv(); err != nil || len(r.GetResources()) != 1 {
				t.Error(len(r.GetResources()), err)
			}
		})
	}
	clients.Wait()
	if strings.Contains(s.log.String(), "client-refused") {
		t.Error(s.log)
	}
}
