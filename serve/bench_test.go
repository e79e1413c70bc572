package serve_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"xdspub/serve"
	"xdspub/serve/cache"
	"xdspub/source/load"
	"xdspub/xds"
)

const clusterOfBench = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c%d, type: STATIC, connect_timeout: %ds}`

// benched is a cache of clusters that change.
type benched struct {
	cache *cache.Cache
	now   *xds.Snapshot
}

func (o *benched) start(b *testing.B, g *grpc.Server, clusters int) {
	o.cache = cache.New(cache.Options{})
	serve.Register(g, o.cache)
	var text strings.Builder
	for i := range clusters {
		fmt.Fprintf(&text, "- "+clusterOfBench+"\n", i, 1)
	}
	o.now = load.Parse(load.Input{Name: "a.yaml", Format: "yaml", Data: []byte(text.String())}).Snapshot()
	if err := o.cache.Publish(b.Context(), o.now); err != nil {
		b.Fatal(err)
	}
}

func (o *benched) change(b *testing.B, i int) {
	is := load.Parse(load.Input{Name: "a.yaml", Format: "yaml", Data: fmt.Appendf(nil, clusterOfBench, 7, i)}).Snapshot().Of(xds.Cluster)[0]
	o.now = o.now.Apply(xds.Change{Removed: []*xds.Resource{o.now.Lookup(xds.Cluster, is.Name)}, Added: []*xds.Resource{is}})
	if err := o.cache.Publish(b.Context(), o.now); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkChange changes one of many clusters until all clients have it. make bench PART=serve
// measures this beside a server of go-control-plane.
func BenchmarkChange(b *testing.B) {
	for _, kind := range []string{"delta", "sotw"} {
		clients, clusters := 1000, 10000
		if kind == "sotw" {
			clients, clusters = 100, 1000
		}
		b.Run(fmt.Sprintf("%s/clients=%d/clusters=%d", kind, clients, clusters), func(b *testing.B) {
			change(b, kind == "delta", clients, clusters)
		})
	}
}

func change(b *testing.B, delta bool, clients, clusters int) {
	g, s := grpc.NewServer(), &benched{}
	s.start(b, g, clusters)
	l, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = g.Serve(l) }()
	b.Cleanup(g.Stop)
	conn, err := grpc.NewClient("unix:"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)

	var told sync.WaitGroup
	told.Add(clients)
	for range clients {
		go func() {
			if err := follow(ctx, conn, delta, told.Done); ctx.Err() == nil {
				b.Error(err)
			}
		}()
	}
	told.Wait()
	i := 1
	for b.Loop() {
		i++
		told.Add(clients)
		s.change(b, i)
		told.Wait()
	}
}

// follow calls told for each response, and acknowledges the response.
func follow(ctx context.Context, conn *grpc.ClientConn, delta bool, told func()) error {
	client := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	node := &corev3.Node{Id: "test"}
	if delta {
		stream, err := client.DeltaAggregatedResources(ctx)
		for q := (&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: resource.ClusterType}); err == nil; {
			if err = stream.Send(q); err != nil {
				return err
			}
			var r *discoveryv3.DeltaDiscoveryResponse
			if r, err = stream.Recv(); err == nil {
				q = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType, ResponseNonce: r.GetNonce()}
				told()
			}
		}
		return err
	}
	stream, err := client.StreamAggregatedResources(ctx)
	for q := (&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: resource.ClusterType}); err == nil; {
		if err = stream.Send(q); err != nil {
			return err
		}
		var r *discoveryv3.DiscoveryResponse
		if r, err = stream.Recv(); err == nil {
			q = &discoveryv3.DiscoveryRequest{TypeUrl: resource.ClusterType, ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo()}
			told()
		}
	}
	return err
}
