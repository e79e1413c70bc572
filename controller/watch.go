package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"xdspub/check"
	"xdspub/control"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/fspath"
	"xdspub/load"
	"xdspub/publish"
	"xdspub/published"
	"xdspub/watch"
	"xdspub/xds"
)

// WatchOptions are the options of Watch.
type WatchOptions struct {
	// Watch says when Watch reads the source tree. It sets Ignore, Skip, Files and Log
	// itself.
	Watch watch.Options
	// Settings is a file that counts as part of the source; it may be missing.
	Settings string
	// Reload reads the Settings again, before each reading of the source tree; nil where
	// there are none. changed reports whether the Options differ from those before.
	Reload func() (o Options, changed bool, err error)
	// Hangup delivers SIGHUP: Watch then logs its state once more, and retries what is held.
	Hangup <-chan os.Signal
	// Conflict returns, in words, how this watch of a source tree differs from the one that a
	// request describes; empty where it does not. nil takes every request.
	Conflict func(source string, r control.RetryHeld) string
	// RetryHeld makes the first reconcile retry what is held.
	RetryHeld bool
	// MaxFindings is how many findings are logged at a time; 0 stands for all.
	MaxFindings int
}

// watching is a running Watch.
type watching struct {
	*Controller
	o         WatchOptions
	watcher   *watch.Watcher
	inlined   []string      // files that go into resources
	unread    watch.Changes // of the source tree, since it was read
	changeLog changeLog
	envoyLog  envoyLog
	asking    sync.WaitGroup // the questions to Envoys that no turn waits for

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
	trimming = "trim" // no reconcile
)

// Watch publishes the source tree whenever it changes, until ctx ends: then it returns nil.
// It logs the findings of the tree and the errors of a reconcile, and the last valid output
// stays published. An error means that the watch could not begin. The caller closes the
// Controller.
func (c *Controller) Watch(ctx context.Context, o WatchOptions) error {
	w := &watching{Controller: c, o: o, control: control.New(), changeLog: changeLog{log: c.log, most: o.MaxFindings}, envoyLog: newEnvoyLog(c.log, o.Watch.Rescan)}
	return w.run(ctx)
}

func (w *watching) run(ctx context.Context) (err error) {
	at := w.o.Watch
	at.Ignore, at.Skip, at.Files, at.Log = ignored(w.options.Out), load.Hidden, w.extraFiles(), w.log
	w.watcher, err = watch.New(ctx, w.options.Source.Path, at)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.watcher.Run(ctx) })
	defer running.Wait()
	defer w.asking.Wait()
	defer cancel()

	if err := w.Open(); err != nil {
		return err
	}
	w.retry = w.o.RetryHeld
	w.changeLog.published = w.Out()
	w.log.Write(event.Watching{Source: w.options.Source.Path, Out: w.options.Out, PID: os.Getpid()})
	defer w.control.Close()
	if err := w.announce(); err != nil {
		return err
	}
	w.listen()

	if _, err := w.turn(ctx, starting); isUsage(err) {
		return err // the output directory does not allow the options, now or later
	}
	if err := w.serveRecorded(ctx); err != nil {
		w.log.Write(event.Failed{Error: err, Reason: starting})
	}
	w.giveBack() // to read and publish all leaves more garbage than a watch holds
	for ctx.Err() == nil {
		w.next(ctx)
	}
	w.log.Write(event.Ended{Published: w.changeLog.published})
	return nil
}

// serveRecorded has the Server serve what is in the output directory, where this watch could not
// publish at its start.
func (w *watching) serveRecorded(ctx context.Context) error {
	s := w.recorded(ctx, xds.NewSnapshot(nil))
	if s == nil {
		return nil
	}
	w.log.Write(event.ServingPublished{Published: w.out()})
	return w.restore(ctx, s)
}

// next waits for the next reason to reconcile or trim, and does that.
func (w *watching) next(ctx context.Context) {
	trim, stop := w.trimTimer()
	defer stop()
	reason := ""
	select {
	case <-ctx.Done():
		return
	case r := <-w.watcher.Signals():
		reason = string(r)
	case <-w.o.Hangup:
		w.changeLog.forget() // asked for: say all again
		w.envoyLog.forget()
		w.retry = true
		reason = hangup
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
		reason = trimming
	}
	if ctx.Err() == nil {
		w.turn(ctx, reason)
	}
}

// ignored returns a filter that excludes the output directory, which changes with each
// reconcile: a link in the tree may lead there, and a source that is one file may be in the
// same folder.
func ignored(out string) func(string) bool {
	if out == "" {
		return nil
	}
	abs, err := filepath.Abs(out)
	if err != nil {
		abs = out
	}
	return func(path string) bool { return fspath.Within(path, abs) }
}

// extraFiles returns the files that a reconcile reads outside the tree.
func (w *watching) extraFiles() []string {
	files := slices.Clone(w.inlined)
	files = append(files, w.options.Source.DescriptorSets...)
	for _, f := range []string{w.o.Settings, w.options.Source.Bootstrap} {
		if f != "" {
			files = append(files, f)
		}
	}
	return files
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
func (w *watching) reconcile(ctx context.Context, reason string) (o Outcome, err error) {
	for range attempts {
		o, err = w.reconcileOnce(ctx, reason)
		if !errors.Is(err, publish.ErrLost) || ctx.Err() != nil {
			return o, err
		}
	}
	return Outcome{}, fmt.Errorf("the output directory %s was removed or replaced %d times while it was published into; the next pass tries again: %w", w.given, attempts, err)
}

// reconcileOnce is one attempt of a reconcile. It ends with ErrLost where the output directory
// was removed or replaced: a plan is made for the files that are there.
func (w *watching) reconcileOnce(ctx context.Context, reason string) (o Outcome, err error) {
	var checked *check.Result
	whole := false // the tree was looked at
	w.watcher.Read(ctx, func(c watch.Changes) {
		// What somebody asks for comes before the events of what was done just before it.
		w.unread = w.unread.And(c).And(watch.Changes{All: reason != string(watch.Change)})
		whole = whole || w.unread.All
		checked, err = w.check(ctx)
	})
	if ctx.Err() != nil { // while it waited for git, or read
		return o, nil
	}
	if err != nil {
		return o, err
	}
	// What looks at the whole tree looks at the whole output directory: a rescan that comes
	// in a burst of events, too.
	w.Trust(!whole && w.settled != nil)
	retry := w.retry
	if err := w.ready(ctx); err != nil {
		return o, err
	}
	if whole && !retry && w.isIdle(checked) {
		if reason == string(watch.Rescan) {
			w.watcher.FoundNothing()
		}
		w.giveBack()
		return Outcome{Verdict: Published, Snapshot: checked.Snapshot.ID(), Summary: checked.Summary, Findings: checked.Diagnostics}, nil
	}
	w.planned = true
	pass := idle{checked.Snapshot, slices.Clone(checked.Diagnostics), w.moves()}
	w.idle = idle{}
	if whole {
		w.settled = nil // what it finds changed by hand is known once it is published
	}
	plan, err := w.Plan(ctx, checked)
	if ctx.Err() != nil { // nothing has moved
		return o, nil
	}
	if err != nil {
		return o, err
	}
	w.changeLog.checked(checked, checked.Invalid(w.options.WarningsAsErrors))
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

// giveBack gives the memory that passes have left unused back to the system, once there is nothing
// else to do.
func (w *watching) giveBack() {
	if w.planned {
		w.planned = false
		w.pipeline.Compress()
		debug.FreeOSMemory()
	}
}

// isIdle reports whether nothing has changed since a pass that planned everything anew and found
// nothing to do: neither the source tree, which was looked at whole, nor what is found in it,
// nor the output directory. What waits for its trim has a timer of its own.
func (w *watching) isIdle(checked *check.Result) bool {
	return checked.Snapshot == w.idle.snapshot && reflect.DeepEqual(checked.Diagnostics, w.idle.found) &&
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
		if err := w.Open(); err != nil {
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

// check reads the settings and the source tree. Wrong settings stop only the publish, as a
// wrong resource does.
func (w *watching) check(ctx context.Context) (*check.Result, error) {
	if err := w.reload(ctx); err != nil {
		return nil, err
	}
	if err := w.watcher.Also(w.extraFiles()...); err != nil {
		return nil, err
	}
	// What reads aside may go on once ctx has ended: it touches nothing of w.
	p, changes := w.pipeline, w.unread
	checked, err := readAside(ctx, func(ctx context.Context) (*check.Result, error) {
		if changes.All {
			return p.Check(ctx)
		}
		return p.Update(ctx, changes.Paths)
	})
	if err != nil {
		return nil, err
	}
	w.unread = watch.Changes{}
	w.inlined = checked.Inlined
	return checked, w.watcher.Also(w.extraFiles()...)
}

// reload reads the settings again.
func (w *watching) reload(ctx context.Context) error {
	if w.o.Reload == nil {
		return nil
	}
	type settings struct {
		options Options
		changed bool
	}
	is, err := readAside(ctx, func(context.Context) (is settings, err error) {
		is.options, is.changed, err = w.o.Reload()
		return is, err
	})
	if err == nil && is.changed {
		w.Configure(is.options)
		w.log.Write(event.SettingsRead{})
	}
	return err
}

// turn runs one reconcile or one trim, and shows its outcome in the log and on the control
// socket.
func (w *watching) turn(ctx context.Context, reason string) (result control.Result, err error) {
	running := control.Reconcile{Reason: reason, Began: now()}
	w.shown.Running = &running
	w.control.Tell(w.shown)
	if reason == trimming {
		w.Trust(w.settled != nil)
		err = w.trim(ctx)
	} else {
		var o Outcome
		o, err = w.reconcile(ctx, reason)
		result = resultOf(o)
		if o.Verdict == Held || o.Verdict == RefusedByEnvoy {
			w.settled = nil
		}
	}
	if err != nil {
		w.settled = nil
	}
	w.changeLog.failure(ctx, err, reason)
	w.publishState(running, result, err)
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
