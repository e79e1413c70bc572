package serve_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// FuzzClients lets clients that follow the protocol subscribe, acknowledge, refuse and reconnect at random,
// while the snapshot changes. They subscribe by names, by the wildcard, and by both, in requests that answer
// a response and in requests that don't. In the end each client must have exactly the subscribed resources of
// the last snapshot.
func FuzzClients(f *testing.F) {
	f.Add(uint64(0))
	f.Add(uint64(42649)) // a listener waits for an address, after the client has refused the listener
	f.Fuzz(func(t *testing.T, seed uint64) { synctest.Test(t, func(t *testing.T) { followAtRandom(t, seed) }) })
}

// TestRandomClients runs FuzzClients with fixed seeds.
func TestRandomClients(t *testing.T) { runSeeds(t, followAtRandom) }

// runSeeds runs a random test with 1,000 fixed seeds, 100 with -short, or with XDSPUB_CLIENTS seeds from
// XDSPUB_CLIENTS_SEED on. runSeeds prints how many seeds passed.
func runSeeds(t *testing.T, run func(*testing.T, uint64)) {
	from, n := number(t, "XDSPUB_CLIENTS_SEED", 0), number(t, "XDSPUB_CLIENTS", 1000)
	if testing.Short() {
		n = min(n, 100)
	}
	var done atomic.Uint64
	t.Run("seeds", func(t *testing.T) {
		workers := uint64(runtime.GOMAXPROCS(0))
		for worker := range workers {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for seed := from + worker; seed < from+n; seed += workers {
					synctest.Test(t, func(t *testing.T) {
						if run(t, seed); t.Failed() {
							t.Fatalf("this is seed %d", seed)
						}
					})
					done.Add(1)
				}
			})
		}
	})
	t.Logf("%d of %d seeds passed, from %d on", done.Load(), n, from)
}

// number returns the number in an environment variable, or without if the variable is not set.
func number(t *testing.T, variable string, without uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return without
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

func followAtRandom(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, r: r, pace: newPace(r), cache: cache.New(cache.Options{TrimDelay: time.Duration(r.IntN(2)) * trimDelay})}
	w.publish()
	for range 2 + r.IntN(3) {
		w.clients = append(w.clients, w.connect(&model{world: w, delta: r.IntN(2) == 0, counts: r.IntN(2) == 0, drops: r.IntN(2) == 0, types: make(map[*xds.Type]*modelType)}))
	}
	for range 60 {
		switch c := w.clients[r.IntN(len(w.clients))]; r.IntN(12) {
		case 0, 1:
			w.publish()
		case 2:
			w.trim()
		case 3, 4:
			c.subscribe()
		case 5:
			c.disconnect()
			w.connect(c)
		case 6:
			time.Sleep(time.Duration(r.IntN(40)) * time.Second)
		case 7:
			w.retry()
		default:
			if r.IntN(2) == 0 {
				synctest.Wait()
			}
			c.hear(r.IntN(4) == 0, r.IntN(4) == 0)
		}
		for _, c := range w.clients {
			c.stream.sends()
		}
	}
	for range 3 {
		w.publish()
		w.trim()
		w.retry() // the snapshot may be the one that clients refused
		w.rests()
		w.clients[r.IntN(len(w.clients))].subscribe()
	}
	for _, c := range w.clients {
		c.disconnect()
	}
}

// rests lets all clients receive the waiting responses. It checks that each client has the subscribed
// resources of the snapshot, and the errors of missing names.
func (w *world) rests() {
	for i, c := range w.clients {
		c.settle()
		for typ, m := range c.types {
			asks := fmt.Sprintf("client %d (incremental: %v) asks for %s %v (all: %v)", i, c.delta, typ, slices.Sorted(maps.Keys(m.names)), m.wildcard)
			if want := w.wanted(m, typ, c.delta, c.counts); !maps.Equal(m.has, want) {
				w.t.Errorf("%s: has %v, want %v", asks, m.has, want)
			}
			want := make(map[string]string)
			for name := range m.names {
				if w.snapshot.Lookup(typ, name) == nil {
					want[name] = notThere
				}
			}
			m.errors.holds(w.t, asks, want)
		}
	}
}

// trimDelay is that of half the servers. Heartbeats come less often.
const trimDelay = 10 * time.Minute

// world is a server and its clients.
type world struct {
	t        *testing.T
	r        *rand.Rand
	pace     pace
	cache    *cache.Cache
	snapshot *xds.Snapshot
	clients  []*model
	// published are the words of all snapshots, in the order of publication.
	published []map[string]string
}

// modelNames are few, so that changes often concern the same resource.
var modelNames = []string{"a", "b", "c"}

// publish publishes a random snapshot: a new one, one with a single change, or an earlier one.
func (w *world) publish() {
	switch words := w.draw(); {
	case len(w.published) == 0 || w.r.IntN(2) == 0:
		w.published = append(w.published, words)
	case w.r.IntN(3) == 0:
		w.published = append(w.published, w.published[w.r.IntN(len(w.published))])
	default:
		next := maps.Clone(w.published[len(w.published)-1])
		key := slices.Sorted(maps.Keys(words))[w.r.IntN(len(words))]
		was := next[key]
		delete(next, key)
		if is := words[key]; is != was && !sharesPort(next, key, is) {
			next[key] = is
		}
		w.published = append(w.published, next)
	}
	words := w.published[len(w.published)-1]
	var list []string
	for _, key := range slices.Sorted(maps.Keys(words)) {
		list = append(list, key+words[key])
	}
	w.snapshot = after(w.snapshot, drawn(w.t, list), w.r)
	if err := w.cache.Publish(w.t.Context(), w.snapshot); err != nil {
		w.t.Fatal(err)
	}
}

// sharesPort reports whether a listener would have the port of another listener.
func sharesPort(words map[string]string, key, is string) bool {
	port, _, _ := strings.Cut(is, "~")
	for other, word := range words {
		if strings.HasPrefix(other, "p/") && strings.HasPrefix(key, "p/") && strings.HasPrefix(word, port) {
			return true
		}
	}
	return false
}

// draw returns the words of a random snapshot: the contents by name.
func (w *world) draw() map[string]string {
	words := map[string]string{"c/a": "@1"}
	ports := w.r.Perm(5)
	for _, letter := range []string{"c", "e", "p", "r"} {
		for i, name := range modelNames {
			if w.r.IntN(3) > 0 {
				content := 1 + w.r.IntN(3)
				if letter == "p" {
					content = 1001 + ports[i]
				}
				word := fmt.Sprintf("@%d", content)
				if w.r.IntN(4) == 0 {
					word += "~3600s"
				}
				words[letter+"/"+name] = word
			}
		}
	}
	return words
}

// parsed caches the parsed resources of the random tests by their words.
var parsed sync.Map

// drawn returns the Snapshot of words.
func drawn(t *testing.T, words []string) *xds.Snapshot {
	t.Helper()
	var list []*xds.Resource
	for _, word := range words {
		r, ok := parsed.Load(word)
		if !ok {
			r, _ = parsed.LoadOrStore(word, parse(t, document(t, word)).All()[0])
		}
		list = append(list, r.(*xds.Resource))
	}
	return xds.NewSnapshot(list)
}

// after returns a Snapshot with the resources of s. Half of the time the Snapshot is an edit of before, so
// that the Cache knows the change.
func after(before, s *xds.Snapshot, r *rand.Rand) *xds.Snapshot {
	if before == nil || r.IntN(2) == 0 {
		return s
	}
	without := func(list, other []*xds.Resource) []*xds.Resource {
		return slices.DeleteFunc(list, func(r *xds.Resource) bool { return slices.Contains(other, r) })
	}
	return before.Apply(xds.Change{Removed: without(before.All(), s.All()), Added: without(s.All(), before.All())})
}

func (w *world) trim() {
	if _, _, err := w.cache.Trim(w.t.Context(), time.Now().Add(time.Second)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) retry() {
	if err := w.cache.Retry(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// wanted is what a client must have in the end: by state of the world, nobody tells a client which has not asked
// by name that a resource of most types is gone.
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
	if !delta && !cache.HoldsAll(typ) {
		for name, is := range m.has {
			if _, ok := want[name]; !ok && !m.names[name] && w.snapshot.Lookup(typ, name) == nil {
				want[name] = is
			}
		}
	}
	return want
}

// modelType is a client's subscription to a type, with its resources.
type modelType struct {
	names    map[string]bool
	wildcard bool
	legacy   bool // the wildcard is an empty list of names
	has      map[string]string
	versions map[string]string // incremental
	version  string            // state of the world: acknowledged
	errors   *heardErrors
	nonce    string
}

// heardErrors are the errors of resources that a client has heard on a stream. The server tells each error
// once. A client may be told the same error again only if the client has subscribed again since, or has refused
// a response with the resource or with an error of the resource.
type heardErrors struct {
	is map[string]string // the details, by the names that the client asks for
	// again is how often the client may hear the same error again, by each name that the client has asked for.
	again map[string]int
	// unsure are the names for which the server doesn't know whether the client has a resource: the client
	// has refused the last resource or error, or has unsubscribed from the name in between.
	unsure map[string]bool
}

func newHeardErrors() *heardErrors {
	return &heardErrors{is: make(map[string]string), again: make(map[string]int), unsure: make(map[string]bool)}
}

// subscribes records that the client subscribes to a name. more means that the client already subscribes to
// the name with other parameters.
func (h *heardErrors) subscribes(name string, more bool) {
	if !more {
		delete(h.is, name)
	}
	h.again[name]++
}

// hears records the errors of a response. told are the names of the resources in the response. gone drops a
// resource.
func (h *heardErrors) hears(t *testing.T, list []*discoveryv3.ResourceError, told []string, asks func(string) bool, gone func(string), refused bool) {
	for _, e := range list {
		name, detail := e.GetResourceName().GetName(), e.GetErrorDetail().GetMessage()
		again, subscribed := h.again[name]
		h.unsure[name] = refused
		switch {
		case !subscribed:
			t.Errorf("the client hears an error of %q, and has not asked for that", name)
		case slices.Contains(told, name):
			t.Errorf("a response has %q, and an error of that", name)
		case !asks(name): // the client has unsubscribed
		case h.is[name] == detail && again == 0:
			t.Errorf("the client hears a second time of %q: %s", name, detail)
		case refused:
			h.again[name]++
		case h.is[name] == detail:
			h.again[name]--
		default:
			h.is[name] = detail
			gone(name)
		}
	}
	for _, name := range told {
		h.unsure[name] = refused
		if _, subscribed := h.again[name]; !refused {
			delete(h.is, name)
		} else if subscribed {
			h.again[name]++
		}
	}
}

// holds compares the errors with the errors that the client must know after all responses.
func (h *heardErrors) holds(t *testing.T, asks string, want map[string]string) {
	if !maps.Equal(h.is, want) {
		t.Errorf("%s: has errors of %q, want %q", asks, h.is, want)
	}
	for name := range h.again {
		if !h.unsure[name] { // a server that keeps what the client has may tell more later
			h.again[name] = 0
		}
	}
}

// model is a client that follows the protocol.
type model struct {
	*world
	delta bool
	// counts means that the client counts TTLs. drops means that the client drops a resource when it
	// unsubscribes from the name, even with a wildcard; the server must then send the resource again.
	counts, drops bool
	types         map[*xds.Type]*modelType

	stream *fake
	asked  bool // the client has sent a request on this stream
}

// fake is a stream between a client and the server, without a network.
type fake struct {
	grpc.ServerStream
	ctx    context.Context
	cancel func()
	up     chan any
	down   chan any
	ended  chan struct{}
	pace   pace
	queue  []any // requests that the server hasn't got yet
}

func newFake(ctx context.Context, p pace) *fake {
	ctx, cancel := context.WithCancel(ctx)
	return &fake{ctx: ctx, cancel: cancel, up: make(chan any, 1000), down: make(chan any, 1000), ended: make(chan struct{}), pace: p}
}

// pace decides when the server gets the requests of the clients. For half of the seeds the Rand of the seed
// decides: the server comes to rest after each request and each Snapshot, and the seed always has the same
// result. For the other half pace has no Rand, and the goroutines race, so that a request may overtake a
// response.
type pace struct{ *rand.Rand }

func newPace(r *rand.Rand) pace {
	if r.IntN(2) == 0 {
		return pace{}
	}
	return pace{r}
}

// ask sends a request to the server.
func (f *fake) ask(q any) {
	if f.pace.Rand == nil {
		f.up <- q
	} else {
		f.queue = append(f.queue, q)
	}
}

// sends lets the server come to rest, and delivers some of the queued requests, one after the other.
func (f *fake) sends() {
	if f.pace.Rand == nil {
		return
	}
	for synctest.Wait(); len(f.queue) > 0 && f.pace.IntN(2) == 0; synctest.Wait() {
		f.up <- f.queue[0]
		f.queue = f.queue[1:]
	}
}

// sendsAll delivers all requests to the server.
func (f *fake) sendsAll() {
	for len(f.queue) > 0 {
		f.sends()
	}
}

// serve serves the stream until the stream ends.
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

// received returns a copy of a message, as if it came from the network.
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
	c.stream = newFake(w.t.Context(), w.pace)
	c.asked = false
	go c.stream.serve(w.cache, c.delta)
	for _, typ := range xds.Types { // repeat all earlier subscriptions
		m := c.types[typ]
		if m == nil {
			continue
		}
		m.nonce, m.errors = "", newHeardErrors()
		for name := range m.names {
			m.errors.subscribes(name, false)
		}
		if !m.wildcard && len(m.names) == 0 { // an empty list would ask for all
			delete(c.types, typ)
			continue
		}
		if !c.delta {
			c.request(typ, m, nil)
			continue
		}
		q := &discoveryv3.DeltaDiscoveryRequest{InitialResourceVersions: maps.Clone(m.versions), ResourceNamesSubscribe: slices.Sorted(maps.Keys(m.names))}
		if m.wildcard && !(m.legacy && len(m.names) == 0) {
			q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, "*")
		}
		c.requestDelta(typ, q)
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
	c.stream.ask(&discoveryv3.DiscoveryRequest{Node: c.node(), TypeUrl: typ.URL(), ResourceNames: names, VersionInfo: m.version, ResponseNonce: m.nonce, ErrorDetail: refused})
}

func (c *model) requestDelta(typ *xds.Type, q *discoveryv3.DeltaDiscoveryRequest) {
	q.Node, q.TypeUrl = c.node(), typ.URL()
	c.stream.ask(q)
}

// subscribe begins or changes a subscription to a random type, and sends the request.
func (c *model) subscribe() {
	typ := []*xds.Type{xds.Cluster, xds.Endpoints, xds.Listener, xds.RouteConfiguration}[c.r.IntN(4)]
	m := c.types[typ]
	if m == nil {
		m = &modelType{names: make(map[string]bool), has: make(map[string]string), versions: make(map[string]string), errors: newHeardErrors()}
		c.types[typ] = m
		if typ == xds.Cluster || typ == xds.Listener {
			m.wildcard = c.r.IntN(2) == 0
			m.legacy = m.wildcard
		}
		if !m.wildcard {
			name := modelNames[c.r.IntN(len(modelNames))]
			m.names[name] = true
			m.errors.subscribes(name, false)
		}
		if c.delta {
			c.requestDelta(typ, &discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: slices.Sorted(maps.Keys(m.names))})
		} else {
			c.request(typ, m, nil)
		}
		return
	}
	q := &discoveryv3.DeltaDiscoveryRequest{}
	c.change(m, q)
	if c.delta {
		c.requestDelta(typ, q)
	} else {
		c.request(typ, m, nil)
	}
}

// change changes the client's subscription to a type at random: at most three names and the wildcard. change
// adds the changes to an incremental request.
func (c *model) change(m *modelType, q *discoveryv3.DeltaDiscoveryRequest) {
	changed := make(map[string]bool) // a request has each name once
	for range 1 + c.r.IntN(3) {
		name := append([]string{"*"}, modelNames...)[c.r.IntN(1+len(modelNames))]
		if changed[name] {
			continue
		}
		changed[name] = true
		switch {
		case name == "*" && !m.wildcard:
			m.wildcard, m.legacy = true, false
			q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, name)
		case name == "*" && m.legacy && !c.delta:
			changed[name] = false // only an incremental request can say this
		case name == "*":
			m.wildcard = false
			q.ResourceNamesUnsubscribe = append(q.ResourceNamesUnsubscribe, name)
		case m.names[name] && c.r.IntN(4) > 0:
			delete(m.names, name)
			delete(m.errors.is, name)
			q.ResourceNamesUnsubscribe = append(q.ResourceNamesUnsubscribe, name)
			if m.wildcard && c.drops && c.delta {
				delete(m.has, name)
				delete(m.versions, name)
			}
		default:
			if c.delta || !m.names[name] {
				m.errors.subscribes(name, false)
			}
			m.names[name] = true
			q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, name)
			m.legacy = m.legacy && c.delta // by state of the world the client sends * from now on
		}
	}
	for name := range m.has { // the client drops unsubscribed resources
		if !m.wildcard && !m.names[name] {
			delete(m.has, name)
			delete(m.versions, name)
		}
	}
}

// hear receives a response if one is waiting, and acknowledges or refuses the response. With change, the
// answer may change the subscription. hear reports whether a response was waiting.
func (c *model) hear(refuse, change bool) bool {
	select {
	case r := <-c.stream.down:
		c.take(r, refuse, change)
		return true
	default:
		return false
	}
}

func (c *model) take(r any, refuse, change bool) {
	var refused *status.Status
	if refuse {
		refused = &status.Status{Code: 3, Message: "no"}
	}
	switch r := r.(type) {
	case *discoveryv3.DiscoveryResponse:
		typ := xds.TypeOfURL(r.GetTypeUrl())
		m := c.types[typ]
		m.nonce = r.GetNonce()
		var told []string
		for _, any := range r.GetResources() {
			told = append(told, any2name(c.t, any))
		}
		c.fails(m, r.GetResourceErrors(), told, refuse)
		if !refuse {
			m.version = r.GetVersionInfo()
			if typ == xds.Cluster || typ == xds.Listener {
				clear(m.has)
			}
			for _, any := range r.GetResources() {
				c.keep(m, any2name(c.t, any), nameOf(c.t, any), "")
			}
		}
		if change {
			c.change(m, &discoveryv3.DeltaDiscoveryRequest{})
		}
		c.request(typ, m, refused)
	case *discoveryv3.DeltaDiscoveryResponse:
		typ := xds.TypeOfURL(r.GetTypeUrl())
		m := c.types[typ]
		once(c.t, r)
		var told []string
		for _, res := range r.GetResources() {
			told = append(told, res.GetName())
		}
		c.fails(m, r.GetResourceErrors(), told, refuse)
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
		q := &discoveryv3.DeltaDiscoveryRequest{ResponseNonce: r.GetNonce(), ErrorDetail: refused}
		if change {
			c.change(m, q)
		}
		c.requestDelta(typ, q)
	}
}

// once checks that an incremental response has no name twice, and doesn't have the wildcard.
func once(t *testing.T, r *discoveryv3.DeltaDiscoveryResponse) {
	var all []string
	for _, res := range r.GetResources() {
		name := res.GetName()
		if res.GetResourceName() != nil {
			name = res.GetResourceName().GetName() + constraintsText(t, res.GetResourceName())
		}
		all = append(all, name)
	}
	all = append(all, r.GetRemovedResources()...)
	for _, name := range r.GetRemovedResourceNames() {
		all = append(all, name.GetName()+constraintsText(t, name))
	}
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) < len(all) || slices.Contains(all, "*") {
		t.Errorf("a response has names twice, or the wildcard: %q", all)
	}
}

func (c *model) keep(m *modelType, name, is, version string) {
	if m.wildcard || m.names[name] {
		m.has[name] = is
		m.versions[name] = version
	}
}

// fails records the errors of a response.
func (c *model) fails(m *modelType, errors []*discoveryv3.ResourceError, told []string, refused bool) {
	m.errors.hears(c.t, errors, told, func(name string) bool { return m.names[name] }, func(name string) {
		delete(m.has, name)
		delete(m.versions, name)
	}, refused)
}

// settle receives and acknowledges responses until none comes, even after all delays.
func (c *model) settle() {
	for heard := true; heard; {
		heard = false
		c.stream.sendsAll()
		time.Sleep(trimDelay + time.Minute)
		for synctest.Wait(); c.hear(false, false); synctest.Wait() {
			c.stream.sendsAll()
			heard = true
		}
	}
}

// TestNamesWhilePublished has a client subscribe to names, and unsubscribe, while other goroutines publish.
// go test -race finds other readers of the library's map of names, which the library changes.
func TestNamesWhilePublished(t *testing.T) {
	c := cache.New(cache.Options{})
	snapshots := []*xds.Snapshot{snapshot(t, []string{"c/a", "c/b"}), snapshot(t, []string{"c/a@2", "c/b"})}
	publish := func(i int) {
		if err := c.Publish(t.Context(), snapshots[i%2]); err != nil {
			t.Error(err)
		}
	}
	publish(0)
	stream := newFake(t.Context(), pace{})
	go stream.serve(c, true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			publish(i)
			c.Gaps()
			c.Clients()
		}
	}()
	node := &corev3.Node{Id: "test"}
	for i := range 200 {
		q := &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: xds.Cluster.URL(), ResourceNamesSubscribe: []string{"a", fmt.Sprint(i)}}
		if i > 0 {
			q.ResourceNamesUnsubscribe = []string{fmt.Sprint(i - 1)}
		}
		stream.up <- q
		select {
		case r := <-stream.down:
			stream.up <- &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResponseNonce: r.(*discoveryv3.DeltaDiscoveryResponse).GetNonce()}
		default:
		}
	}
	<-done
	stream.cancel()
	<-stream.ended
}
