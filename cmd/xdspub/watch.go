package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/event"
	"xdspub/render/trim"
	"xdspub/source/settingsfile"
	"xdspub/watch"
	"xdspub/watch/control"
	"xdspub/watch/notify"
)

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "publish a source tree, and again whenever it changes",
		ArgsUsage: "SRC",
		Description: `Runs until it is stopped. While the tree has errors, no published file changes. With
--envoy-admin each step waits until Envoy has acknowledged it, and what Envoy rejects is rolled
back. SIGHUP reads the tree at once, and retries what Envoy rejected. SIGUSR1 writes the status
to the log. SIGTERM ends the watch after the step that is under way; the next start continues.

Examples:
  xdspub watch --out /var/lib/xds config/
  xdspub watch --out /var/lib/xds --envoy-admin http://127.0.0.1:9901 config/

Exit status: 0 ended by a signal, 2 wrong usage, 3 could not run; with --once, as render.`,
		Flags: options(settings.Watched()),
		Action: action(func(c *call) error {
			asked, ignore := receive()
			defer ignore()
			v, o, err := settingsAndOptions(c, publishOptions)
			if err != nil {
				return err
			}
			defer v.hooks.Close()
			if err := checkOperations(v); err != nil {
				return err
			}
			if c.Once.Value {
				return renderOnce(v, o)
			}
			ctx, stop := untilSignal(c)
			defer stop()
			collectSooner(25)
			log := o[0].Log.For("")
			return tellSystemd(ctx, v, log, func(ctx context.Context) error {
				return operate(ctx, v, log, func(ctx context.Context) error {
					v.notifier.Open()
					asked.hangup = reloads(ctx, v, asked.hangup, log)
					return writeStore(ctx, v, func(ctx context.Context) error {
						return watchUntil(ctx, v, o, publishOptions, asked)
					})
				})
			})
		}),
	}
}

// signals are the channels of the signals to a watch.
type signals struct {
	hangup <-chan os.Signal // SIGHUP
	report <-chan os.Signal // SIGUSR1
}

// receive delivers signals until ignore is called. Call receive first: a supervisor may send a signal at any
// time, and these signals end a process that does not handle them.
func receive() (s signals, ignore func()) {
	hangup, report := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	signal.Notify(report, syscall.SIGUSR1)
	return signals{hangup, report}, func() {
		signal.Stop(hangup)
		signal.Stop(report)
	}
}

// interruptible returns a context that ends with SIGINT or SIGTERM.
func interruptible(c *call) (ctx context.Context, stop func()) {
	return signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
}

// untilSignal returns a context that ends with SIGINT, SIGTERM or one of others. A second signal ends the process at
// once. untilSignal also ignores SIGPIPE.
func untilSignal(c *call, others ...os.Signal) (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(c.Context, append(others, os.Interrupt, syscall.SIGTERM)...)
	context.AfterFunc(ctx, stop)
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads must not end the watch
	return ctx, stop
}

// watchUntil runs a watch until ctx ends. When the settings file changes, watchUntil replaces *v by the new
// settings, and options returns the options for them.
func watchUntil(ctx context.Context, v *call, all []watch.Options, options optionsOf, asked signals) error {
	source := all[0].Source.Path
	// Check this first: watch.Watch writes a lock into the output directory, which must not be in the source
	// tree.
	for _, o := range all {
		if o.Out == "" {
			continue
		}
		if checked := o.Source.Overlap(o.Out); checked != nil {
			return refuse(v, checked)
		}
	}
	log := all[0].Log.For(v.aggregate.Name()) // for lines about all targets
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	runRemote(ctx, v, log)
	live := liveSettings{v: v, out: v.Out, source: source, log: log, options: options}
	return watch.Watch(ctx, withClocks(all), watch.WatchOptions{
		Watch: notify.Options{
			QuietPeriod: v.QuietPeriod.Value, Rescan: v.Rescan.Value, Poll: v.Poll.Value,
		},
		Log:         log,
		Settings:    settingsFile(v, source),
		Remote:      v.remote,
		Aggregate:   v.aggregate.String(),
		MaxStale:    v.MaxStale.Value,
		Reload:      live.reload,
		Hangup:      asked.hangup,
		Report:      asked.report,
		Conflict:    live.differs,
		RetryHeld:   v.RetryHeld.Value,
		Observer:    observersOf(v),
		Store:       storeOf(v),
		Events:      v.events,
		Beat:        beatOf(v),
		MaxFindings: maxFindings(v, v.App.ErrWriter),
	})
}

// settingsFile returns the path of the settings file; empty for a control plane without --config.
func settingsFile(v *call, source string) string {
	if v.Config.Value != "" || settings.IsRemote(source) {
		return v.Config.Value
	}
	return settingsfile.PathIn(source)
}

// withClocks sets Clock in all options, and returns them.
func withClocks(all []watch.Options) []watch.Options {
	for i := range all {
		all[i].Clock = trim.SystemClock()
	}
	return all
}

// liveSettings are the settings of a running watch. differs may run at the same time as reload.
type liveSettings struct {
	mu      sync.Mutex
	v       *call
	out     settings.Value[string] // --out when the watch began, which it keeps
	source  string
	log     *event.Log
	options optionsOf
}

// differs calls the function differs with the current settings.
func (l *liveSettings) differs(source string, r control.RetryHeld) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return differs(l.v, source, r)
}

// reload reads the settings file of a running watch again (watch.WatchOptions.Reload). all is nil if no setting
// has changed.
func (l *liveSettings) reload() (all []watch.Options, changed bool, err error) {
	is, err := l.v.withFile(l.source)
	if err != nil {
		return nil, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !is.Out.InFile() && l.v.Out.InFile() {
		is.Out = l.v.Out // a watch needs --out
	}
	if settings.SameFile(is.Settings, l.v.Settings) && is.Types.Digest == l.v.Types.Digest {
		return nil, false, nil
	}
	stays := *is.Settings
	if l.out.InFile() {
		stays.Out = l.out
	}
	if all, err = l.options(is.with(&stays), l.source, l.log); err != nil {
		return nil, false, err
	}
	if err := configureRollouts(is); err != nil {
		return nil, false, err
	}
	for _, r := range settings.Fixed() {
		if !r.Same(is.Settings, l.v.Settings) {
			l.log.Write(event.SettingIgnored{Setting: r.Name()})
		}
	}
	*l.v = *is
	l.v.notifier.Wait(patience(l.v))
	return withClocks(all), true, nil
}
