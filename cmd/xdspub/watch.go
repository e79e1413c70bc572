package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/control"
	"xdspub/diag"
	"xdspub/load"
	"xdspub/pipeline"
	"xdspub/publish"
	"xdspub/watch"
)

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "publish a source tree whenever it changes",
		ArgsUsage: "SRC",
		Flags: append(slices.Concat(sourceFlags(), publishFlags(), confirmFlags(), watchFlags()), maxFindingsFlag(), retryHeldFlag(),
			&cli.BoolFlag{Name: "once", EnvVars: env("once"), Usage: "make one pass and end, with the exit status of render", DisableDefaultText: true}),
		Action: func(c *cli.Context) error {
			// First of all: a supervisor may send one at any time, and it ends a
			// process that does not ask for it.
			hup := make(chan os.Signal, 1)
			signal.Notify(hup, syscall.SIGHUP)
			defer signal.Stop(hup)
			source, err := oneArgument(c, "SRC")
			if err != nil {
				return err
			}
			v, err := settings(c, source)
			if err != nil {
				return err
			}
			o, err := publishOptions(v, source, newLogger(c.App.ErrWriter))
			if err != nil {
				return err
			}
			if value(v, "quiet-period", c.Duration) <= 0 || value(v, "rescan", c.Duration) <= 0 {
				return usagef("--quiet-period and --rescan must be above 0")
			}
			if value(v, "poll", c.Duration) < 0 {
				return usagef("--poll can't be negative")
			}
			if c.Bool("once") {
				return renderOnce(v, o)
			}
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop)   // a second one ends it at once
			signal.Ignore(syscall.SIGPIPE) // a log that nobody reads must not end the watch
			o.Clock = pipeline.SystemClock()
			w := &watching{v: v, o: o, p: pipeline.New(o), given: o.Out, log: o.Log, control: control.New(o.Log)}
			return w.run(ctx, hup)
		},
	}
}

// watching is a running watch command.
type watching struct {
	v   values
	o   pipeline.Options
	p   *pipeline.Pipeline
	log *slog.Logger
	// given is the output directory as it was asked for. A link on its path may come to
	// lead elsewhere: o.Out is where it led when dir was opened.
	given string
	dir   *publish.Dir // nil where it was lost and could not be opened anew

	watcher *watch.Watcher
	inlined []string // files that go into resources

	told      diag.List // the findings that were logged last
	failed    string    // the I/O error that was logged last
	published string    // the id of the Snapshot that is out
	nextTrim  time.Time
	release   bool   // try once more what is held
	held      string // the id of the Snapshot that was said to be held

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

func (w *watching) run(ctx context.Context, hup <-chan os.Signal) error {
	// Asked first: the lock is written into the output directory, which must not
	// be in the source tree.
	if checked := w.p.Overlap(); checked != nil {
		return refuse(w.v.c, checked)
	}
	var err error
	w.watcher, err = watch.New(ctx, w.o.Source, watch.Options{
		QuietPeriod: value(w.v, "quiet-period", w.v.c.Duration), Rescan: value(w.v, "rescan", w.v.c.Duration), Poll: value(w.v, "poll", w.v.c.Duration),
		Ignore: ignored(w.o.Out), Skip: load.Hidden, Files: w.besides(), Log: w.log,
	})
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

	if err := w.open(); err != nil {
		return err
	}
	defer w.close()
	w.release = w.v.c.Bool("retry-held")
	w.log.Info("watching", "source", w.o.Source, "out", w.o.Out, "pid", os.Getpid())
	defer w.control.Close()
	if err := w.introduce(); err != nil {
		return err
	}
	w.listen()

	if _, err := w.turn(ctx, starting); isUsage(err) {
		return err // the flags don't fit to what is out, and won't by waiting
	}
	for ctx.Err() == nil {
		trim, stop := w.trimTimer()
		reason := ""
		select {
		case <-ctx.Done():
		case r := <-w.watcher.Signals():
			reason = string(r)
		case <-hup:
			w.told, w.failed = nil, "" // asked for: say all again
			w.release = true
			reason = "SIGHUP"
		case r := <-w.control.Requests():
			stop()
			w.serve(ctx, r)
			continue
		case <-trim:
			reason = trimming
		}
		stop()
		if ctx.Err() == nil {
			w.turn(ctx, reason)
		}
	}
	w.log.Info("ended", "published", w.published)
	return nil
}

// open opens the output directory. From then on all is read and written where it
// leads now.
func (w *watching) open() error {
	at := w.o
	at.Out = w.given
	if checked := pipeline.New(at).Overlap(); checked != nil {
		return errors.New(checked.Diagnostics[0].Message)
	}
	dir, err := publish.Open(w.given, publish.Options{Group: value(w.v, "group", w.v.c.String), Log: w.log})
	if err != nil {
		return err
	}
	w.dir, w.o.Out = dir, dir.Path()
	w.p, w.shown.Out = pipeline.New(w.o), w.o.Out
	return nil
}

func (w *watching) close() {
	if w.dir != nil {
		w.dir.Close()
		w.dir = nil
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

// besides are the files that a pass reads and that are no part of the tree.
func (w *watching) besides() []string {
	files := []string{cmp.Or(w.v.c.Path("config"), load.ConfigFile(w.o.Source))}
	if w.o.Bootstrap != "" {
		files = append(files, w.o.Bootstrap)
	}
	return append(files, w.inlined...)
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

// report logs why a pass could not run, once as long as that stays the same.
func (w *watching) report(ctx context.Context, err error, reason string) {
	switch {
	case reason == starting && isUsage(err): // with which the watch ends
	case err == nil && w.failed != "":
		w.failed = ""
		w.log.Info("runs again", "reason", reason)
	case err == nil:
	case ctx.Err() != nil:
		w.log.Warn("stopped within a change, the next start goes on", "error", err)
	case err.Error() != w.failed:
		w.failed = err.Error()
		w.log.Error("could not run, the last valid output stays", "error", err, "reason", reason)
	}
}

// attempts is how often a pass begins anew because the output directory was taken
// away under it.
const attempts = 3

// pass takes the tree as it is now and publishes it. What is wrong with it is
// logged and leaves the last valid output in place. The result is empty where the
// pass ended before it came to one.
func (w *watching) pass(ctx context.Context, reason string) (result control.Result, err error) {
	for range attempts {
		result, err = w.attempt(ctx, reason)
		if !errors.Is(err, publish.ErrLost) || ctx.Err() != nil {
			return result, err
		}
	}
	return control.Result{}, fmt.Errorf("the output directory %s was removed or replaced %d times while it was published into; the next pass tries again: %w", w.given, attempts, err)
}

// attempt is one try of a pass. It ends with ErrLost where the output directory was
// taken away: a plan is made for what is there.
func (w *watching) attempt(ctx context.Context, reason string) (result control.Result, err error) {
	var checked *pipeline.Checked
	w.watcher.Read(ctx, func() { checked, err = aside(ctx, w.check) })
	if ctx.Err() != nil { // while it waited for git, or read
		return result, nil
	}
	if err != nil {
		return result, err
	}
	if err := w.ready(ctx); err != nil {
		return result, err
	}
	plan, err := planFor(w.v, w.p, checked)
	if err != nil {
		return result, err
	}
	w.tell(checked)
	switch {
	case plan == nil:
		result = control.Result{Outcome: control.WasRefused, Message: saysRefused(checked), Findings: checked.Diagnostics}
		return result, w.trim(ctx)
	case plan.Held != nil:
		w.hold(plan)
		result = control.Result{Outcome: control.WasRefused, Snapshot: plan.ID, Message: saysHeld(plan), Findings: plan.Held.Findings}
		return result, w.trim(ctx)
	}
	published, err := w.p.Publish(ctx, w.dir, plan)
	if err == nil && w.dir.Lost() {
		err = publish.ErrLost // what is out is not where anybody looks
	}
	if errors.Is(err, publish.ErrLost) {
		return result, err
	}
	if refused, ok := errors.AsType[*publish.RefusedError](err); ok {
		w.log.Error("Envoy refused the snapshot, "+saysUndone(published, refused, err), "snapshot", plan.ID, "step", refused.Refusal.Step)
		w.say(refused.Findings())
		w.held = plan.ID
		result = control.Result{Outcome: control.WasRefused, Snapshot: plan.ID, Message: saysRefusedByEnvoy(plan, published, refused, err), Findings: refused.Findings()}
		if error(refused) == err {
			err = w.trim(ctx)
		}
		return result, err
	}
	if err != nil {
		return result, err
	}
	w.held = ""
	if written, removed := counts(published); written+removed > 0 || w.published != plan.ID {
		w.log.Info("snapshot is out", "id", plan.ID, "written", written, "removed", removed, "resources", checked.Summary.Resources, "reason", reason)
	}
	w.published = plan.ID
	return control.Result{Outcome: control.Published, Snapshot: plan.ID, Message: saysPublished(plan, published), Findings: checked.Diagnostics}, w.trim(ctx)
}

// ready has the directory open, and whole as far as a writer before this one had
// begun to put something back.
func (w *watching) ready(ctx context.Context) error {
	if w.dir != nil && w.dir.Lost() {
		w.log.Warn("the output directory was removed or replaced: all of it is published anew", "out", w.given)
		w.close()
		w.control.Unbind() // nothing is published there any more
		w.published, w.held = "", ""
	}
	if w.dir == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	w.listen()
	if err := w.p.Recover(ctx, w.dir); err != nil {
		return err
	}
	if err := w.p.KeepTime(w.dir); err != nil {
		return err
	}
	if w.release {
		if err := w.p.Retry(ctx, w.dir); err != nil {
			return err
		}
		w.release, w.held = false, ""
	}
	return nil
}

// hold says once that a snapshot is not tried again.
func (w *watching) hold(plan *pipeline.Plan) {
	if w.held != plan.ID {
		w.log.Warn("the snapshot is held since Envoy refused it, the last valid output stays: change the source, or send SIGHUP to try again", "snapshot", plan.ID, "since", plan.Held.Time)
		w.say(plan.Held.Findings)
	}
	w.held = plan.ID
}

// trim takes away what nothing can use any more, and notes when to come again.
func (w *watching) trim(ctx context.Context) error {
	w.nextTrim = time.Time{}
	if w.dir == nil || w.dir.Lost() {
		return nil // the next pass opens it anew
	}
	result, next, err := w.p.Trim(ctx, w.dir, time.Now())
	w.nextTrim = next
	if written, removed := counts(pipeline.Result{Result: result}); written+removed > 0 {
		w.log.Info("trimmed", "written", written, "removed", removed)
	}
	return err
}

// aside calls read, and does not wait for its end once ctx has ended: a network file
// system can keep a reader as long as it likes. The watch ends then, and so does the
// process.
func aside[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
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

// check reads all that a pass depends on.
func (w *watching) check(ctx context.Context) (*pipeline.Checked, error) {
	if err := w.resettle(); err != nil {
		return nil, err
	}
	if err := w.watcher.Also(w.besides()...); err != nil {
		return nil, err
	}
	checked, err := w.p.Check(ctx)
	if err != nil {
		return nil, err
	}
	w.inlined = checked.Inlined
	return checked, w.watcher.Also(w.besides()...)
}

// resettle reads the settings file again. A wrong one stops nothing but the
// publishing, as a wrong resource does.
func (w *watching) resettle() error {
	v, err := settings(w.v.c, w.o.Source)
	if err != nil {
		return err
	}
	if _, ok := v.file["out"]; !ok && w.v.file["out"] != nil {
		v.file["out"] = w.v.file["out"] // a watch can't be without
	}
	if reflect.DeepEqual(v.file, w.v.file) {
		return nil
	}
	o, err := publishOptions(v, w.o.Source, w.log)
	if err != nil {
		return err
	}
	for _, name := range []string{"out", "group", "quiet-period", "rescan", "poll"} {
		if !reflect.DeepEqual(v.file[name], w.v.file[name]) {
			w.log.Warn("this setting takes effect at the next start", "setting", name)
		}
	}
	o.Out, o.Clock = w.o.Out, w.o.Clock
	w.v, w.o, w.p = v, o, pipeline.New(o)
	w.log.Info("the settings file was read again")
	return nil
}

// tell logs the findings, each once as long as they stay the same.
func (w *watching) tell(checked *pipeline.Checked) {
	if reflect.DeepEqual(w.told, checked.Diagnostics) {
		return
	}
	had := w.told.HasErrors()
	w.told = checked.Diagnostics
	w.say(checked.Diagnostics)
	switch {
	case refused(w.v, checked):
		w.log.Error("refused, the last valid output stays", "errors", checked.Summary.Errors, "warnings", checked.Summary.Warnings, "published", w.published)
	case had:
		w.log.Info("the source tree is valid again")
	}
}

// say logs findings.
func (w *watching) say(list diag.List) {
	most, left := list.Most(maxFindings(w.v.c, w.v.c.App.ErrWriter))
	for _, d := range most {
		attrs := []any{"code", d.Code, "place", d.Position.String()}
		if d.Resource.Name != "" {
			attrs = append(attrs, "resource", d.Resource.Name)
		}
		for _, r := range d.Related {
			attrs = append(attrs, "related", r.Position.String()+": "+r.Message)
		}
		if d.Help != "" {
			attrs = append(attrs, "help", d.Help)
		}
		w.log.Log(context.Background(), level(d.Severity), d.Message, attrs...)
	}
	if left > 0 {
		w.log.Warn("more findings were not logged, --max-findings 0 logs them all", "findings", left)
	}
}

func level(s diag.Severity) slog.Level {
	switch s {
	case diag.Error:
		return slog.LevelError
	case diag.Warning:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}
