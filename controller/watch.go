package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"xdspub/control"
	"xdspub/load"
	"xdspub/pipeline"
	"xdspub/publish"
	"xdspub/watch"
)

// WatchOptions are for Watch.
type WatchOptions struct {
	// Watch says when the source tree is looked at. Ignore, Skip, Files and Log are not
	// used.
	Watch watch.Options
	// Settings is a file that counts as part of the source; it may be missing.
	Settings string
	// Reload reads the Settings again, before each look at the source tree; nil where
	// there is nothing to read. changed tells that the Options are others than before.
	Reload func() (o Options, changed bool, err error)
	// Hangup is SIGHUP: all is logged once more, and what is held is tried again.
	Hangup <-chan os.Signal
	// Conflict says in what this watch, of the source tree given, is not the one that a
	// request is meant for; empty where it is. nil takes every request.
	Conflict func(source string, r control.RetryHeld) string
	// RetryHeld lets the first pass try again what is held.
	RetryHeld bool
	// MaxFindings is how many findings are logged at a time; 0 stands for all.
	MaxFindings int
}

// watching is a running Watch.
type watching struct {
	*Controller
	o         WatchOptions
	watcher   *watch.Watcher
	inlined   []string // files that go into resources
	changeLog changeLog

	nextTrim time.Time

	control *control.Server
	shown   control.Watch // what it tells
	unheard string        // why there is no control socket, as it was logged last
}

// The reasons of passes that are neither a watcher's nor a signal's.
const (
	starting = "start"
	retrying = "retry-held"
	trimming = "trim" // no pass
)

// Watch publishes the source tree whenever it changes, until ctx ends: then it returns nil.
// What is wrong with the tree, or keeps a pass from running, is logged, and the last valid
// output stays in place. An error means that the watch could not begin. The caller closes
// the Controller.
func (c *Controller) Watch(ctx context.Context, o WatchOptions) error {
	w := &watching{Controller: c, o: o, control: control.New(c.log), changeLog: changeLog{log: c.log, most: o.MaxFindings}}
	return w.run(ctx)
}

func (w *watching) run(ctx context.Context) (err error) {
	at := w.o.Watch
	at.Ignore, at.Skip, at.Files, at.Log = ignored(w.options.Out), load.Hidden, w.extraFiles(), w.log
	w.watcher, err = watch.New(ctx, w.options.Source, at)
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
	defer cancel()

	if err := w.Open(); err != nil {
		return err
	}
	w.retry = w.o.RetryHeld
	w.log.Info("watching", "source", w.options.Source, "out", w.options.Out, "pid", os.Getpid())
	defer w.control.Close()
	if err := w.announce(); err != nil {
		return err
	}
	w.listen()

	if _, err := w.turn(ctx, starting); isUsage(err) {
		return err // the options don't fit to what is out, and won't by waiting
	}
	for ctx.Err() == nil {
		w.next(ctx)
	}
	w.log.Info("ended", "published", w.changeLog.published)
	return nil
}

// next waits for a reason to do something, and does it.
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
		w.retry = true
		reason = "SIGHUP"
	case r := <-w.control.Requests():
		w.serve(ctx, r)
		return
	case <-trim:
		reason = trimming
	}
	if ctx.Err() == nil {
		w.turn(ctx, reason)
	}
}

// ignored leaves out the output directory, which changes with each pass. A link in
// the tree may lead there, and it may stand beside a source that is one file.
func ignored(out string) func(string) bool {
	abs, err := filepath.Abs(out)
	if err != nil {
		abs = out
	}
	return func(path string) bool {
		return path == abs || strings.HasPrefix(path, abs+string(filepath.Separator))
	}
}

// extraFiles are the files that a pass reads and that are no part of the tree.
func (w *watching) extraFiles() []string {
	files := slices.Clone(w.inlined)
	for _, f := range []string{w.o.Settings, w.options.Bootstrap} {
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
	_, ok := errors.AsType[*pipeline.UsageError](err)
	return ok
}

// attempts is how often a pass begins anew because the output directory was taken
// away under it.
const attempts = 3

// reconcile takes the tree as it is now and publishes it. The Outcome is the zero value where
// the pass ended before it came to one.
func (w *watching) reconcile(ctx context.Context, reason string) (o Outcome, err error) {
	for range attempts {
		o, err = w.reconcileOnce(ctx, reason)
		if !errors.Is(err, publish.ErrLost) || ctx.Err() != nil {
			return o, err
		}
	}
	return Outcome{}, fmt.Errorf("the output directory %s was removed or replaced %d times while it was published into; the next pass tries again: %w", w.given, attempts, err)
}

// reconcileOnce is one try of a pass. It ends with ErrLost where the output directory was
// taken away: a plan is made for what is there.
func (w *watching) reconcileOnce(ctx context.Context, reason string) (o Outcome, err error) {
	var checked *pipeline.Checked
	w.watcher.Read(ctx, func() { checked, err = readAside(ctx, w.check) })
	if ctx.Err() != nil { // while it waited for git, or read
		return o, nil
	}
	if err != nil {
		return o, err
	}
	if err := w.ready(ctx); err != nil {
		return o, err
	}
	plan, err := w.Plan(checked)
	if err != nil {
		return o, err
	}
	w.changeLog.checked(checked, checked.Invalid(w.options.WarningsAsErrors))
	if o, err = w.Publish(ctx, checked, plan); errors.Is(err, publish.ErrLost) {
		return o, err
	}
	if o.Verdict != "" {
		w.changeLog.outcome(o, reason)
	}
	if err != nil {
		return o, err
	}
	return o, w.trim(ctx)
}

// ready has the directory open, and in a state from which a plan can be made.
func (w *watching) ready(ctx context.Context) error {
	if w.Lost() {
		w.log.Warn("the output directory was removed or replaced: all of it is published anew", "out", w.given)
		w.Close()
		w.control.Unbind() // nothing is published there any more
		w.changeLog.published, w.changeLog.held = "", ""
	}
	if !w.IsOpen() {
		if err := w.Open(); err != nil {
			return err
		}
		w.shown.Out = w.options.Out
	}
	w.listen()
	retry := w.retry
	if err := w.Prepare(ctx); err != nil {
		return err
	}
	if retry {
		w.changeLog.held = ""
	}
	return nil
}

// trim removes what nothing can use any more, and notes when to come again.
func (w *watching) trim(ctx context.Context) error {
	w.nextTrim = time.Time{}
	if !w.IsOpen() || w.Lost() {
		return nil // the next pass opens it anew
	}
	trimmed, next, err := w.Trim(ctx)
	w.nextTrim = next
	if written, removed := Files(trimmed); written+removed > 0 {
		w.log.Info("trimmed", "written", written, "removed", removed)
	}
	return err
}

// readAside calls read, and does not wait for its end once ctx has ended: a network file
// system can keep a reader as long as it likes. The watch ends then, and so does the
// process.
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

// check reads all that a pass depends on. Wrong settings stop nothing but the publishing,
// as a wrong resource does.
func (w *watching) check(ctx context.Context) (*pipeline.Checked, error) {
	if w.o.Reload != nil {
		o, changed, err := w.o.Reload()
		if err != nil {
			return nil, err
		}
		if changed {
			w.Configure(o)
			w.log.Info("the settings file was read again")
		}
	}
	if err := w.watcher.Also(w.extraFiles()...); err != nil {
		return nil, err
	}
	checked, err := w.Check(ctx)
	if err != nil {
		return nil, err
	}
	w.inlined = checked.Inlined
	return checked, w.watcher.Also(w.extraFiles()...)
}

// turn makes one pass, or one trim, and says to the log and to the control socket
// what came of it.
func (w *watching) turn(ctx context.Context, reason string) (result control.Result, err error) {
	pass := control.Reconcile{Reason: reason, Began: now()}
	w.shown.Running = &pass
	w.control.Tell(w.shown)
	if reason == trimming {
		err = w.trim(ctx)
	} else {
		var o Outcome
		o, err = w.reconcile(ctx, reason)
		result = resultOf(o)
	}
	w.changeLog.failure(ctx, err, reason)
	w.publishState(pass, result, err)
	if err != nil {
		result.Outcome = control.Failed
	}
	return result, err
}

// now is the time as it stands in records.
func now() time.Time { return time.Now().UTC().Round(0) }

// resultOf is an Outcome as others are told it.
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

// out is the id of the snapshot that is out, be it of a watch before this one.
func (w *watching) out() string { return cmp.Or(w.changeLog.published, w.Out()) }
