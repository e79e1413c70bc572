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

// keep records the world of the contents. The Budget gets back the bytes of the world before, if its session has ended.
func (u *Upstream) keep(w *world) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keepLocked(w)
}

// keepLocked is keep for a caller that holds u.mu.
func (u *Upstream) keepLocked(w *world) {
	if was := u.kept; was != w {
		if u.kept = w; was != nil && was.ended {
			u.options.Budget.add(-was.bytes)
		}
	}
}

// endWorld records that the session of a world has ended. The Budget gets back the bytes of the world, unless the
// contents have them.
func (u *Upstream) endWorld(w *world) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.ended = true; u.kept != w {
		u.options.Budget.add(-w.bytes)
	}
}
