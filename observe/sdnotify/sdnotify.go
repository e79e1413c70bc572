// Package sdnotify tells systemd the state of a watch or of a server: when the unit is ready, reloads or stops, its
// status in one line, and that its loops make progress. A Notifier does nothing without a systemd that waits for it.
//
//	n := sdnotify.New(sdnotify.Options{Targets: 1, Patience: 4 * time.Minute})
//	go n.Run(ctx, log)
//	n.Open() // when all addresses are open
package sdnotify

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/watch/control"
	"xdspub/xds"
)

// Options configure a Notifier.
type Options struct {
	// Targets is the number of targets of the watch, 1 without targets.
	Targets int
	// Serves means that the unit is ready when its addresses are open. Otherwise, each target must also have ended
	// its first pass.
	Serves bool
	// Patience is how long the loop of a target may make no progress. A Notifier then sends no WATCHDOG=1.
	Patience time.Duration
}

const (
	// refresh is the longest time between two looks at the state: a fault may follow from the time alone.
	refresh = 5 * time.Second
	// maxStatus bounds the status in bytes.
	maxStatus = 500
)

// Notifier tells systemd the state. A Notifier is safe for concurrent use, and implements watch.Observer. A nil
// Notifier does nothing.
type Notifier struct {
	options Options
	changed chan struct{} // full if the state has changed

	mu        sync.Mutex
	opened    bool
	ready     bool // systemd knows that the unit is ready
	reload    bool // SIGHUP has come, and systemd does not know
	reloading bool // systemd knows that the unit reloads
	began     time.Time
	targets   map[string]*target
}

// target is the state of a target.
type target struct {
	watch    control.Watch
	progress time.Time // when the loop last made progress
	looped   bool      // the first pass has ended
	// wanted means that the target must still reload. before is the last pass before the SIGHUP, busy is the start
	// of the pass that ran then.
	wanted bool
	before *control.Reconcile
	busy   time.Time
}

// New returns a Notifier; nil if systemd does not wait for a notification.
func New(o Options) *Notifier {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	return &Notifier{options: o, changed: make(chan struct{}, 1), began: time.Now(), targets: make(map[string]*target)}
}

// Run sends notifications until ctx ends, and logs when systemd no longer takes them. The last one is STOPPING=1.
func (n *Notifier) Run(ctx context.Context, log *event.Log) {
	if n == nil {
		return
	}
	every := refresh
	if interval, err := daemon.SdWatchdogEnabled(false); err == nil && interval > 0 {
		every = min(every, interval/2)
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	to := sender{log: log}
	said := ""
	for {
		var reload, text string
		select {
		case <-ctx.Done():
			to.send(daemon.SdNotifyStopping + "\nSTATUS=stopping")
			return
		case <-n.changed:
			reload, text = n.news(time.Now(), said)
		case <-ticks.C:
			now := time.Now()
			if reload, text = n.news(now, said); n.alive(now) {
				text += daemon.SdNotifyWatchdog + "\n"
			}
		}
		if !to.send(reload) || !to.send(text) {
			said = ""
			n.forget()
			continue
		}
		if _, status, ok := strings.Cut(text, "STATUS="); ok {
			said, _, _ = strings.Cut(status, "\n")
		}
	}
}

// sender sends notifications.
type sender struct {
	log     *event.Log
	failing bool // the last notification failed
}

// send sends a notification, unless the text is empty, and reports whether systemd has taken it. send logs the first
// failure, and the end of the failures.
func (s *sender) send(text string) bool {
	if text == "" {
		return true
	}
	_, err := daemon.SdNotify(false, strings.TrimSuffix(text, "\n"))
	switch {
	case err != nil && !s.failing:
		s.log.Write(event.SystemdUnreachable{Socket: os.Getenv("NOTIFY_SOCKET"), Error: err})
	case err == nil && s.failing:
		s.log.Write(event.SystemdReachable{})
	}
	s.failing = err != nil
	return err == nil
}

// forget makes the next news tell the state again, because systemd has not taken the last ones.
func (n *Notifier) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready, n.reloading = false, false
}

// news returns what systemd does not know yet, as lines. said is the last status. reload is a notification of its own:
// READY=1 in the same notification would end the reload before it begins.
func (n *Notifier) news(now time.Time, said string) (reload, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reload && n.ready {
		reload, n.reloading = daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec(), true
	}
	n.reload = false
	if !n.ready && n.isReady() || n.reloading && !n.isReloading() {
		text, n.ready, n.reloading = daemon.SdNotifyReady+"\n", true, false
	}
	if status := n.status(now); status != said {
		text += "STATUS=" + status + "\n"
	}
	return reload, text
}

// isReady reports whether the unit has started.
func (n *Notifier) isReady() bool {
	if n.options.Serves || !n.opened {
		return n.opened
	}
	looped := 0
	for _, t := range n.targets {
		if t.looped {
			looped++
		}
	}
	return looped >= n.options.Targets
}

// isReloading reports whether a target has not ended the pass for the last SIGHUP.
func (n *Notifier) isReloading() bool {
	for _, t := range n.targets {
		if t.wanted {
			return true
		}
	}
	return false
}

// alive reports whether the loop of each target has made progress within Options.Patience.
func (n *Notifier) alive(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.targets) == 0 {
		return now.Sub(n.began) <= n.options.Patience
	}
	for _, t := range n.targets {
		if now.Sub(t.progress) > n.options.Patience {
			return false
		}
	}
	return true
}

// status returns the state in one line: the faults, as /readyz has them, or the published snapshot.
func (n *Notifier) status(now time.Time) string {
	if len(n.targets) == 0 {
		return "the source tree is not read yet"
	}
	var parts []string
	for name, t := range n.targets {
		text := strings.Join(t.watch.Faults(now), "; ")
		if text == "" {
			text = "published snapshot " + t.watch.Snapshot
			if t.watch.Revision != "" {
				text += " of commit " + t.watch.Revision
			}
		}
		if name != "" {
			text = "target " + name + ": " + text
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	return diag.ClipLine(strings.Join(parts, "; "), maxStatus)
}

// change changes the state by f.
func (n *Notifier) change(f func()) {
	if n == nil {
		return
	}
	n.mu.Lock()
	f()
	n.mu.Unlock()
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// Open says that all addresses are open.
func (n *Notifier) Open() { n.change(func() { n.opened = true }) }

// Wait sets Options.Patience.
func (n *Notifier) Wait(patience time.Duration) { n.change(func() { n.options.Patience = patience }) }

// Reload says that SIGHUP has come. Call Reload before the watch gets the SIGHUP.
func (n *Notifier) Reload() {
	n.change(func() {
		n.reload = true
		for _, t := range n.targets {
			t.wanted, t.before, t.busy = true, t.watch.Last, time.Time{}
			if t.watch.Running != nil {
				t.busy = t.watch.Running.Began
			}
		}
	})
}

// Tell sets the state of the watch of a target.
func (n *Notifier) Tell(name string, w control.Watch) {
	n.change(func() {
		t := n.target(name)
		t.watch, t.progress = w, time.Now()
		if last := w.Last; last != nil && last != t.before && last.Reason == "SIGHUP" && !last.Began.Equal(t.busy) {
			t.wanted = false
		}
	})
}

// target returns the state of a target.
func (n *Notifier) target(name string) *target {
	if n.targets[name] == nil {
		n.targets[name] = &target{}
	}
	return n.targets[name]
}

// Read does nothing: Tell has the result of the check.
func (n *Notifier) Read(string, *xds.Snapshot) {}

// Published does nothing: Tell has the id of the snapshot.
func (n *Notifier) Published(string, *xds.Snapshot) {}

// Removed forgets a target.
func (n *Notifier) Removed(name string) { n.change(func() { delete(n.targets, name) }) }

// Beat says that the loop of a target waits for events, after its first pass.
func (n *Notifier) Beat(name string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	t := n.target(name)
	first := !t.looped
	t.looped, t.progress = true, time.Now()
	n.mu.Unlock()
	if first {
		n.change(func() {})
	}
}

// Event takes an event of the log: progress of its target.
func (n *Notifier) Event(r event.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.targets[r.Target]; t != nil {
		t.progress = time.Now()
	}
}
