package parallel

import (
	"sync"

	"xdspub/internal/crash"
)

// Group runs functions on goroutines, as a sync.WaitGroup does. If a function panics, Wait panics. The zero Group has
// no functions.
type Group struct {
	wg      sync.WaitGroup
	mu      sync.Mutex
	crashed *crash.Error // the first panic; nil for none
}

// Go calls f on a goroutine.
func (g *Group) Go(f func()) {
	g.wg.Go(func() {
		if e := crash.Try(f); e != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.crashed == nil {
				g.crashed = e
			}
		}
	})
}

// Wait waits for all functions. If a function panicked, Wait panics with a *crash.Error.
func (g *Group) Wait() {
	g.wg.Wait()
	if g.crashed != nil {
		panic(g.crashed)
	}
}
