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
	"maps"
	"sync"
	"time"

	"xdspub/event"
	"xdspub/xds"
)

// Options of a Cache.
type Options struct {
	// Cluster is the name of the static cluster through which clients of a singleton service
	// reach this server, as their bootstraps have it.
	Cluster string
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Cache holds what is served. It may be used from any goroutine.
type Cache struct {
	options  Options
	registry *registry

	mu sync.Mutex
	// snapshot was published last; nil before the first Publish.
	snapshot *xds.Snapshot
	// served is that with the retired resources.
	served  *xds.Snapshot
	retired map[xds.Key]retired
	views   map[Kind]*view
}

// retired is a resource that the Snapshot no longer has, and since when.
type retired struct {
	*xds.Resource
	since time.Time
}

// New returns a Cache that answers nobody until the first Publish.
func New(o Options) *Cache {
	return &Cache{options: o, registry: newRegistry(o.Log), retired: make(map[xds.Key]retired), views: make(map[Kind]*view)}
}

// Publish makes a Snapshot what is served, and sends each client what has changed for it.
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
	if s == c.snapshot || c.snapshot != nil && s.ID() == c.snapshot.ID() {
		return c.snapshot, nil
	}
	served, retired := c.withRetired(s)
	if err := c.serve(ctx, served, w); err != nil {
		return nil, err
	}
	before, c.snapshot, c.served, c.retired = c.snapshot, s, served, retired
	c.registry.places.forget()
	return before, nil
}

// Retry sends clients once more what they refused. It returns the error of ctx where that has
// ended.
func (c *Cache) Retry(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served == nil {
		return nil
	}
	if err := c.serve(ctx, c.served, nil); err != nil {
		return err
	}
	c.registry.polls.release()
	if v := c.views[REST]; v != nil {
		v.wakeAll()
	}
	return nil
}

// Trim removes the resources that were retired before a time, and tells the clients. It returns
// how many they are, and since when the oldest of the others is retired; zero where there is none.
func (c *Cache) Trim(ctx context.Context, before time.Time) (removed int, oldest time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gone []*xds.Resource
	for _, r := range c.retired {
		if r.since.Before(before) {
			gone = append(gone, r.Resource)
		} else if oldest.IsZero() || r.since.Before(oldest) {
			oldest = r.since
		}
	}
	if err := c.remove(ctx, gone); err != nil {
		return 0, time.Time{}, err
	}
	return len(gone), oldest, nil
}

// remove removes retired resources, and tells the clients.
func (c *Cache) remove(ctx context.Context, gone []*xds.Resource) error {
	if len(gone) == 0 {
		return nil
	}
	served := c.served.Apply(xds.Change{Removed: gone})
	if err := c.serve(ctx, served, nil); err != nil {
		return err
	}
	stay := maps.Clone(c.retired)
	for _, r := range gone {
		delete(stay, r.Key)
	}
	c.served, c.retired = served, stay
	return nil
}

// serve hands a Snapshot to all views.
func (c *Cache) serve(ctx context.Context, served *xds.Snapshot, w *wait) error {
	for _, v := range c.views {
		if !v.bind(ctx, served) {
			return ctx.Err()
		}
	}
	for _, v := range c.views {
		v.push(w)
	}
	return nil
}

// withRetired returns a Snapshot with the resources that it no longer has and clients may still
// use: those, and the resources of the Snapshot. It is made from what is served, by the Change
// alone where that is known.
func (c *Cache) withRetired(s *xds.Snapshot) (*xds.Snapshot, map[xds.Key]retired) {
	if c.snapshot == nil {
		return s, c.retired
	}
	all, now := maps.Clone(c.retired), time.Now()
	var change []xds.Edited
	for _, e := range edits(c.snapshot, s) {
		key := e.Key()
		e.Was = c.served.Lookup(key.Type, key.Name) // with the same content as that of c.snapshot
		if e.Is == nil && key.Type != xds.Listener {
			all[key] = retired{e.Was, now}
			continue
		}
		delete(all, key)
		change = append(change, e)
	}
	if len(change) == 0 {
		return c.served, all
	}
	return c.served.Apply(xds.ChangeOf(change)), all
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
	return list
}

// Served returns the Snapshot that clients get: the one that was published last, with the resources
// that stay until Trim. It is nil before the first Publish.
func (c *Cache) Served() *xds.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served
}

// Resources returns how many resources are served.
func (c *Cache) Resources() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served == nil {
		return 0
	}
	return c.served.Len()
}

// Open returns the Stream of one client. only is the type of a singleton service, nil for the
// aggregated one. Close it when the client is gone.
func (c *Cache) Open(kind Kind, only *xds.Type) *Stream { return c.view(kind).open(only) }

// view returns the view of a Kind, and makes it where that is the first that asks for it.
func (c *Cache) view(kind Kind) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[kind]
	if v == nil {
		v = newView(medium{kind, c.options.Cluster}, c.registry)
		c.views[kind] = v
		if c.served != nil {
			v.bind(context.Background(), c.served)
		}
	}
	return v
}
