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

// setPartState sets partState. The Budget gets back the bytes of the former partState, if the session of that state has
// ended.
func (a *authority) setPartState(st *streamState) {
	a.upstream.mu.Lock()
	defer a.upstream.mu.Unlock()
	a.setPartStateLocked(st)
}

// setPartStateLocked is setPartState for a caller that holds the Upstream's mu.
func (a *authority) setPartStateLocked(st *streamState) {
	if was := a.partState; was != st {
		if a.partState = st; was != nil && was.ended {
			a.upstream.options.Budget.add(-was.bytes)
		}
	}
}

// endStreamState records that the session of a stream has ended. The Budget gets back the bytes of the state, unless
// the part has them.
func (a *authority) endStreamState(st *streamState) {
	a.upstream.mu.Lock()
	defer a.upstream.mu.Unlock()
	if st.ended = true; a.partState != st {
		a.upstream.options.Budget.add(-st.bytes)
	}
}
