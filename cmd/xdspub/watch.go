package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/pipeline"
	"xdspub/publish"
	"xdspub/watch"
)

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "publish a source tree whenever it changes",
		ArgsUsage: "SRC",
		Flags: append(append(sourceFlags(), publishFlags()...),
			&cli.DurationFlag{Name: "quiet-period", EnvVars: env("quiet-period"), Value: 100 * time.Millisecond, Usage: "a change is taken up once the tree was quiet for `TIME`, or after 2s"},
			&cli.DurationFlag{Name: "rescan", EnvVars: env("rescan"), Value: 30 * time.Second, Usage: "look at the whole tree every `TIME` even without an event"},
			&cli.BoolFlag{Name: "once", EnvVars: env("once"), Usage: "make one pass and end, with the exit status of render"}),
		Action: func(c *cli.Context) error {
			source, err := oneArgument(c, "SRC")
			if err != nil {
				return err
			}
			if err := settle(c, source); err != nil {
				return err
			}
			o, err := options(c, source, newLogger(c.App.ErrWriter))
			if err != nil {
				return err
			}
			if c.Duration("quiet-period") <= 0 || c.Duration("rescan") <= 0 {
				return usagef("--quiet-period and --rescan must be above 0")
			}
			p := pipeline.New(o)
			if c.Bool("once") {
				return renderOnce(c, p, o)
			}
			w := &watching{c: c, o: o, p: p, log: o.Log}
			return w.run(c.Context)
		},
	}
}

// watching is a running watch command.
type watching struct {
	c   *cli.Context
	o   pipeline.Options
	p   *pipeline.Pipeline
	log *slog.Logger
	dir *publish.Dir

	told      diag.List // the findings that were logged last
	failed    string    // the I/O error that was logged last
	published string    // the id of the Snapshot that is out
	nextTrim  time.Time
}

func (w *watching) run(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)

	watcher, err := watch.New(w.o.Source, watch.Options{
		QuietPeriod: w.c.Duration("quiet-period"), Rescan: w.c.Duration("rescan"), Ignore: ignored(w.o.Out), Log: w.log,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { watcher.Run(ctx) })
	defer running.Wait()
	defer cancel()

	if w.dir, err = publish.Open(w.o.Out, publish.Options{Group: w.c.String("group"), Log: w.log}); err != nil {
		return err
	}
	defer w.dir.Close()
	w.log.Info("watching", "source", w.o.Source, "out", w.o.Out, "pid", os.Getpid())

	if err := w.pass(ctx, "start"); err != nil {
		return err
	}
	for {
		trim, stop := w.trimTimer()
		reason := ""
		select {
		case <-ctx.Done():
			w.log.Info("ended", "published", w.published)
			stop()
			return nil
		case r := <-watcher.Signals():
			reason = string(r)
		case <-hup:
			w.told, w.failed = nil, "" // asked for: say all again
			reason = "SIGHUP"
		case <-trim:
			reason = "trim"
		}
		stop()
		if err := w.pass(ctx, reason); err != nil {
			return err
		}
	}
}

// ignored leaves out what is no source: the output directory beside the tree,
// and the inside of .git, which changes with every git command.
func ignored(out string) func(string) bool {
	abs, err := filepath.Abs(out)
	if err != nil {
		abs = out
	}
	return func(path string) bool {
		return filepath.Base(path) == ".git" || path == abs || strings.HasPrefix(path, abs+string(filepath.Separator))
	}
}

// trimTimer fires when the next trim is due.
func (w *watching) trimTimer() (<-chan time.Time, func()) {
	if w.nextTrim.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(w.nextTrim))
	return timer.C, func() { timer.Stop() }
}

// pass takes the tree as it is now and publishes it. What is wrong is logged and
// leaves the last valid output in place; an error ends the watch, which only
// wrong usage does.
func (w *watching) pass(ctx context.Context, reason string) error {
	err := w.attempt(ctx, reason)
	var usage *pipeline.UsageError
	switch {
	case errors.As(err, &usage):
		return err
	case err == nil:
		w.failed = ""
	case ctx.Err() != nil:
		w.log.Warn("stopped within a change, the next start goes on", "error", err)
	case err.Error() != w.failed:
		w.failed = err.Error()
		w.log.Error("could not run, the last valid output stays", "error", err, "reason", reason)
	}
	return nil
}

func (w *watching) attempt(ctx context.Context, reason string) error {
	checked, err := w.p.Check()
	if err != nil {
		return err
	}
	var plan *pipeline.Plan
	if verdict(w.c, checked) == nil {
		var list diag.List
		if plan, list, err = w.p.Plan(checked.Snapshot, time.Now()); err != nil {
			return err
		}
		checked.Add(list)
	}
	w.tell(checked)
	if plan == nil {
		return nil
	}
	w.nextTrim = plan.NextTrim
	result, err := w.p.Publish(ctx, w.dir, plan)
	if err != nil {
		return err
	}
	if written, removed := counts(result); written+removed > 0 || w.published != plan.ID {
		w.log.Info("snapshot is out", "id", plan.ID, "written", written, "removed", removed, "resources", checked.Summary.Resources, "reason", reason)
	}
	w.published = plan.ID
	return nil
}

// tell logs the findings, each once as long as they stay the same.
func (w *watching) tell(checked *pipeline.Checked) {
	if reflect.DeepEqual(w.told, checked.Diagnostics) {
		return
	}
	had := w.told.HasErrors()
	w.told = checked.Diagnostics
	for _, d := range checked.Diagnostics {
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
	switch {
	case verdict(w.c, checked) != nil:
		w.log.Error("refused, the last valid output stays", "errors", checked.Summary.Errors, "warnings", checked.Summary.Warnings, "published", w.published)
	case had:
		w.log.Info("the source tree is valid again")
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
