package serve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/serve"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// openTypes are types that a client may request without TLS.
var openTypes = []*xds.Type{xds.Cluster, xds.Endpoints, xds.Listener, xds.RouteConfiguration, xds.ScopedRoutes, xds.Runtime, xds.ExtensionConfig}

// TestRequestsAreNotKept has streams send large requests of all kinds and stay open. The parts of a request
// that no account holds must become garbage: all parts except names and parameters.
func TestRequestsAreNotKept(t *testing.T) {
	if testing.Short() {
		t.Skip("megabytes, one request after the other: nothing for the race detector")
	}
	big := strings.Repeat("v", 3<<20)
	blank := "x" + strings.Repeat(" ", 3<<20)
	unknown := protowire.AppendBytes(protowire.AppendTag(nil, 9999, protowire.BytesType), []byte(big))
	same := slices.Repeat([]string{"none"}, 300_000)
	set := make(map[string]string)
	for i := range 90 {
		set[fmt.Sprint(i)] = big[:1000]
	}
	located := slices.Repeat([]*discoveryv3.ResourceLocator{{Name: "none", DynamicParameters: set}}, 30)
	refused := &rpcstatus.Status{Code: 3, Message: blank, Details: []*anypb.Any{{Value: []byte(big[:100_000])}}}
	for name, c := range map[string]struct {
		world func(*discoveryv3.DiscoveryRequest)
		delta func(*discoveryv3.DeltaDiscoveryRequest)
		first bool // in the first request of each type, else in the second one
	}{
		"version":               {world: func(q *discoveryv3.DiscoveryRequest) { q.VersionInfo = big }},
		"version at first":      {world: func(q *discoveryv3.DiscoveryRequest) { q.VersionInfo = big }, first: true},
		"unknown field":         {world: func(q *discoveryv3.DiscoveryRequest) { q.ProtoReflect().SetUnknown(unknown) }},
		"another node":          {world: func(q *discoveryv3.DiscoveryRequest) { q.Node = &corev3.Node{Id: big} }},
		"reason of a NACK":      {world: func(q *discoveryv3.DiscoveryRequest) { q.ErrorDetail = refused }},
		"one name many times":   {world: func(q *discoveryv3.DiscoveryRequest) { q.ResourceNames = same }},
		"locators":              {world: func(q *discoveryv3.DiscoveryRequest) { q.ResourceLocators = located }},
		"delta, unknown field":  {delta: func(q *discoveryv3.DeltaDiscoveryRequest) { q.ProtoReflect().SetUnknown(unknown) }},
		"delta, another node":   {delta: func(q *discoveryv3.DeltaDiscoveryRequest) { q.Node = &corev3.Node{Id: big} }},
		"delta, reason":         {delta: func(q *discoveryv3.DeltaDiscoveryRequest) { q.ErrorDetail = refused }},
		"delta, the same names": {delta: func(q *discoveryv3.DeltaDiscoveryRequest) { q.ResourceNamesSubscribe = same }},
		"delta, locators":       {delta: func(q *discoveryv3.DeltaDiscoveryRequest) { q.ResourceLocatorsSubscribe = located }},
	} {
		t.Run(name, func(t *testing.T) {
			s := run(t, serve.Options{})
			s.publish(oneCluster)
			conn := dial(t, s.tcp, nil)
			before := live()
			for range 3 {
				if c.world != nil {
					asksMuch(t, open(t, conn), c.first, c.world)
				} else {
					asksMuchByDelta(t, openDelta(t, conn), c.delta)
				}
			}
			envoytest.Eventually(t, patience, "the requests are garbage", func() (bool, string) {
				more := live() - before
				return more < 8<<20, fmt.Sprintf("%d MiB more", more>>20)
			})
		})
	}
}

// live returns the bytes of live objects.
func live() int {
	runtime.GC()
	runtime.GC() // the second collection empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// asksMuch sends a large request for each type: the first request of the type if first is true, or else the
// second request, after the response. change makes a request large.
func asksMuch(t *testing.T, s sotwStream, first bool, change func(*discoveryv3.DiscoveryRequest)) {
	t.Helper()
	send := func(q *discoveryv3.DiscoveryRequest, large bool) {
		if large {
			change(q)
		}
		if err := s.Send(q); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range openTypes {
		send(&discoveryv3.DiscoveryRequest{TypeUrl: of.URL(), ResourceNames: []string{"none"}}, first)
		if first { // the response to a client that comes back may be late
			continue
		}
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		send(&discoveryv3.DiscoveryRequest{TypeUrl: of.URL(), ResourceNames: []string{"none"}, ResponseNonce: r.GetNonce()}, true)
	}
}

// asksMuchByDelta is asksMuch for an incremental stream, with the second request of each type.
func asksMuchByDelta(t *testing.T, s deltaStream, change func(*discoveryv3.DeltaDiscoveryRequest)) {
	t.Helper()
	for _, of := range openTypes {
		q := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: of.URL(), ResourceNamesSubscribe: []string{"none"}}
		if err := s.Send(q); err != nil {
			t.Fatal(err)
		}
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		q = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: of.URL(), ResponseNonce: r.GetNonce()}
		change(q)
		if err := s.Send(q); err != nil {
			t.Fatal(err)
		}
	}
}

// TestToldNamesAreHeld checks that the account holds initial_resource_versions until the client has
// acknowledged a response.
func TestToldNamesAreHeld(t *testing.T) {
	s := run(t, serve.Options{})
	s.publish(oneCluster)
	stream := openDelta(t, dial(t, s.tcp, nil))
	has := make(map[string]string)
	for i := range 500 {
		has[fmt.Sprint(i, strings.Repeat("n", 4000))] = "1"
	}
	before := s.metric("xdspub_client_memory_bytes")
	held := func(want bool) {
		t.Helper()
		envoytest.Eventually(t, patience, "the names are held, or not", func() (bool, string) {
			more := s.metric("xdspub_client_memory_bytes") - before
			return (more > 3_000_000) == want && (more < 200_000) == !want, fmt.Sprintf("%.0f bytes more", more)
		})
	}
	send := func(q *discoveryv3.DeltaDiscoveryRequest) {
		t.Helper()
		q.TypeUrl = xds.ExtensionConfig.URL()
		if err := stream.Send(q); err != nil {
			t.Fatal(err)
		}
	}
	send(&discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: has})
	r, err := stream.Recv()
	if err != nil || len(r.GetRemovedResources()) != len(has) {
		t.Fatal(len(r.GetRemovedResources()), err)
	}
	held(true)
	send(&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: r.GetNonce(), ErrorDetail: &rpcstatus.Status{Message: "no"}})
	send(&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: "of nobody"})
	held(true)
	send(&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: r.GetNonce()})
	held(false)
}

// TestUnreadStatus checks that the account of a connection holds the status of all clients that its client
// hasn't read.
func TestUnreadStatus(t *testing.T) {
	s := run(t, serve.Options{ClientMemory: 32 << 20})
	s.publish(oneCluster)
	conn := dial(t, s.tcp, nil)
	for i := range 100 {
		stream := open(t, conn)
		r := answered(t, stream)
		q := &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: fmt.Sprint("node-", i)}, TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), ErrorDetail: &rpcstatus.Status{Message: strings.Repeat("x", 4000)}}
		if err := stream.Send(q); err != nil {
			t.Fatal(err)
		}
	}
	const refusals = `xdspub_client_memory_refusals_total{of="connection"}`
	for _, method := range []string{"FetchClientStatus", "StreamClientStatus"} {
		before := s.metric(refusals)
		ctx, cancel := context.WithCancel(t.Context())
		silent := dial(t, "unix:"+s.socket, nil, grpc.WithStaticStreamWindowSize(1), grpc.WithStaticConnWindowSize(1)) // 64 KiB, the least
		for range 30 {
			call, err := silent.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/envoy.service.status.v3.ClientStatusDiscoveryService/"+method)
			if err != nil {
				t.Fatal(err)
			}
			if err := call.SendMsg(&statusv3.ClientStatusRequest{}); err != nil {
				t.Fatal(err)
			}
			if err := call.CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
		envoytest.Eventually(t, patience, method+" is refused", func() (bool, string) {
			return s.metric(refusals) > before, s.log.String()
		})
		cancel()
		if _, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(within(t), &statusv3.ClientStatusRequest{}); err != nil {
			t.Error(err) // another client must get an answer
		}
	}
}

// metric returns the value of a metric; 0 if the server has no such metric.
func (s *running) metric(name string) (value float64) {
	s.t.Helper()
	a, err := http.Get("http://" + s.web + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if is, ok := strings.CutPrefix(line, name+" "); ok {
			if value, err = strconv.ParseFloat(strings.TrimSpace(is), 64); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return value
}

// TestMemoryIsGivenBack has clients connect, send requests and leave in many ways, most of them before a
// response. In the end the accounts must hold no more memory than before.
func TestMemoryIsGivenBack(t *testing.T) {
	s := run(t, serve.Options{ClientMemory: 64 << 20})
	s.publish(`[{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s, metadata: {filter_metadata: {a: {b: "` + strings.Repeat("x", 1<<20) + `"}}}}]`)
	const held = "xdspub_client_memory_bytes"
	s.metric(held)
	before := s.metric(held)
	long := strings.Repeat("n", 4000)
	ways := map[string]func(context.Context, *grpc.ClientConn) error{
		"reads nothing": func(ctx context.Context, conn *grpc.ClientConn) error {
			stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
			if err != nil {
				return err
			}
			return stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceNamesSubscribe: []string{"web", long}})
		},
		"half a request": func(ctx context.Context, conn *grpc.ClientConn) error {
			stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
			if err != nil {
				return err
			}
			return stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceNames: slices.Repeat([]string{long}, 500)})
		},
		"too much": func(ctx context.Context, conn *grpc.ClientConn) error {
			stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
			if err != nil {
				return err
			}
			return stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), Node: &corev3.Node{Extensions: slices.Repeat([]*corev3.Extension{{}}, 1<<20)}})
		},
		"status": func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(ctx, &statusv3.ClientStatusRequest{})
			return err
		},
		"a poll that waits": func(ctx context.Context, _ *grpc.ClientConn) error {
			return s.poll(ctx, `{"resource_names": ["`+long+`"]}`)
		},
		"half a poll": func(ctx context.Context, _ *grpc.ClientConn) error {
			return s.poll(ctx, `{"resource_names": ["`+long+`", `)
		},
	}
	var clients sync.WaitGroup
	for _, way := range ways {
		clients.Go(func() {
			for i := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				// Errors of the client don't matter, because it is cut off at any time.
				_ = s.connected(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
					for ctx.Err() == nil {
						_ = way(ctx, conn)
					}
					return nil
				})
				cancel()
			}
		})
	}
	clients.Wait()
	envoytest.Eventually(t, patience, "all memory is given back", func() (bool, string) {
		http.DefaultClient.CloseIdleConnections()
		now := s.metric(held)
		return now <= before, fmt.Sprintf("%.0f bytes, before that %.0f", now, before)
	})
}

// poll asks for endpoints by REST, with a body.
func (s *running) poll(ctx context.Context, body string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.web+"/v3/discovery:endpoints", strings.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	return a.Body.Close()
}
