package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/internal/parallel"
	"xdspub/store/waves"
	"xdspub/watch/control"
	"xdspub/xds"
)

// WriterOptions configure a Writer.
type WriterOptions struct {
	Options
	// By is the user of the process, as user@host.
	By string
	// Checks judge the fleet while a candidate is out on a part of the machines.
	Checks []Check
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Writer publishes the snapshots of a watch in a store. A Writer is a watch.Observer and a watch.Store, and
// safe for concurrent use. The watch does not wait for the store.
type Writer struct {
	options WriterOptions
	plan    atomic.Pointer[waves.Plan] // nil before Configure
	changed chan struct{}

	mu      sync.Mutex
	ctx     context.Context // nil before RunWhile
	targets map[string]*targetWriter
	watches map[string]control.Watch // by target
	running parallel.Group
}

// NewWriter returns a Writer. NewWriter connects to no server.
func NewWriter(o WriterOptions) *Writer {
	return &Writer{options: o, changed: make(chan struct{}, 1), targets: make(map[string]*targetWriter), watches: make(map[string]control.Watch)}
}

// Configure sets the waves of the next rollouts; a nil Plan means that all machines get a snapshot at once. A running
// rollout keeps its waves.
func (w *Writer) Configure(p waves.Plan) {
	w.plan.Store(&p)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.targets {
		t.wake()
	}
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
		t = &targetWriter{
			options: w.options, target: target, keys: w.options.Address.keys(target), log: w.options.Log.For(target), changed: w.changed,
			news: make(chan struct{}, 1), writer: w, now: time.Now,
		}
		t.pauseFor(w.watches[target])
		var ctx context.Context
		ctx, t.end = context.WithCancel(w.ctx)
		w.targets[target] = t
		t.wanted.Store(s)
		w.running.Go(crash.Again(ctx.Done(), func() { t.run(ctx) }, t.log.Crashed))
	}
	t.wanted.Store(s)
	t.wake()
}

// Tell implements watch.Observer. During a pause, a freeze or a trial of the watch, no wave opens.
func (w *Writer) Tell(target string, is control.Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches[target] = is
	if t := w.targets[target]; t != nil && t.pauseFor(is) {
		t.wake()
	}
}

// unsettled returns why machines of a target may lack the snapshot of the source tree; empty if all have the snapshot.
func (w *Writer) unsettled(target string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, is := w.targets[target], w.watches[target]
	switch {
	case t == nil || is.Snapshot == "":
		return "nothing of it is published"
	case is.Refused != nil || is.Waits != nil || is.Failed != "":
		return "its source tree is refused or waits"
	case is.Running != nil || t.wanted.Load() != t.through.Load():
		return "its machines do not all have its snapshot"
	}
	return ""
}

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
	delete(w.watches, target)
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

// targetWriter publishes the snapshots of one target.
type targetWriter struct {
	options     WriterOptions
	writer      *Writer
	target      string
	keys        keys
	log         *event.Log
	end         context.CancelFunc
	news        chan struct{} // full while wanted is not published
	wanted      atomic.Pointer[xds.Snapshot]
	watchPaused atomic.Pointer[string]       // why the watch keeps waves from opening; nil for no reason
	through     atomic.Pointer[xds.Snapshot] // the wanted snapshot, if all machines get it; otherwise nil
	lastLogged  string                       // the last logged error
	last        at                           // the base, as this process knows the head
	now         func() time.Time
	changed     chan struct{}
	is          atomic.Pointer[control.Store] // nil before the first change
}

// wake begins the next turn of the term.
func (s *targetWriter) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// pauseFor sets watchPaused by the state of a watch, and reports whether watchPaused has changed.
func (s *targetWriter) pauseFor(is control.Watch) bool {
	var why string
	switch {
	case is.Paused != nil:
		why = "publishing is paused " + is.Paused.String()
	case is.Frozen != nil:
		why = "publishing is frozen " + is.Frozen.String()
	case is.Trial != nil:
		why = is.Trial.String()
	}
	was := s.watchPaused.Load()
	if was == nil && why == "" || was != nil && *was == why {
		return false
	}
	if why == "" {
		s.watchPaused.Store(nil)
	} else {
		s.watchPaused.Store(&why)
	}
	return true
}

// plan returns the waves of the next rollout; nil for none.
func (s *targetWriter) plan() waves.Plan {
	if p := s.writer.plan.Load(); p != nil && len(*p) > 0 {
		return *p
	}
	return nil
}

// run begins a term, and after its end another term, until ctx ends.
func (s *targetWriter) run(ctx context.Context) {
	again(ctx, func(works func()) error {
		began := time.Now()
		err := s.term(ctx)
		s.show(func(c *control.Store) { c.Writes, c.Writer, c.Rollout = false, "", nil })
		if time.Since(began) > maxPause {
			works()
		}
		return err
	}, s.fail)
}

// fail shows an error, and logs the error unless the last logged error is the same.
func (s *targetWriter) fail(err error) {
	text := err.Error()
	s.show(func(c *control.Store) { c.Error = text })
	if text != s.lastLogged {
		s.lastLogged = text
		s.log.Write(event.StoreFailed{Store: s.options.Address.String(), Error: err})
	}
}

// state returns how the targetWriter stands to the store.
func (s *targetWriter) state() control.Store {
	if is := s.is.Load(); is != nil {
		return *is
	}
	return control.Store{Address: s.options.Address.String()}
}

// show changes the state of the targetWriter. Only run calls show.
func (s *targetWriter) show(change func(*control.Store)) {
	was := s.state()
	is := was
	change(&is)
	if is == was {
		return
	}
	if failed, fails := was.Error != "", is.Error != ""; failed != fails || !fails && is.Writes != was.Writes {
		is.Since = time.Now().UTC().Round(0)
	}
	s.is.Store(&is)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
