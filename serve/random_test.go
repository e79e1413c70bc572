package serve_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"xdspub/serve"
	"xdspub/serve/cache"
	"xdspub/xds"
)

// FuzzClients lets clients that follow the protocol subscribe, acknowledge, refuse and come back
// at random, while the snapshot changes. In the end each of them must have what it asks for of
// the last snapshot, and nothing else.
func FuzzClients(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { synctest.Test(t, func(t *testing.T) { followAtRandom(t, seed) }) })
}

func followAtRandom(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, r: r, cache: cache.New(cache.Options{})}
	w.publish()
	for range 2 + r.IntN(3) {
		w.clients = append(w.clients, w.connect(&model{world: w, delta: r.IntN(2) == 0, counts: r.IntN(2) == 0, types: make(map[*xds.Type]*modelType)}))
	}
	for range 60 {
		switch c := w.clients[r.IntN(len(w.clients))]; r.IntN(10) {
		case 0, 1:
			w.publish()
		case 2:
			if _, _, err := w.cache.Trim(t.Context(), time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		case 3, 4:
			c.subscribe()
		case 5:
			c.disconnect()
			w.connect(c)
		case 6:
			time.Sleep(time.Duration(r.IntN(40)) * time.Second)
		default:
			synctest.Wait()
			c.hear(r.IntN(4) == 0)
		}
	}
	w.publish()
	if _, _, err := w.cache.Trim(t.Context(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for i, c := range w.clients {
		c.settle()
		for typ, m := range c.types {
			if want := w.wanted(m, typ, c.delta, c.counts); !maps.Equal(m.has, want) {
				t.Errorf("client %d (incremental: %v) asks for %s %v (all: %v): has %v, want %v", i, c.delta, typ, slices.Sorted(maps.Keys(m.names)), m.wildcard, m.has, want)
			}
		}
		c.disconnect()
	}
}

// world is a server and its clients.
type world struct {
	t        *testing.T
	r        *rand.Rand
	cache    *cache.Cache
	snapshot *xds.Snapshot
	clients  []*model
}

var modelNames = []string{"a", "b", "c", "d"}

// publish makes a random snapshot.
func (w *world) publish() {
	var words []string
	ports := w.r.Perm(6)
	for _, letter := range []string{"c", "e", "p", "r"} {
		for i, name := range modelNames {
			if w.r.IntN(3) > 0 {
				content := 1 + w.r.IntN(3)
				if letter == "p" {
					content = 1001 + ports[i]
				}
				word := fmt.Sprintf("%s/%s@%d", letter, name, content)
				if w.r.IntN(4) == 0 {
					word += "~3600s"
				}
				words = append(words, word)
			}
		}
	}
	w.snapshot = snapshot(w.t, words)
	if err := w.cache.Publish(w.t.Context(), w.snapshot); err != nil {
		w.t.Fatal(err)
	}
}

// wanted is what a client must have in the end: by state of the world, clients keep resources of
// most types that are gone.
func (w *world) wanted(m *modelType, typ *xds.Type, delta, counts bool) map[string]string {
	want := make(map[string]string)
	for _, r := range w.snapshot.Of(typ) {
		if m.wildcard || m.names[r.Name] {
			any := anyOf(w.t, r)
			want[r.Name] = nameOf(w.t, any)
			if r.Meta.GetTtl() != nil && (delta || counts && (typ == xds.Cluster || typ == xds.Listener)) {
				want[r.Name] += "~3600s"
			}
		}
	}
	if !delta && typ != xds.Cluster && typ != xds.Listener {
		for name, is := range m.has {
			if _, ok := want[name]; !ok && w.snapshot.Lookup(typ, name) == nil {
				want[name] = is
			}
		}
	}
	return want
}

// modelType is what a client asks for of a type, and what it has.
type modelType struct {
	names    map[string]bool
	wildcard bool
	legacy   bool // the wildcard is an empty list
	has      map[string]string
	versions map[string]string // incremental
	version  string            // state of the world: acknowledged
	nonce    string
}

// model is a client that follows the protocol.
type model struct {
	*world
	delta bool
	// counts means that it counts TTLs.
	counts bool
	types  map[*xds.Type]*modelType

	stream *fake
	asked  bool // of this stream
}

// fake is a stream between a client and the server, without a network.
type fake struct {
	grpc.ServerStream
	ctx    context.Context
	cancel func()
	up     chan any
	down   chan any
	ended  chan struct{}
}

func newFake(ctx context.Context) *fake {
	ctx, cancel := context.WithCancel(ctx)
	return &fake{ctx: ctx, cancel: cancel, up: make(chan any, 1000), down: make(chan any, 1000), ended: make(chan struct{})}
}

// serve serves the stream until it ends.
func (f *fake) serve(c *cache.Cache, delta bool) {
	defer close(f.ended)
	if delta {
		_ = serve.Streams(c).DeltaStreamHandler(deltaFake{f}, "")
	} else {
		_ = serve.Streams(c).StreamHandler(sotwFake{f}, "")
	}
}

func (f *fake) Context() context.Context { return f.ctx }

type sotwFake struct{ *fake }

func (f sotwFake) Send(r *discoveryv3.DiscoveryResponse) error { return f.send(received(r)) }
func (f sotwFake) Recv() (*discoveryv3.DiscoveryRequest, error) {
	q, err := f.recv()
	if err != nil {
		return nil, err
	}
	return q.(*discoveryv3.DiscoveryRequest), nil
}

type deltaFake struct{ *fake }

func (f deltaFake) Send(r *discoveryv3.DeltaDiscoveryResponse) error { return f.send(received(r)) }
func (f deltaFake) Recv() (*discoveryv3.DeltaDiscoveryRequest, error) {
	q, err := f.recv()
	if err != nil {
		return nil, err
	}
	return q.(*discoveryv3.DeltaDiscoveryRequest), nil
}

// received is a message as it comes from the network.
func received[M proto.Message](m M) M {
	b, err := proto.Marshal(m)
	if err == nil {
		proto.Reset(m)
		err = proto.Unmarshal(b, m)
	}
	if err != nil {
		panic(err)
	}
	return m
}

func (f *fake) send(r any) error {
	select {
	case f.down <- r:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

func (f *fake) recv() (any, error) {
	select {
	case q := <-f.up:
		return q, nil
	case <-f.ctx.Done():
		return nil, io.EOF
	}
}

func (w *world) connect(c *model) *model {
	c.stream = newFake(w.t.Context())
	c.asked = false
	go c.stream.serve(w.cache, c.delta)
	for typ, m := range c.types { // asks for all that it asked for before
		m.nonce = ""
		if !c.delta {
			c.request(typ, m, nil)
			continue
		}
		q := &discoveryv3.DeltaDiscoveryRequest{InitialResourceVersions: maps.Clone(m.versions), ResourceNamesSubscribe: slices.Sorted(maps.Keys(m.names))}
		if m.wildcard && !(m.legacy && len(m.names) == 0) {
			q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, "*")
		}
		if len(q.ResourceNamesSubscribe) > 0 || m.wildcard {
			c.requestDelta(typ, q)
		} else {
			delete(c.types, typ)
		}
	}
	return c
}

func (c *model) disconnect() {
	c.stream.cancel()
	<-c.stream.ended
}

func (c *model) node() *corev3.Node {
	if c.asked {
		return nil
	}
	c.asked = true
	node := &corev3.Node{Id: "test"}
	if c.counts {
		node.ClientFeatures = []string{"xds.config.supports-resource-ttl", "xds.config.resource-in-sotw"}
	}
	return node
}

func (c *model) request(typ *xds.Type, m *modelType, refused *status.Status) {
	names := slices.Sorted(maps.Keys(m.names))
	if m.wildcard && !(m.legacy && len(names) == 0) {
		names = append(names, "*")
	}
	c.stream.up <- &discoveryv3.DiscoveryRequest{Node: c.node(), TypeUrl: typ.URL(), ResourceNames: names, VersionInfo: m.version, ResponseNonce: m.nonce, ErrorDetail: refused}
}

func (c *model) requestDelta(typ *xds.Type, q *discoveryv3.DeltaDiscoveryRequest) {
	q.Node, q.TypeUrl = c.node(), typ.URL()
	c.stream.up <- q
}

// subscribe changes at random what the client asks for of a type.
func (c *model) subscribe() {
	typ := []*xds.Type{xds.Cluster, xds.Endpoints, xds.Listener, xds.RouteConfiguration}[c.r.IntN(4)]
	m := c.types[typ]
	if m == nil {
		m = &modelType{names: make(map[string]bool), has: make(map[string]string), versions: make(map[string]string)}
		c.types[typ] = m
		if typ == xds.Cluster || typ == xds.Listener {
			m.wildcard = c.r.IntN(2) == 0
			m.legacy = m.wildcard
		}
		if !m.wildcard {
			m.names[modelNames[c.r.IntN(4)]] = true
		}
		if c.delta {
			c.requestDelta(typ, &discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: slices.Sorted(maps.Keys(m.names))})
		} else {
			c.request(typ, m, nil)
		}
		return
	}
	name := modelNames[c.r.IntN(4)]
	q := &discoveryv3.DeltaDiscoveryRequest{}
	switch {
	case c.r.IntN(6) == 0 && !m.wildcard:
		m.wildcard, m.legacy = true, false
		q.ResourceNamesSubscribe = []string{"*"}
	case c.r.IntN(6) == 0 && m.wildcard && (c.delta || len(m.names) > 0):
		m.wildcard, m.legacy = false, false
		q.ResourceNamesUnsubscribe = []string{"*"}
	case m.names[name] && len(m.names) > 1:
		delete(m.names, name)
		q.ResourceNamesUnsubscribe = []string{name}
	default:
		m.names[name] = true
		q.ResourceNamesSubscribe = []string{name}
		if m.legacy && !c.delta {
			m.legacy = false // says * from now on
		}
	}
	for name := range m.has { // what it does not ask for any more it drops
		if !m.wildcard && !m.names[name] {
			delete(m.has, name)
			delete(m.versions, name)
		}
	}
	if c.delta {
		c.requestDelta(typ, q)
	} else {
		c.request(typ, m, nil)
	}
}

// hear takes a response, if there is one, and acknowledges or refuses it.
func (c *model) hear(refuse bool) bool {
	select {
	case r := <-c.stream.down:
		c.take(r, refuse)
		return true
	default:
		return false
	}
}

func (c *model) take(r any, refuse bool) {
	var refused *status.Status
	if refuse {
		refused = &status.Status{Code: 3, Message: "no"}
	}
	switch r := r.(type) {
	case *discoveryv3.DiscoveryResponse:
		typ := xds.TypeOfURL(r.GetTypeUrl())
		m := c.types[typ]
		m.nonce = r.GetNonce()
		if !refuse {
			m.version = r.GetVersionInfo()
			if typ == xds.Cluster || typ == xds.Listener {
				clear(m.has)
			}
			for _, any := range r.GetResources() {
				c.keep(m, any2name(c.t, any), nameOf(c.t, any), "")
			}
		}
		c.request(typ, m, refused)
	case *discoveryv3.DeltaDiscoveryResponse:
		typ := xds.TypeOfURL(r.GetTypeUrl())
		m := c.types[typ]
		if !refuse {
			for _, res := range r.GetResources() {
				if res.GetResource() != nil {
					c.keep(m, res.GetName(), wrapperText(c.t, res), res.GetVersion())
				} else if has := m.versions[res.GetName()]; !c.counts || has != "" && has != res.GetVersion() { // "": it dropped that meanwhile
					c.t.Errorf("a heartbeat of %s %s is sent to a client that has %q", res.GetName(), res.GetVersion(), has)
				}
			}
			for _, name := range r.GetRemovedResources() {
				delete(m.has, name)
				delete(m.versions, name)
			}
		}
		c.requestDelta(typ, &discoveryv3.DeltaDiscoveryRequest{ResponseNonce: r.GetNonce(), ErrorDetail: refused})
	}
}

func (c *model) keep(m *modelType, name, is, version string) {
	if m.wildcard || m.names[name] {
		m.has[name] = is
		m.versions[name] = version
	}
}

// settle hears and acknowledges until there is no more, be it later.
func (c *model) settle() {
	for heard := true; heard; {
		heard = false
		time.Sleep(time.Minute)
		for synctest.Wait(); c.hear(false); synctest.Wait() {
			heard = true
		}
	}
}
