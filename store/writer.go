package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/internal/parallel"
	"xdspub/watch/control"
	"xdspub/xds"
)

// WriterOptions configure a Writer.
type WriterOptions struct {
	Options
	// By is the user of the process, as user@host.
	By string
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Writer publishes the snapshots of a watch in a store. A Writer is a watch.Observer, and safe for concurrent use. The
// watch does not wait for the store.
type Writer struct {
	options WriterOptions

	mu      sync.Mutex
	ctx     context.Context // nil before RunWhile
	targets map[string]*slot
	running parallel.Group
}

// NewWriter returns a Writer. NewWriter connects to no server.
func NewWriter(o WriterOptions) *Writer {
	return &Writer{options: o, targets: make(map[string]*slot)}
}

// RunWhile publishes while run runs, and then gives the leases back. The error is that of run.
func (w *Writer) RunWhile(ctx context.Context, run func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	w.mu.Lock()
	w.ctx = ctx
	w.mu.Unlock()
	defer w.running.Wait()
	defer end()
	return run(ctx)
}

// Published implements watch.Observer: s is the published snapshot of a target.
func (w *Writer) Published(target string, s *xds.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.targets[target]
	if t == nil {
		t = &slot{options: w.options, keys: w.options.Address.keys(target), log: w.options.Log.For(target), news: make(chan struct{}, 1)}
		var ctx context.Context
		ctx, t.end = context.WithCancel(w.ctx)
		w.targets[target] = t
		t.wanted.Store(s)
		w.running.Go(crash.Again(ctx.Done(), func() { t.run(ctx) }, t.log.Crashed))
	}
	t.wanted.Store(s)
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// Tell implements watch.Observer, and does nothing.
func (w *Writer) Tell(string, control.Watch) {}

// Read implements watch.Observer, and does nothing.
func (w *Writer) Read(string, *xds.Snapshot) {}

// Removed implements watch.Observer: the settings no longer have a target. Its head stays.
func (w *Writer) Removed(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.targets[target]; t != nil {
		t.end()
		delete(w.targets, target)
	}
}

// slot publishes the snapshots of one target.
type slot struct {
	options WriterOptions
	keys    keys
	log     *event.Log
	end     context.CancelFunc
	news    chan struct{} // full while wanted is not published
	wanted  atomic.Pointer[xds.Snapshot]
	said    string // the last logged error
	last    at     // what this process knows of the head
}

// minPause is the pause after the first error, and maxPause the longest one. Tests shorten maxPause.
const minPause = time.Second

var maxPause = 30 * time.Second

// run begins a term, and after its end another term, until ctx ends.
func (s *slot) run(ctx context.Context) {
	pause := minPause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.term(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.fail(err)
		}
		if time.Since(began) > maxPause {
			pause = minPause
		}
		select {
		case <-time.After(jittered(pause)):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxPause)
	}
}

// fail logs an error, unless the last logged error is the same.
func (s *slot) fail(err error) {
	if text := err.Error(); text != s.said {
		s.said = text
		s.log.Write(event.StoreFailed{Store: s.options.Address.String(), Error: err})
	}
}
