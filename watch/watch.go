package watch

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/render/published"
	"xdspub/source/load"
	"xdspub/watch/control"
	"xdspub/watch/notify"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// WatchOptions are the options of Watch.
type WatchOptions struct {
	// Remote is the source in place of a source tree, with Options.Source.Remote; nil for a source tree. The caller
	// runs the Remote. MaxStale is how long the watch stays ready while the Remote is gone or can't be used; 0 for
	// ever.
	Remote   load.Remote
	MaxStale time.Duration
	// Aggregate has the node fields of the clients that get the snapshots. It is empty for the clients with the node of
	// the server, and without --aggregate-by.
	Aggregate string
	// Watch configures when Watch reads the source tree. Watch itself sets Ignore, Skip, Files and Log.
	Watch notify.Options
	// Log receives the log lines that concern all targets.
	Log *event.Log
	// Settings is the path of the settings file; empty without one. Watch reads the source tree again when the
	// file changes. The file may be missing.
	Settings string
	// Reload reads the Settings again, before each read of the source tree; nil without settings. If changed is
	// false, Watch keeps its Options. After an error Watch logs the error, and publishes nothing until Reload
	// succeeds. Calls don't overlap.
	Reload func() (all []Options, changed bool, err error)
	// Hangup delivers SIGHUP; nil for none. After a SIGHUP, Watch reads the whole source tree, logs its
	// findings again, and retries held snapshots.
	Hangup <-chan os.Signal
	// Report delivers SIGUSR1; nil for none. After a SIGUSR1, Watch logs the state of each target at once, even
	// during a reconcile.
	Report <-chan os.Signal
	// Beat is called whenever the loop of a target waits for an event, at least every 5 seconds, and not before the
	// first reconcile has ended. Beat must not block, and must be safe for concurrent use; nil for none.
	Beat func(target string)
	// Conflict returns text about how this watch differs from the watch that a request describes; empty if
	// they match. A nil Conflict accepts every request. Conflict must be safe for concurrent use.
	Conflict func(source string, r control.RetryHeld) string
	// RetryHeld makes the first reconcile retry held snapshots.
	RetryHeld bool
	// Observer gets the state and the published snapshots of each target; nil for none.
	Observer Observer
	// Store shows what the Observer has written to the store of a fleet; nil without a store.
	Store Store
	// Events are the last events, for the control socket; nil for none.
	Events *event.History
	// MaxFindings is the largest number of findings that Watch logs at a time; 0 means no limit.
	MaxFindings int
}

// watching is the publisher of one target in a running Watch.
type watching struct {
	*Controller
	source    *source
	target    string
	first     bool      // started together with the watch
	news      chan news // only tell sends; it merges unread news
	changeLog changeLog
	envoyLog  envoyLog
	asking    sync.WaitGroup // background questions to Envoys

	unrecorded []func() // record the last pass in the history

	state      state
	idlePass   idlePass // valid in the states idle and doubtful
	seen       uint64   // number of the look of the last pass; 0 if that pass failed
	configured uint64   // look.read of the current Options
	garbage    bool     // a pass has made a plan since giveBack
	nextTrim   time.Time

	control *control.Server
	shown   control.Watch                 // the state on the control socket
	told    atomic.Pointer[control.Watch] // shown, for other goroutines; nil before begin
	clients func() []clients.Client       // of the Server; nil without a Server
	stages  []control.Stage               // of the running reconcile
	rolled  *Outcome                      // of the last publish of a pin; nil before
	// undoTried is when the last undo of a trial failed; zero if none has.
	undoTried time.Time
	unheard   string // the last logged error of the control socket
}

// The reasons in news, besides the reasons of the Watcher.
const (
	starting    = "start"
	hangup      = "SIGHUP"
	retrying    = "retry-held"
	resuming    = "resume" // a pause or a pin has ended
	thawing     = "freeze-ended"
	rollingBack = "rollback"
	undoing     = "undo"       // nobody has confirmed a snapshot
	confirming  = "confirm"    // somebody has
	trimming    = "trim"       // a turn without a reconcile
	removed     = "removed"    // the target is gone
	connecting  = "connection" // the state of the Remote or the Store has changed, a turn without a reconcile
)

func newWatching(s *source, o Options) *watching {
	w := &watching{
		source: s, target: o.Target, news: make(chan news, 1), control: control.New(o.Log),
		changeLog: changeLog{log: o.Log, most: s.options.MaxFindings, alone: o.Target == "", whileRefused: o.WhileRefused, about: s.about},
		envoyLog:  newEnvoyLog(o.Log, s.options.Watch.Rescan),
	}
	w.control.TellEvents(s.options.Events)
	if o.Server != nil {
		w.clients = o.Server.Clients
	}
	o.Retried = w.retries
	w.Controller = New(o)
	return w
}

// tell sends news to w. Only the source calls tell, and holds source.mu.
func (w *watching) tell(n news) {
	select {
	case was := <-w.news:
		n = was.and(n)
	default:
	}
	w.news <- n
}

// and merges n, which w has not handled, with later news: the result has the more urgent reason and wants the
// newer look. The later news may want the older look, because tellOthers reports a look that is already done.
func (n news) and(later news) news {
	if n.urgency() >= later.urgency() {
		later.reason = n.reason
	}
	later.wanted = max(n.wanted, later.wanted)
	return later
}

// urgency ranks the reason of n. A higher number is more urgent.
func (n news) urgency() int {
	switch n.reason {
	case removed:
		return 2
	case hangup:
		return 1
	case connecting:
		return -1
	default:
		return 0
	}
}

// run publishes until ctx ends or the target is gone.
func (w *watching) run(ctx context.Context) {
	defer w.source.tell(string(notify.Change)) // another publisher may wait for the directory
	defer w.Close()
	defer w.control.Close()
	defer w.asking.Wait()
	if err := w.beginSafely(ctx); err != nil && w.first { // a publisher that starts later tries again after the next look
		w.source.cannotBegin(w.target, err)
	}
	w.giveBack() // the first pass leaves more garbage than later ones
	for ctx.Err() == nil && w.state != gone {
		w.nextSafely(ctx)
	}
	switch {
	case w.source.failed():
	case w.state == gone:
		if o := w.source.options.Observer; o != nil {
			o.Removed(w.target)
		}
		w.log.Write(event.TargetRemoved{Published: w.changeLog.published})
	default:
		w.log.Write(event.Ended{Published: w.changeLog.published})
	}
}

// beginSafely calls begin, and logs a panic, which is the error.
func (w *watching) beginSafely(ctx context.Context) error {
	err := func() (err error) {
		defer crash.Catch(&err)
		return w.begin(ctx)
	}()
	if e, ok := errors.AsType[*crash.Error](err); ok {
		w.log.Crashed(e)
		w.distrust()
	}
	return err
}

// begin opens the output directory and publishes for the first time. An error means that w can't publish until
// somebody acts: the output directory can't be opened, or does not allow the options.
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
	w.sayDecisions()
	restored, err := w.serveLast(ctx)
	if err != nil {
		w.log.Write(event.Failed{Error: err, Reason: starting})
	}
	if _, err := w.turn(ctx, starting); isUsage(err) {
		return err // the output directory does not allow the options
	}
	if restored && w.changeLog.served == "" {
		w.log.Write(event.ServingPublished{Published: w.publishedID()})
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
	w.source.recordOpen(w.given, w.options.Out)
	return nil
}

// serveRecorded makes the Server serve the snapshot in the output directory, if the Server serves nothing after
// the first reconcile. If clients may get different variants, serveRecorded does nothing, because the output
// directory has only some of the variants. Clients then keep their resources.
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

// afterCrash is the pause after a panic outside of a reconcile.
const afterCrash = time.Second

// nextSafely calls next, and logs a panic.
func (w *watching) nextSafely(ctx context.Context) {
	e := crash.Try(func() { w.next(ctx) })
	if e == nil {
		return
	}
	w.log.Crashed(e)
	w.distrust()
	select {
	case <-time.After(afterCrash):
	case <-ctx.Done():
	}
}

// beatEvery is the longest time between two calls of WatchOptions.Beat while no event comes.
const beatEvery = 5 * time.Second

// next waits for the next event, and handles it.
func (w *watching) next(ctx context.Context) {
	trim, stop := w.trimTimer()
	defer stop()
	pause, stopPause := w.pauseTimer()
	defer stopPause()
	frozen, stopFreeze := w.freezeTimer()
	defer stopFreeze()
	trial, stopTrial := w.trialTimer()
	defer stopTrial()
	if w.answerFirst(ctx) {
		return
	}
	var beat <-chan time.Time
	if tell := w.source.options.Beat; tell != nil {
		tell(w.target)
		timer := time.NewTimer(beatEvery)
		defer timer.Stop()
		beat = timer.C
	}
	select {
	case <-ctx.Done():
		return
	case <-beat:
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
	case <-pause:
		w.pauseMayEnd(ctx)
	case <-frozen:
		w.freezeMayChange(ctx)
	case <-w.confirmedLate():
		w.acknowledgedLate()
		w.show()
	case <-trial:
		w.trialMayEnd(ctx)
	}
}

// heed handles news.
func (w *watching) heed(ctx context.Context, n news) {
	last := w.source.last.Load()
	switch {
	case ctx.Err() != nil:
		return
	case n.reason == removed:
		w.on(targetRemoved)
		return
	case n.reason == connecting:
		w.show()
		return
	case n.reason == string(notify.Change) && last != nil && last.n == w.seen && last.wanted >= n.wanted:
		return // already published after a look for another target
	case n.reason == hangup:
		w.changeLog.forget() // SIGHUP logs everything again
		w.envoyLog.forget()
		w.retryHeld()
	}
	w.turnSince(ctx, n)
}

// trimTimer returns a channel that receives when the next trim is due, and a function that stops the timer.
// Without a next trim the channel is nil.
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

// ready opens the directory if necessary, and prepares it for Plan.
func (w *watching) ready(ctx context.Context) error {
	if w.Lost() {
		w.Close()
		w.control.Unbind() // no longer the directory
		w.replaced()
	}
	if !w.IsOpen() {
		if err := w.open(); err != nil {
			return err
		}
		w.showPlace()
		if err := w.keepDecisions(); err != nil {
			return err
		}
	}
	w.listen()
	was := w.frozen
	err := w.Prepare(ctx)
	w.sayFreeze(was)
	return err
}

// replaced logs that somebody has removed or replaced the directory. Clients keep what a Server serves; files are gone.
func (w *watching) replaced() {
	if !w.writes() {
		w.log.Write(event.StateReplaced{State: w.options.State})
		return
	}
	w.log.Write(event.OutputReplaced{Out: w.given})
	w.changeLog.published, w.changeLog.refused, w.changeLog.waits = "", "", ""
	w.changeLog.snapshot, w.changeLog.bound = nil, nil
}

// trim trims the output directory and the Server, logs what it removed, and sets the time of the next trim.
func (w *watching) trim(ctx context.Context) error {
	defer w.stage("trim")()
	w.nextTrim = time.Time{}
	if !w.IsOpen() || w.Lost() || w.isPaused() {
		return nil // the next reconcile opens it again, or follows the end of the pause
	}
	before := w.moves()
	trimmed, next, err := w.Trim(ctx)
	w.nextTrim = next
	if written, removed := Files(trimmed.Files); written+removed == 0 {
		w.envoyLog.moved(nil, before, w.moves()) // only records have moved
	} else {
		w.log.Write(event.Trimmed{Written: written, Removed: removed})
	}
	if trimmed.Resources > 0 {
		w.log.Write(event.ResourcesTrimmed{Removed: trimmed.Resources})
	}
	return err
}

// readAside returns the results of read, or the error of ctx if ctx ends first. read may hang in a network file
// system: its goroutine then runs until the process ends.
func readAside[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go crash.Guard(func() {
		value, err := read(ctx)
		done <- result{value, err}
	}, func(e *crash.Error) { done <- result{err: e} })()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

// turn runs one reconcile or one trim, and reports the outcome in the log and on the control socket.
func (w *watching) turn(ctx context.Context, reason string) (result control.Result, err error) {
	n := news{reason: reason}
	if reason != trimming {
		n.wanted = w.source.want(reason)
	}
	return w.turnSince(ctx, n)
}

// turnSince is turn for news that an earlier look may already cover.
func (w *watching) turnSince(ctx context.Context, n news) (result control.Result, err error) {
	reason := n.reason
	running := control.Reconcile{Reason: reason, Began: now()}
	w.shown.Running, w.stages = &running, nil
	w.show()
	result, err = w.attempt(ctx, n)
	if err != nil {
		w.on(failed)
	}
	if _, ok := errors.AsType[*crash.Error](err); ok {
		w.distrust()
	}
	w.changeLog.failure(ctx, err, reason)
	w.publishState(ctx, running, result, err)
	w.recordPass()
	if err != nil {
		result.Outcome = control.Failed
	}
	return result, err
}

// attempt runs one reconcile or one trim. A panic is a *crash.Error.
func (w *watching) attempt(ctx context.Context, n news) (result control.Result, err error) {
	defer crash.Catch(&err)
	if n.reason == trimming {
		w.Trust(w.state.trusted())
		return result, w.trim(ctx)
	}
	o, err := w.reconcile(ctx, n)
	if o.Verdict == Held || o.Verdict == RefusedByEnvoy {
		w.on(planRefused)
	}
	return resultOf(o), err
}

// distrust forgets after a panic what w has computed: the next reconcile reads the whole source tree and the whole
// output directory, as a new process does.
func (w *watching) distrust() {
	w.source.distrusted.Store(true)
	w.on(panicked)
	w.Configure(w.options)
	if w.dir == nil {
		return
	}
	w.Close()
	if err := w.open(); err != nil { // the next reconcile tries again
		w.log.Write(event.Failed{Error: err, Reason: string(notify.Change)})
	}
}

// stage begins a stage of the running reconcile. end ends the stage, and returns its duration.
func (w *watching) stage(name string) (end func() time.Duration) {
	began := time.Now()
	return func() time.Duration {
		d := time.Since(began)
		w.took(name, d)
		return d
	}
}

// took adds a finished stage of the running reconcile.
func (w *watching) took(stage string, d time.Duration) {
	w.stages = append(w.stages, control.Stage{Name: stage, Seconds: d.Seconds()})
}

// now returns the current time as records store it: in UTC, without the monotonic clock.
func now() time.Time { return time.Now().UTC().Round(0) }

// resultOf returns the Result that the control socket reports for an Outcome; the zero Result for the zero
// Outcome.
func resultOf(o Outcome) control.Result {
	if o.Verdict == "" {
		return control.Result{}
	}
	r := control.Result{Outcome: control.Refused, Snapshot: o.Snapshot, Message: o.Message(), Findings: o.Findings, Part: o.Part}
	switch o.Verdict {
	case Published:
		r.Outcome = control.Published
	case Waits:
		r.Outcome = control.Waiting
	}
	return r
}

// publishedID returns the id of the published snapshot, possibly of an earlier watch.
func (w *watching) publishedID() string { return cmp.Or(w.changeLog.published, w.SnapshotID()) }
