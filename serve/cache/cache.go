// Package cache answers clients of the xDS transport protocol from Snapshots. A Stream implements
// cache.ConfigWatcher of go-control-plane for one stream. go-control-plane's server handles the stream
// itself, with nonces and lists of names.
//
//	c := cache.New(cache.Options{})
//	c.Publish(ctx, snapshot)
//	stream := c.Open(cache.Aggregated, nil)
//	defer stream.Close()
//	err := sotw.NewServer(ctx, stream, stream, sotw.WithOrderedADS()).StreamHandler(grpcStream, "")
//
// A Cache sends each client only its changes. A Cache sends a refused resource again with the next state of the
// client's view (a Publish that changes it, a Trim, a Retry), and after a pause if the reason for the refusal may
// pass. The work of a Publish is proportional to the change and to the number of streams, not to the number of
// resources, unless a client has several parameter sets.
//
//	Cache ─ class    the clients with the same variants: one plain Snapshot
//	         └ view   a class in one form of the protocol; its content is a state
//	            └ Stream   a client's stream
//	               └ subscription   one type on the Stream: names, what the client has, the open request
//
// Begin with Publish, then class.go, view.go, stream.go and subscription.go. serve/testdata/protocol has a script for
// each rule of the protocol.
package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/event"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// Options configure a Cache.
type Options struct {
	// Cluster is the static cluster in the clients' bootstraps through which they reach a singleton service
	// of this server.
	Cluster string
	// Parameters returns the dynamic parameters of a client that sends none. The client's node may be nil. A
	// nil Parameters means no parameters.
	Parameters func(*corev3.Node) params.Parameters
	// TrimDelay is how long a reconnecting client keeps a resource that no longer exists. Listeners go with the next
	// response about listeners.
	TrimDelay time.Duration
	// Log receives the log lines; nil discards them.
	Log *event.Log
}

// Cache holds the served resources. Cache is safe for concurrent use.
type Cache struct {
	options  Options
	registry *registry

	mu sync.Mutex
	// tree has all variants of the last published Snapshot; nil before the first Publish.
	tree *variants.Tree
	// classes are the classes of the connected clients. classes[0] is the class of a client without a node,
	// which always exists.
	classes []*class
	// all has all variants of the published resources, for readers without the lock; nil before the first
	// Publish.
	all atomic.Pointer[xds.Snapshot]
	// changes is odd while Publish changes all and the states of the views. A state and all belong together
	// if changes is even, and is the same before loading the state and after loading all.
	changes atomic.Uint64
	// rest holds the views of REST clients, by their parameters.
	rest atomic.Pointer[restViews]
	// late waits for the clients that have not answered within the Timeout of Confirm; nil for no such wait.
	late *lateWait
}

// New returns a Cache. Clients get no answers before the first Publish.
func New(o Options) *Cache {
	if o.Parameters == nil {
		o.Parameters = func(*corev3.Node) params.Parameters { return nil }
	}
	c := &Cache{options: o, registry: newRegistry(o.Log), classes: []*class{newClass(o.Parameters(nil))}}
	c.rest.Store(new(restViews))
	return c
}

// Publish serves a Snapshot and sends each client the changes. Of each resource with variants, a client gets
// the variant for its parameters. Resources that the Snapshot drops stay until Trim, because clusters and
// their dependents may be removed only when no client uses them (make before break); listeners go with the next
// response about listeners. If ctx ends before all resources are bound, Publish returns its error and sends
// nothing. The next request of a client may then get resources of the Snapshot.
func (c *Cache) Publish(ctx context.Context, s *xds.Snapshot) error {
	_, _, err := c.publish(ctx, s, nil)
	return err
}

// publish does the work of Publish, and returns the Snapshot before; nil for none. changed is false if the Cache serves
// s already. If w is not nil, the clients concerned by the change report to w.
func (c *Cache) publish(ctx context.Context, s *xds.Snapshot, w *wait) (before *xds.Snapshot, changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tree := c.tree.After(s)
	if c.tree != nil {
		before = c.tree.All()
		if s == before || tree.ID() == c.tree.ID() {
			return before, false, nil
		}
	}
	c.endLate()
	same := c.tellsAs(tree)
	c.changes.Add(1)
	c.all.Store(tree.All()) // before the states, so that a client with a gap keeps its resources
	served := false
	defer func() {
		if !served { // ctx has ended, or a panic
			c.all.Store(before)
			c.settle()
		}
	}()
	if err := c.serve(ctx, c.turns(tree, same), w); err != nil {
		return nil, false, err
	}
	served = true
	if c.tree = tree; !same {
		c.wake() // a waiting client may have changed its class
	}
	c.registry.places.forget()
	return before, true, nil
}

// settle makes changes even: all and the states of the views belong together again. settle does nothing if no
// Publish is under way.
func (c *Cache) settle() {
	if c.changes.Load()%2 == 1 {
		c.changes.Add(1)
	}
}

// serve executes the turns of classes. serve binds all classes before it pushes any response. A client joins
// its new class before bind, because until then both classes have the same resources. If ctx ends before all
// classes are bound, serve returns its error.
func (c *Cache) serve(ctx context.Context, next []*turn, w *wait) error {
	c.classes = nil
	for _, t := range next {
		c.classes = append(c.classes, t.class)
		t.moveClients(c.registry.polls)
	}
	c.rest.Store(new(restViews))
	for _, t := range next {
		if !t.bind(ctx) {
			return ctx.Err()
		}
	}
	for _, t := range next {
		t.store()
	}
	c.settle()
	for _, t := range next {
		t.push(w)
	}
	return nil
}

// Retry sends clients again the resources that they refused. Retry does nothing before the first Publish. If
// ctx ends first, Retry returns its error.
func (c *Cache) Retry(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree == nil {
		return nil
	}
	var again []*turn
	for _, of := range c.classes {
		again = append(again, of.turnInPlace())
	}
	if err := c.serve(ctx, again, nil); err != nil {
		return err
	}
	c.registry.polls.release()
	c.wake()
	return nil
}

// wake wakes all waiting REST requests.
func (c *Cache) wake() {
	for _, of := range c.classes {
		for _, v := range of.views {
			v.wakeAll()
		}
	}
}

// Trim removes the resources that were retired before a time, from the clients too. removed is the number of
// these resources: a resource counts once for each class of clients that had it. oldest is the time at which
// the oldest remaining resource was retired; zero if none remains. If ctx ends first, Trim returns its error.
func (c *Cache) Trim(ctx context.Context, before time.Time) (removed int, oldest time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next []*turn
	for _, of := range c.classes {
		var gone []xds.Key
		for key, r := range of.retired {
			if r.since.Before(before) {
				gone = append(gone, key)
			} else if oldest.IsZero() || r.since.Before(oldest) {
				oldest = r.since
			}
		}
		removed += len(gone)
		next = append(next, of.turnWithout(gone))
	}
	if removed == 0 {
		return 0, oldest, nil
	}
	if err := c.serve(ctx, next, nil); err != nil {
		return 0, time.Time{}, err
	}
	return removed, oldest, nil
}

// Served returns the Snapshot for a client without a node: the published Snapshot with the retired resources
// that stay until Trim. Served returns nil before the first Publish.
func (c *Cache) Served() *xds.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.classes[0].served
}

// Transitions returns the changes that a Snapshot would make, for one client of each class whose resources
// change, and the losses of clients that ask for listeners by name. The class of clients with several parameter
// sets is left out. Transitions returns nil before the first Publish.
func (c *Cache) Transitions(s *xds.Snapshot) (list []variants.Transition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree == nil {
		return nil
	}
	tree := c.tree.After(s)
	for _, t := range c.turns(tree, c.tellsAs(tree)) {
		if t.class.several || t.still {
			continue
		}
		list = append(list, variants.Transition{
			Parameters: t.of, From: t.class.served, Current: t.class.selection.Snapshot, To: t.selection.Snapshot,
		})
	}
	return append(list, c.losses(tree)...)
}

// Resources returns the number of resources in the published Snapshot, counting each variant, without the
// retired resources.
func (c *Cache) Resources() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree == nil {
		return 0
	}
	return c.tree.All().Len()
}

// Open returns the Stream for one client. only is the type of a singleton service, nil for the aggregated
// service. The caller must Close the Stream.
func (c *Cache) Open(kind Kind, only *xds.Type) *Stream {
	return &Stream{cache: c, kind: kind, only: only, subscriptions: make(map[*xds.Type]*subscription), spelled: make(map[*xds.Type]*spelled)}
}

// edits returns the resources that differ between two Snapshots, in content or in constraints.
func edits(old, s *xds.Snapshot) []xds.Edited {
	if list, ok := s.ChangesSince(old); ok {
		return list
	}
	var list []xds.Edited
	d := s.Diff(old)
	for _, r := range d.Removed {
		list = append(list, xds.Edited{Was: r})
	}
	for _, r := range d.Changed {
		list = append(list, xds.Edited{Was: old.Lookup(r.Type, r.Name), Is: r})
	}
	for _, r := range d.Added {
		list = append(list, xds.Edited{Is: r})
	}
	for _, r := range s.All() { // the Diff lacks resources with other constraints and the same content
		if was := old.Lookup(r.Type, r.Name); was != nil && !was.ForSame(r) && was.Same(r) {
			list = append(list, xds.Edited{Was: was, Is: r})
		}
	}
	return list
}
