package cache_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"google.golang.org/genproto/googleapis/rpc/status"

	"xdspub/serve/cache"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// fake is a client that calls its Stream as go-control-plane's server does.
type fake struct {
	t       *testing.T
	stream  *cache.Stream
	answers chan cachev3.Response
	node    *corev3.Node
}

func newFake(t *testing.T, c *cache.Cache, id string) *fake {
	f := &fake{t: t, stream: c.Open(cache.Aggregated, nil), answers: make(chan cachev3.Response, 1), node: &corev3.Node{Id: id}}
	for i := range 100 {
		f.node.Extensions = append(f.node.Extensions, &corev3.Extension{Name: fmt.Sprint("envoy.filters.http.", i), Category: "envoy.filters.http"})
	}
	return f
}

// ask passes a request for all clusters to the Stream.
func (f *fake) ask(nonce, refused string) {
	f.t.Helper()
	q := &discoveryv3.DiscoveryRequest{Node: f.node, TypeUrl: xds.Cluster.URL(), ResponseNonce: nonce}
	if refused != "" {
		q.ErrorDetail = &status.Status{Message: refused}
	}
	if err := f.stream.OnStreamRequest(1, q); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.stream.CreateWatch(q, stream.NewSotwSubscription(nil, true), f.answers); err != nil {
		f.t.Fatal(err)
	}
}

// hear receives a response, and gives the response a nonce.
func (f *fake) hear(nonce string) {
	f.t.Helper()
	r := <-f.answers
	m, err := r.GetDiscoveryResponse()
	if err != nil {
		f.t.Fatal(err)
	}
	m.Nonce = nonce
	f.stream.OnStreamResponse(f.t.Context(), 1, r.GetRequest(), m)
}

// TestManyClients checks that 10,000 clients need little memory, and that the Cache remembers few
// disconnected clients.
func TestManyClients(t *testing.T) {
	const n = 10_000
	c := cache.New(cache.Options{})
	web, err := xds.NewResource(&clusterv3.Cluster{Name: "web"}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), xds.NewSnapshot([]*xds.Resource{web})); err != nil {
		t.Fatal(err)
	}
	before := heap()
	fakes := make([]*fake, n)
	for i := range fakes {
		f := newFake(t, c, fmt.Sprintf("node-%05d", i))
		f.ask("", "")
		f.hear("1")
		f.ask("1", "no")
		f.answers = nil // as large as go-control-plane makes it
		fakes[i] = f
	}
	each := (heap() - before) / n
	if t.Logf("%d bytes a client", each); each > 4<<10 {
		t.Error("that is too much")
	}
	list := c.Clients()
	if len(list) != n || list[n-1].Node != "node-09999" || list[n-1].Count(clients.Rejected) != 1 {
		t.Fatalf("%d clients, the last is %+v", len(list), list[len(list)-1])
	}
	if counted := c.Rejections(); len(counted) != 1000 || counted[0].Node != "node-09000" {
		t.Errorf("NACKs of %d nodes, first %+v", len(counted), counted[0])
	}
	for _, f := range fakes {
		f.stream.Close()
	}
	if list = c.Clients(); len(list) != 1000 || list[0].Node != "node-09000" || list[0].Gone.IsZero() {
		t.Errorf("%d clients that are gone, first %+v", len(list), list[0])
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestClientsAtOnce asks for the list of clients while clients come back, so that the race detector sees both.
func TestClientsAtOnce(t *testing.T) {
	c := cache.New(cache.Options{})
	if err := c.Publish(t.Context(), xds.NewSnapshot(nil)); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					c.Clients()
				}
			}
		})
	}
	for i := range 400 {
		f := newFake(t, c, fmt.Sprint("node-", i%4))
		f.ask("", "")
		f.hear("1")
		f.stream.Close()
	}
	close(done)
	asking.Wait()
}
