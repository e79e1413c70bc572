package watch

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"xdspub/event"
	"xdspub/render/published"
	"xdspub/watch/control"
	"xdspub/watch/notify"
	"xdspub/xds"
)

// WatchOptions are the options of Watch.
type WatchOptions struct {
	// Watch says when Watch reads the source tree. It sets Ignore, Skip, Files and Log
	// itself.
	Watch notify.Options
	// Log is for what concerns all targets.
	Log *event.Log
	// Settings is a file that counts as part of the source; it may be missing.
	Settings string
	// Reload reads the Settings again, before each reading of the source tree; nil where
	// there are none. changed reports whether the Options differ from those before. It is called
	// by one goroutine at a time.
	Reload func() (all []Options, changed bool, err error)
	// Hangup delivers SIGHUP: Watch then logs its state once more, and retries what is held.
	Hangup <-chan os.Signal
	// Conflict returns, in words, how this watch of a source tree differs from the one that a
	// request describes; empty where it does not. nil takes every request. Several goroutines call it.
	Conflict func(source string, r control.RetryHeld) string
	// RetryHeld makes the first reconcile retry what is held.
	RetryHeld bool
	// MaxFindings is how many findings are logged at a time; 0 stands for all.
	MaxFindings int
}

// watching publishes for one target in a running Watch.
type watching struct {
	*Controller
	source    *source
	target    string
	first     bool      // the watch began with it
	news      chan news // by tell alone
	changeLog changeLog
	envoyLog  envoyLog
	asking    sync.WaitGroup // the questions to Envoys that no turn waits for

	state      state
	idlePass   idlePass // in the states idle and doubtful
	seen       uint64   // number of the look of the last pass; 0 if that pass failed
	configured uint64   // look.read, as of the Options
	garbage    bool     // passes have planned since giveBack
	nextTrim   time.Time

	control *control.Server
	shown   control.Watch // the state that it shows
	unheard string        // why there is no control socket, as logged last
}

// The reasons of reconciles beside those of a watcher.
const (
	starting = "start"
	hangup   = "SIGHUP"
	retrying = "retry-held"
	trimming = "trim"    // no reconcile
	removed  = "removed" // likewise: the target is gone
)

func newWatching(s *source, o Options) *watching {
	w := &watching{
		source: s, target: o.Target, news: make(chan news, 1), control: control.New(),
		changeLog: changeLog{log: o.Log, most: s.options.MaxFindings, alone: o.Target == ""}, envoyLog: newEnvoyLog(o.Log, s.options.Watch.Rescan),
	}
	o.Retried = w.retries
	w.Controller = New(o)
	return w
}

// tell has w look again. The source alone calls it, with its lock.
func (w *watching) tell(n news) {
	select {
	case was := <-w.news:
		n = was.and(n)
	default:
	}
	w.news <- n
}

// and joins later news to news that nobody has heeded. The later news may want an older look: tellOthers
// tells of a look that is done.
func (n news) and(later news) news {
	if n.urgency() >= later.urgency() {
		later.reason = n.reason
	}
	later.wanted = max(n.wanted, later.wanted)
	return later
}

// urgency ranks reasons: and keeps the most urgent one.
func (n news) urgency() int {
	switch n.reason {
	case removed:
		return 2
	case hangup:
		return 1
	default:
		return 0
	}
}

// run publishes until ctx ends or the target is gone.
func (w *watching) run(ctx context.Context) {
	defer w.source.tell(string(notify.Change)) // somebody may wait for the directory
	defer w.Close()
	defer w.control.Close()
	defer w.asking.Wait()
	if err := w.begin(ctx); err != nil && w.first { // a later one tries again with the next look, and no other ends for it
		w.source.cannotBegin(w.target, err)
	}
	w.giveBack() // to read and publish all leaves more garbage than a watch holds
	for ctx.Err() == nil && w.state != gone {
		w.next(ctx)
	}
	switch {
	case w.source.failed():
	case w.state == gone:
		w.log.Write(event.TargetRemoved{Published: w.changeLog.published})
	default:
		w.log.Write(event.Ended{Published: w.changeLog.published})
	}
}

// begin publishes for the first time. An error means that this is not possible now, nor later if nobody does
// something about it.
func (w *watching) begin(ctx context.Context) error {
	opened := w.open()
	if !w.changeLog.alone {
		w.changeLog.failure(ctx, opened, starting)
	}
	w.retry = w.source.options.RetryHeld
	w.changeLog.published = w.SnapshotID()
	if opened == nil {
		w.log.Write(event.Watching{Source: w.options.Source.Path, Out: w.options.Out, PID: os.Getpid()})
	}
	if err := w.announce(); err != nil {
		return err
	}
	if opened != nil {
		return opened
	}
	w.listen()
	if _, err := w.turn(ctx, starting); isUsage(err) {
		return err // the output directory does not allow the options
	}
	if err := w.serveRecorded(ctx); err != nil {
		w.log.Write(event.Failed{Error: err, Reason: starting})
	}
	return nil
}

// open opens the output directory.
func (w *watching) open() error {
	if err := w.Open(); err != nil {
		return err
	}
	w.source.isOpen(w.given, w.options.Out)
	return nil
}

// serveRecorded has the Server serve what is in the output directory, where this watch could not
// publish at its start. Where clients differ, they keep what they have: the output directory has what some of
// them get.
func (w *watching) serveRecorded(ctx context.Context) error {
	if w.apart || w.options.ByNode {
		return nil
	}
	s := w.recorded(ctx, xds.NewSnapshot(nil))
	if s == nil || w.apart {
		return nil
	}
	w.log.Write(event.ServingPublished{Published: w.publishedID()})
	return w.restore(ctx, s, s)
}

// next waits for the next reason to reconcile or trim, and does that.
func (w *watching) next(ctx context.Context) {
	trim, stop := w.trimTimer()
	defer stop()
	select {
	case <-ctx.Done():
		return
	case n := <-w.news:
		w.heed(ctx, n)
		return
	case r := <-w.control.Requests():
		w.serve(ctx, r)
		return
	case <-w.envoyLog.timer.C:
		w.ask(ctx)
		return
	case beats := <-w.envoyLog.answer:
		w.answered(ctx, beats)
		return
	case <-trim:
		if ctx.Err() == nil {
			w.turn(ctx, trimming)
		}
	}
}

// heed does what news say.
func (w *watching) heed(ctx context.Context, n news) {
	last := w.source.last.Load()
	switch {
	case ctx.Err() != nil:
		return
	case n.reason == removed:
		w.on(targetRemoved)
		return
	case n.reason == string(notify.Change) && last != nil && last.n == w.seen && last.wanted >= n.wanted:
		return // it was looked at for another target, and is published
	case n.reason == hangup:
		w.changeLog.forget() // asked for: say all again
		w.envoyLog.forget()
		w.retryHeld()
	}
	w.turnSince(ctx, n)
}

// trimTimer fires when the next trim is due.
func (w *watching) trimTimer() (<-chan time.Time, func()) {
	if w.nextTrim.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(w.nextTrim))
	return timer.C, func() { timer.Stop() }
}

func isUsage(err error) bool {
	_, ok := errors.AsType[*published.UsageError](err)
	return ok
}

// ready opens the output directory where it is not open, and makes it ready for Plan.
func (w *watching) ready(ctx context.Context) error {
	if w.Lost() {
		w.log.Write(event.OutputReplaced{Out: w.given})
		w.Close()
		w.control.Unbind() // nothing is published there any more
		w.changeLog.published, w.changeLog.refused, w.changeLog.snapshot = "", "", nil
	}
	if !w.IsOpen() {
		if err := w.open(); err != nil {
			return err
		}
		w.shown.Out = w.options.Out
	}
	w.listen()
	return w.Prepare(ctx)
}

// trim trims the output directory, and stores when to trim again.
func (w *watching) trim(ctx context.Context) error {
	w.nextTrim = time.Time{}
	if !w.IsOpen() || w.Lost() {
		return nil // the next reconcile opens it again
	}
	before := w.moves()
	trimmed, next, err := w.Trim(ctx)
	w.nextTrim = next
	if written, removed := Files(trimmed.Files); written+removed == 0 {
		w.envoyLog.moved(nil, before, w.moves()) // records at most
	} else {
		w.log.Write(event.Trimmed{Written: written, Removed: removed})
	}
	if trimmed.Resources > 0 {
		w.log.Write(event.ResourcesTrimmed{Removed: trimmed.Resources})
	}
	return err
}

// readAside calls read, and does not wait for its end once ctx has ended: a network file
// system can block a reader for ever. The watch ends then, and so does the process.
func readAside[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

// turn runs one reconcile or one trim, and shows its outcome in the log and on the control
// socket.
func (w *watching) turn(ctx context.Context, reason string) (result control.Result, err error) {
	n := news{reason: reason}
	if reason != trimming {
		n.wanted = w.source.want(reason)
	}
	return w.turnSince(ctx, n)
}

// turnSince is turn for what is known to some of the looks at the source tree.
func (w *watching) turnSince(ctx context.Context, n news) (result control.Result, err error) {
	reason := n.reason
	running := control.Reconcile{Reason: reason, Began: now()}
	w.shown.Running = &running
	w.show()
	if reason == trimming {
		w.Trust(w.state.trusted())
		err = w.trim(ctx)
	} else {
		var o Outcome
		o, err = w.reconcile(ctx, n)
		result = resultOf(o)
		if o.Verdict == Held || o.Verdict == RefusedByEnvoy {
			w.on(planRefused)
		}
	}
	if err != nil {
		w.on(failed)
	}
	w.changeLog.failure(ctx, err, reason)
	w.publishState(ctx, running, result, err)
	if err != nil {
		result.Outcome = control.Failed
	}
	return result, err
}

// now returns the time in the form of records.
func now() time.Time { return time.Now().UTC().Round(0) }

// resultOf returns an Outcome as the control socket shows it.
func resultOf(o Outcome) control.Result {
	if o.Verdict == "" {
		return control.Result{}
	}
	r := control.Result{Outcome: control.Refused, Snapshot: o.Snapshot, Message: o.Message(), Findings: o.Findings}
	if o.Verdict == Published {
		r.Outcome = control.Published
	}
	return r
}

// publishedID returns the id of the published snapshot, be it of a watch before this one.
func (w *watching) publishedID() string { return cmp.Or(w.changeLog.published, w.SnapshotID()) }
