package upstream

import "sync/atomic"

// Budget bounds the bytes of the resources of several Upstreams. A nil Budget has no bound.
type Budget struct {
	most int64
	held atomic.Int64
}

// NewBudget returns a Budget of a number of bytes.
func NewBudget(bytes int64) *Budget { return &Budget{most: bytes} }

// add counts bytes as held.
func (b *Budget) add(bytes int64) {
	if b != nil {
		b.held.Add(bytes)
	}
}

// full reports whether more bytes are held than allowed.
func (b *Budget) full() bool { return b != nil && b.held.Load() > b.most }

// keep records the world of the part. The Budget gets back the bytes of the world before, if its session has ended.
func (a *authority) keep(w *world) {
	a.upstream.mu.Lock()
	defer a.upstream.mu.Unlock()
	a.keepLocked(w)
}

// keepLocked is keep for a caller that holds the Upstream's mu.
func (a *authority) keepLocked(w *world) {
	if was := a.kept; was != w {
		if a.kept = w; was != nil && was.ended {
			a.upstream.options.Budget.add(-was.bytes)
		}
	}
}

// endWorld records that the session of a world has ended. The Budget gets back the bytes of the world, unless the part
// has them.
func (a *authority) endWorld(w *world) {
	a.upstream.mu.Lock()
	defer a.upstream.mu.Unlock()
	if w.ended = true; a.kept != w {
		a.upstream.options.Budget.add(-w.bytes)
	}
}
