package main

import (
	"context"
	"os"
	"sync"
	"time"

	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/observe/sdnotify"
	"xdspub/watch"
	"xdspub/watch/control"
	"xdspub/xds"
)

// newNotifier returns the Notifier of a watch or a server; nil if systemd does not wait for a notification.
func newNotifier(v *call) *sdnotify.Notifier {
	if v.Once.Value || v.Command.Name != "watch" && v.Command.Name != "serve" {
		return nil
	}
	targets, err := chosenTargets(v)
	if err != nil {
		return nil // the options have the same error
	}
	return sdnotify.New(sdnotify.Options{Targets: max(1, len(targets)), Serves: v.Command.Name == "serve", Patience: patience(v)})
}

// reading is how long a watch may take to read and to check the source tree, including the wait for a lock of git.
const reading = 3 * time.Minute

// patience returns how long a watch that works may make no progress: the longest wait within a step, and reading.
func patience(v *call) time.Duration {
	return reading + v.AckTimeout.Value + v.WarmTimeout.Value + v.StepGap.Value + v.PollInterval.Value
}

// tellSystemd calls run, and tells systemd the state until run returns.
func tellSystemd(ctx context.Context, v *call, log *event.Log, run func(context.Context) error) error {
	if v.notifier == nil {
		return run(ctx)
	}
	ctx, end := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(crash.Again(ctx.Done(), func() { v.notifier.Run(ctx, log) }, log.Crashed))
	defer telling.Wait()
	defer end()
	return run(ctx)
}

// reloads passes SIGHUP on, after it has told systemd, until ctx ends.
func reloads(ctx context.Context, v *call, hangup <-chan os.Signal, log *event.Log) <-chan os.Signal {
	if v.notifier == nil {
		return hangup
	}
	on := make(chan os.Signal, 1)
	go crash.Again(ctx.Done(), func() {
		for {
			select {
			case s := <-hangup:
				v.notifier.Reload()
				select {
				case on <- s:
				default: // the watch has a SIGHUP that it has not read
				}
			case <-ctx.Done():
				return
			}
		}
	}, log.Crashed)()
	return on
}

// beatOf returns WatchOptions.Beat; nil if systemd does not wait for a notification.
func beatOf(v *call) func(target string) {
	switch {
	case v.notifier == nil:
		return nil
	case v.aggregate != nil:
		return func(string) { v.notifier.Beat(v.aggregate.Name()) }
	}
	return v.notifier.Beat
}

// observers passes what a watch does to several observers.
type observers []watch.Observer

// observersOf returns the observers of a watch; nil for none.
func observersOf(v *call) watch.Observer {
	var all observers
	if v.observer != nil {
		all = append(all, v.observer)
	}
	if v.notifier != nil {
		all = append(all, v.notifier)
	}
	if v.writer != nil {
		all = append(all, v.writer)
	}
	switch {
	case len(all) == 0:
		return nil
	case v.aggregate != nil:
		return aggregateObserver{all, v.aggregate.Name()}
	}
	return all
}

// Tell implements watch.Observer.
func (l observers) Tell(target string, w control.Watch) {
	for _, o := range l {
		o.Tell(target, w)
	}
}

// Read implements watch.Observer.
func (l observers) Read(target string, s *xds.Snapshot) {
	for _, o := range l {
		o.Read(target, s)
	}
}

// Published implements watch.Observer.
func (l observers) Published(target string, s *xds.Snapshot) {
	for _, o := range l {
		o.Published(target, s)
	}
}

// Removed implements watch.Observer.
func (l observers) Removed(target string) {
	for _, o := range l {
		o.Removed(target)
	}
}

// aggregateObserver observes the watch of an aggregate as a target with the name of the aggregate.
type aggregateObserver struct {
	observers
	name string
}

// Tell implements watch.Observer.
func (o aggregateObserver) Tell(_ string, w control.Watch) { o.observers.Tell(o.name, w) }

// Read implements watch.Observer.
func (o aggregateObserver) Read(_ string, s *xds.Snapshot) { o.observers.Read(o.name, s) }

// Published implements watch.Observer.
func (o aggregateObserver) Published(_ string, s *xds.Snapshot) { o.observers.Published(o.name, s) }

// Removed implements watch.Observer.
func (o aggregateObserver) Removed(string) { o.observers.Removed(o.name) }
