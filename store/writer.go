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

// Writer publishes the snapshots of a watch in a store. A Writer is a watch.Observer and a watch.Store, and
// safe for concurrent use. The watch does not wait for the store.
type Writer struct {
	options WriterOptions

	changed chan struct{}

	mu      sync.Mutex
	ctx     context.Context // nil before RunWhile
	targets map[string]*slot
	running parallel.Group
}

// NewWriter returns a Writer. NewWriter connects to no server.
func NewWriter(o WriterOptions) *Writer {
	return &Writer{options: o, changed: make(chan struct{}, 1), targets: make(map[string]*slot)}
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
		t = &slot{options: w.options, keys: w.options.Address.keys(target), log: w.options.Log.For(target), changed: w.changed, news: make(chan struct{}, 1)}
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

// State implements watch.Store.
func (w *Writer) State(target string) *control.Store {
	w.mu.Lock()
	t := w.targets[target]
	w.mu.Unlock()
	is := control.Store{Address: w.options.Address.String()}
	if t != nil {
		is = t.state()
	}
	return &is
}

// Changed implements watch.Store.
func (w *Writer) Changed() <-chan struct{} { return w.changed }

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
	changed chan struct{}
	is      atomic.Pointer[control.Store] // nil before the first change
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
		s.show(func(c *control.Store) { c.Writes, c.Writer = false, "" })
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

// fail shows an error, and logs the error unless the last logged error is the same.
func (s *slot) fail(err error) {
	text := err.Error()
	s.show(func(c *control.Store) { c.Error = text })
	if text != s.said {
		s.said = text
		s.log.Write(event.StoreFailed{Store: s.options.Address.String(), Error: err})
	}
}

// state returns how the slot stands to the store.
func (s *slot) state() control.Store {
	if is := s.is.Load(); is != nil {
		return *is
	}
	return control.Store{Address: s.options.Address.String()}
}

// show changes the state of the slot. Only run calls show.
func (s *slot) show(change func(*control.Store)) {
	was := s.state()
	is := was
	change(&is)
	if is == was {
		return
	}
	if is.Writes != was.Writes || is.Error != was.Error {
		is.Since = time.Now().UTC().Round(0)
	}
	s.is.Store(&is)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
