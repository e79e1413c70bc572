package cache

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/xds"
	"xdspub/xds/bind"
)

// view holds the resources of one class in one form, and the Streams that get them.
type view struct {
	medium  medium
	located bool
	several bool // the view is for clients with several parameter sets (several.go)
	// named maps each variant to its copy with the new name. constraints are the constraints by their text in
	// the new names. Only a view with several uses both.
	named       map[*xds.Resource]*xds.Resource
	constraints constrained
	clients     *registry

	// Only Cache uses these, under its lock.
	binder bind.Binder
	source *xds.Snapshot // last bound Snapshot; nil before the first

	current atomic.Pointer[state] // nil before the first Publish

	mu      sync.Mutex
	streams map[*Stream]struct{}
	beats   map[time.Duration]*time.Timer // by TTL
	pushed  *state                        // of the last wake; nil before
	// waiting holds, by type, a channel that is closed when resources of the type change.
	waiting map[*xds.Type]chan struct{}
}

func newView(m medium, located bool, clients *registry) *view {
	return &view{
		medium: m, located: located, clients: clients, streams: make(map[*Stream]struct{}),
		beats: make(map[time.Duration]*time.Timer), waiting: make(map[*xds.Type]chan struct{}),
	}
}

// bind makes a Snapshot the view's current state, and sends nothing. If ctx ends first, bind returns false
// and changes nothing.
func (v *view) bind(ctx context.Context, source *xds.Snapshot) bool {
	was := v.current.Load()
	var changes []xds.Edited
	known := false
	if was != nil && !v.several {
		if changes, known = source.ChangesSince(v.source); known {
			changes, known = v.binder.Edit(source, changes)
		}
	}
	var next *xds.Snapshot
	if known {
		next = was.Apply(xds.ChangeOf(changes))
	} else {
		bound := source
		if v.several && v.medium.Inline().Groups {
			bound = withoutMembers(source)
		}
		if next = v.binder.Bind(ctx, bound, v.medium); next == nil {
			return false
		}
		if v.several {
			next = v.name(next)
		}
		if was != nil {
			changes = edits(was.Snapshot, next)
		}
	}
	v.source = source
	v.current.Store(was.next(next, changes, v))
	return true
}

// split returns a new view for some clients of v, which will get other resources than v.
func (v *view) split() *view {
	s := newView(v.medium, v.located, v.clients)
	s.source, s.several = v.source, v.several
	s.current.Store(v.current.Load())
	return s
}

// push sends the changes to all streams, and wakes waiting requests. If w is not nil, the streams report to
// w.
func (v *view) push(w *wait) {
	streams := v.all()
	if w != nil { // before the pushes, whose answers w must get
		for _, s := range streams {
			s.confirm(w)
		}
		v.clients.polls.confirm(w, v)
	}
	v.wake(v.current.Load())
	for _, s := range streams {
		s.published()
	}
}

func (v *view) all() []*Stream {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.streams))
}

// wake wakes the requests for types that have changed since the last wake.
func (v *view) wake(now *state) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for t, changed := range v.waiting {
		if v.pushed == nil || len(now.changedSince(v.pushed, t)) > 0 {
			close(changed)
			delete(v.waiting, t)
		}
	}
	v.pushed = now
}

// wakeAll wakes all waiting requests.
func (v *view) wakeAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, changed := range v.waiting {
		close(changed)
	}
	clear(v.waiting)
}

func (v *view) add(s *Stream) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.streams[s] = struct{}{}
}

func (v *view) remove(s *Stream) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.streams, s)
}

// wait returns a channel that is closed when resources of a type change.
func (v *view) wait(t *xds.Type) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	changed := v.waiting[t]
	if changed == nil {
		changed = make(chan struct{})
		v.waiting[t] = changed
	}
	return changed
}
