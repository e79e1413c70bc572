package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/publish"
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
	o          WatchOptions
	source     *source
	target     string
	first      bool      // the watch began with it
	news       chan news // by tell alone
	seen       uint64    // the last look that was published without an error; 0 for none
	configured uint64    // look.read, as of the Options
	gone       bool      // the settings have the target no more
	changeLog  changeLog
	envoyLog   envoyLog
	asking     sync.WaitGroup // the questions to Envoys that no turn waits for

	nextTrim time.Time
	// settled is the snapshot that the last passes left in the output directory, and nothing
	// else; nil where that is not known.
	settled *xds.Snapshot
	idle    idle
	planned bool // since giveBack

	control *control.Server
	shown   control.Watch // the state that it shows
	unheard string        // why there is no control socket, as logged last
}

// idle is a pass that planned everything anew and found nothing to do.
type idle struct {
	snapshot *xds.Snapshot // nil where the last pass was none
	found    diag.List     // by Check
	moves    int           // of the Dir, then
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
		o: s.o, source: s, target: o.Target, news: make(chan news, 1),
		control: control.New(), changeLog: changeLog{log: o.Log, most: s.o.MaxFindings, alone: o.Target == ""}, envoyLog: newEnvoyLog(o.Log, s.o.Watch.Rescan),
	}
	o.Retried = w.retries
	w.Controller = New(o)
	return w
}

// tell has w look again. The source alone calls it, with its lock.
func (w *watching) tell(n news) {
	select {
	case was := <-w.news: // two become one
		if was.reason == removed || was.reason == hangup && n.reason != removed || n.reason != hangup && n.reason != removed {
			n.reason = was.reason
		}
	default:
	}
	w.news <- n
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
	for ctx.Err() == nil && !w.gone {
		w.next(ctx)
	}
	switch {
	case w.source.failed():
	case w.gone:
		w.log.Write(event.TargetRemoved{Published: w.changeLog.published})
	default:
		w.log.Write(event.Ended{Published: w.changeLog.published})
	}
}

// begin publishes for the first time. An error means that this is not possible now, nor later if nobody does
// something about it.
func (w *watching) begin(ctx context.Context) error {
	err := w.open()
	if !w.changeLog.alone {
		w.changeLog.failure(ctx, err, starting)
	}
	w.retry = w.o.RetryHeld
	w.changeLog.published = w.Out()
	if err == nil {
		w.log.Write(event.Watching{Source: w.options.Source.Path, Out: w.options.Out, PID: os.Getpid()})
	}
	if err := w.announce(); err != nil {
		return err
	}
	if err != nil {
		return err
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
	w.log.Write(event.ServingPublished{Published: w.out()})
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
		w.gone = true
		return
	case n.reason == string(notify.Change) && last != nil && last.n == w.seen && last.wanted >= n.wanted:
		return // it was looked at for another target, and is published
	case n.reason == hangup:
		w.changeLog.forget() // asked for: say all again
		w.envoyLog.forget()
		w.retry = true
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

// attempts is how often a reconcile starts again because the output directory was removed or
// replaced meanwhile.
const attempts = 3

// reconcile reads the tree and publishes it. The Outcome is the zero value where it ended
// before Publish.
func (w *watching) reconcile(ctx context.Context, n news) (o Outcome, err error) {
	for range attempts {
		o, err = w.reconcileOnce(ctx, n)
		for errors.Is(err, errOutdated) && ctx.Err() == nil {
			o, err = w.reconcileOnce(ctx, n) // with the newer look
		}
		if !errors.Is(err, publish.ErrLost) || ctx.Err() != nil {
			return o, err
		}
		n.wanted = w.source.want(n.reason)
	}
	return Outcome{}, fmt.Errorf("the output directory %s was removed or replaced %d times while it was published into; the next pass tries again: %w", w.given, attempts, err)
}

// reconcileOnce is one attempt of a reconcile. It ends with ErrLost where the output directory
// was removed or replaced: a plan is made for the files that are there.
func (w *watching) reconcileOnce(ctx context.Context, n news) (o Outcome, err error) {
	reason, seen := n.reason, w.seen
	w.seen = 0
	found, err := w.source.look(ctx, w, n.wanted)
	if ctx.Err() != nil {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	checked := w.take(found)
	if checked == nil {
		return o, nil
	}
	defer func() {
		if err == nil {
			w.seen = found.n
		}
		if found.agreement != nil { // what keeps one from being planned is no objection
			found.agreement.say(w.key(), nil)
		}
	}()
	whole := found.whole > seen // the tree was looked at
	// What looks at the whole tree looks at the whole output directory: a rescan that comes
	// in a burst of events, too.
	w.Trust(!whole && w.settled != nil)
	retry := w.retry
	if err := w.ready(ctx); err != nil {
		return o, err
	}
	if whole && !retry && w.isIdle(checked) {
		if err := w.keepRevision(ctx, checked.Snapshot.ID()); err != nil {
			return o, err
		}
		if reason == string(notify.Rescan) {
			w.source.foundNothing(found)
		}
		w.giveBack()
		return Outcome{Verdict: Published, Snapshot: checked.Snapshot.ID(), Summary: checked.Summary, Findings: checked.Diagnostics}, nil
	}
	w.planned = true
	pass := idle{checked.Variants.All(), slices.Clone(checked.Diagnostics), w.moves()}
	w.idle = idle{}
	if whole {
		w.settled = nil // what it finds changed by hand is known once it is published
	}
	plan, err := w.Plan(ctx, checked)
	if err == nil {
		plan, err = w.agree(ctx, found, checked, plan)
	}
	if ctx.Err() != nil { // nothing has moved
		return o, nil
	}
	if err != nil {
		return o, err
	}
	w.changeLog.checked(checked, checked.Invalid(w.options.WarningsAsErrors))
	w.shown.Certificates.OutOfDate, w.shown.Certificates.ExpireSoon = check.Certificates(checked.Diagnostics)
	if plan != nil && plan.Held == nil {
		w.publishing(plan.ID)
	}
	o, err = w.Publish(ctx, checked, plan)
	w.envoyLog.moved(o.Answers, pass.moves, w.moves())
	if errors.Is(err, publish.ErrLost) {
		return o, err
	}
	if o.Verdict != "" {
		w.changeLog.outcome(o, checked.Snapshot, reason)
	}
	if o.Verdict == Published {
		w.settled = checked.Snapshot
	}
	if err != nil {
		return o, err
	}
	err = w.trim(ctx)
	if err == nil && whole && o.Verdict == Published && pass.moves == w.moves() {
		w.idle = pass
	}
	return o, err
}

func (w *watching) key() publisherKey { return publisherKey{w.target, w.given} }

// take takes up what a look found, and returns what that is for the target; nil where this is gone.
func (w *watching) take(found *look) *check.Result {
	o, ok := found.options(w.key())
	if !ok {
		w.gone = true
		return nil
	}
	if w.configured != found.read {
		w.configured = found.read
		w.Configure(o)
		w.idle = idle{}
	}
	return found.result.For(w.target).Copy()
}

// giveBack gives the memory that passes have left unused back to the system, once there is nothing
// else to do.
func (w *watching) giveBack() {
	if w.planned && w.source.compress() {
		w.planned = false
		debug.FreeOSMemory()
	}
}

// isIdle reports whether nothing has changed since a pass that planned everything anew and found
// nothing to do: neither the source tree, which was looked at whole, nor what is found in it,
// nor the output directory. What waits for its trim has a timer of its own.
func (w *watching) isIdle(checked *check.Result) bool {
	return checked.Variants.All() == w.idle.snapshot && reflect.DeepEqual(checked.Diagnostics, w.idle.found) &&
		w.moves() == w.idle.moves && w.Settled()
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
		w.Trust(w.settled != nil)
		err = w.trim(ctx)
	} else {
		var o Outcome
		o, err = w.reconcile(ctx, n)
		result = resultOf(o)
		if o.Verdict == Held || o.Verdict == RefusedByEnvoy {
			w.settled = nil
		}
	}
	if err != nil {
		w.settled = nil
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

// out returns the id of the published snapshot, be it of a watch before this one.
func (w *watching) out() string { return cmp.Or(w.changeLog.published, w.Out()) }
