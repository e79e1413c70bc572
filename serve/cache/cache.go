// Package cache answers clients of the xDS transport protocol from Snapshots. It stands behind
// the streams of go-control-plane's server, which keeps nonces and lists of names: a Stream
// implements its cache.ConfigWatcher for one stream.
//
//	c := cache.New(cache.Options{})
//	c.Publish(ctx, snapshot)
//	stream := c.Open(cache.Aggregated, nil)
//	defer stream.Close()
//	err := sotw.NewServer(ctx, stream, stream, sotw.WithOrderedADS()).StreamHandler(grpcStream, "")
//
// It sends what has changed for a client, and nothing else; a version that a client refused is
// not sent to it again before the Snapshot changes. The work of a Publish follows the change and
// the streams, not the number of resources.
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

// Options of a Cache.
type Options struct {
	// Cluster is the name of the static cluster through which clients of a singleton service
	// reach this server, as their bootstraps have it.
	Cluster string
	// Parameters returns the dynamic parameters of a client that sends none, by its node, which may be nil;
	// nil means that there are none.
	Parameters func(*corev3.Node) params.Parameters
	// TrimDelay is how long a client that comes back keeps a resource that it says it has and the server
	// does not know. Listeners go at once.
	TrimDelay time.Duration
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Cache holds what is served. It may be used from any goroutine.
type Cache struct {
	options  Options
	registry *registry

	mu sync.Mutex
	// tree has all variants of what was published last; nil before the first Publish.
	tree *variants.Tree
	// classes are those of the clients that are there. The first one is that of a client without a
	// node, which is there always.
	classes []*class
	// all has all variants of what is published, for who does not hold the lock; nil before the first Publish.
	all atomic.Pointer[xds.Snapshot]
	// changes is odd while Publish changes all and the states of the views. A state belongs to all if changes is
	// even, and is the same before the state is loaded and after all is asked.
	changes atomic.Uint64
	// rest are the views of clients by REST, by their parameters.
	rest atomic.Pointer[restViews]
}

// New returns a Cache that answers nobody until the first Publish.
func New(o Options) *Cache {
	if o.Parameters == nil {
		o.Parameters = func(*corev3.Node) params.Parameters { return nil }
	}
	c := &Cache{options: o, registry: newRegistry(o.Log), classes: []*class{newClass(o.Parameters(nil))}}
	c.rest.Store(new(restViews))
	return c
}

// Publish makes a Snapshot what is served, and sends each client what has changed for it. A client gets
// of a resource with variants the one that is for it.
// Resources that the Snapshot no longer has stay until Trim, but for listeners: clusters and what
// belongs to them may go only once no client uses them (make before break). It returns the error
// of ctx where that has ended; then all is as before.
func (c *Cache) Publish(ctx context.Context, s *xds.Snapshot) error {
	_, err := c.publish(ctx, s, nil)
	return err
}

// publish does the work of Publish, and returns the Snapshot that was published before. The clients
// that it concerns answer to the wait, unless that is nil.
func (c *Cache) publish(ctx context.Context, s *xds.Snapshot, w *wait) (before *xds.Snapshot, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tree := c.tree.After(s)
	if c.tree != nil {
		before = c.tree.All()
		if s == before || tree.ID() == c.tree.ID() {
			return before, nil
		}
	}
	same := c.tellsAs(tree)
	c.changes.Add(1)
	c.all.Store(tree.All()) // a client with a gap is told no removal, whichever of this and its state it sees first
	if err := c.serve(ctx, c.turns(tree, same), w); err != nil {
		c.all.Store(before)
		c.settle()
		return nil, err
	}
	if c.tree = tree; !same {
		c.wake() // some may be of another class
	}
	c.registry.places.forget()
	return before, nil
}

// settle ends what Publish began: all and the states of the views belong together.
func (c *Cache) settle() {
	if c.changes.Load()%2 == 1 {
		c.changes.Add(1)
	}
}

// serve has classes take their turns: those of all of them are bound before any client is told. Clients
// join their class before that: what they get by it until then is what they have.
func (c *Cache) serve(ctx context.Context, next []*turn, w *wait) error {
	c.classes = nil
	for _, t := range next {
		c.classes = append(c.classes, t.class)
		t.gather(c.registry.polls)
	}
	c.rest.Store(new(restViews))
	for _, t := range next {
		if !t.bind(ctx) {
			return ctx.Err()
		}
	}
	for _, t := range next {
		t.take()
	}
	c.settle()
	for _, t := range next {
		t.push(w)
	}
	return nil
}

// Retry sends clients once more what they refused. It returns the error of ctx where that has
// ended.
func (c *Cache) Retry(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree == nil {
		return nil
	}
	var again []*turn
	for _, of := range c.classes {
		again = append(again, of.stays())
	}
	if err := c.serve(ctx, again, nil); err != nil {
		return err
	}
	c.registry.polls.release()
	c.wake()
	return nil
}

// wake wakes all who wait for a change.
func (c *Cache) wake() {
	for _, of := range c.classes {
		for _, v := range of.views {
			v.wakeAll()
		}
	}
}

// Trim removes the resources that were retired before a time, and tells the clients. It returns
// how many they are, and since when the oldest of the others is retired; zero where there is none.
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
		next = append(next, of.without(gone))
	}
	if removed == 0 {
		return 0, oldest, nil
	}
	if err := c.serve(ctx, next, nil); err != nil {
		return 0, time.Time{}, err
	}
	return removed, oldest, nil
}

// Served returns the Snapshot that a client gets that says nothing of itself: the one that was published
// last, with the resources that stay until Trim. It is nil before the first Publish.
func (c *Cache) Served() *xds.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.classes[0].served
}

// Transitions returns what clients get, and what they would get of a Snapshot: one of each kind that the
// variants of resources tell apart, and for which the Snapshot changes something. It is empty before the
// first Publish.
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
		list = append(list, variants.Transition{Parameters: t.of, From: t.class.served, To: t.selection.Snapshot})
	}
	return list
}

// Resources returns how many resources are served, all variants of each.
func (c *Cache) Resources() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree == nil {
		return 0
	}
	return c.tree.All().Len()
}

// Open returns the Stream of one client. only is the type of a singleton service, nil for the
// aggregated one. Close it when the client is gone.
func (c *Cache) Open(kind Kind, only *xds.Type) *Stream {
	return &Stream{cache: c, kind: kind, only: only, subscriptions: make(map[*xds.Type]*subscription), spelled: make(map[*xds.Type]*spelled)}
}

// edits returns how two Snapshots differ, by resources.
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
	for _, r := range s.All() { // of the same content, for other clients
		if was := old.Lookup(r.Type, r.Name); was != nil && !was.ForSame(r) && was.Same(r) {
			list = append(list, xds.Edited{Was: was, Is: r})
		}
	}
	return list
}
