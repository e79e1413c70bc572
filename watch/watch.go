package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options tune a Watcher; the zero value is good.
type Options struct {
	// QuietPeriod is how long the tree must be quiet before a burst of events
	// becomes a signal. 0 is 100ms.
	QuietPeriod time.Duration
	// MaxDelay is the longest that a burst may put off its signal. 0 is 2s.
	MaxDelay time.Duration
	// Rescan is how often all watches are made anew, with a signal after it.
	// 0 is 30s; below 0 is never, and then what is lost stays lost.
	Rescan time.Duration
	// Ignore tells which paths don't count: their events give no signal, and
	// folders are not watched. It gets absolute paths below the root, and what
	// a link leads to also as the path without links. nil ignores nothing.
	Ignore func(path string) bool
	// Log gets a warning once when something can't be watched, and each counted
	// event at debug level. nil discards.
	Log *slog.Logger
}

// Reason says why to look again. It is for logs: one may hide another.
type Reason string

const (
	// Change is for events.
	Change Reason = "change"
	// Rescan is for Options.Rescan.
	Rescan Reason = "rescan"
)

// Watcher watches one tree. New starts watching, Run turns events into signals.
type Watcher struct {
	tree    *tree
	burst   *debouncer
	rescan  time.Duration
	log     *slog.Logger
	signals chan Reason

	// What can't be watched, by error text: found by the previous look at the
	// whole tree, and found since. Each is logged when it is new.
	known, trouble map[string]bool
}

// New watches root: a directory with all below it, or a file's directory without
// what is below. From here on nothing is missed, so read the tree after New and
// not before it. Run, which must be called, frees what New takes.
func New(root string, o Options) (*Watcher, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	if !info.IsDir() {
		root = filepath.Dir(root)
	}
	w := &Watcher{
		burst:   newDebouncer(cmp.Or(o.QuietPeriod, 100*time.Millisecond), cmp.Or(o.MaxDelay, 2*time.Second)),
		rescan:  cmp.Or(o.Rescan, 30*time.Second),
		log:     cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		signals: make(chan Reason, 1),
		trouble: map[string]bool{},
	}
	w.tree = &tree{root: root, flat: !info.IsDir(), ignore: o.Ignore, warn: w.warn}
	if err := w.tree.rewatch(); err != nil {
		w.tree.close()
		return nil, err
	}
	return w, nil
}

// Signals gives the signals. Those that are not fetched become one. It is closed
// when Run returns.
func (w *Watcher) Signals() <-chan Reason { return w.signals }

// Run sends signals until ctx ends; nothing that happens to the tree ends it. It
// must be called once, and leaves no goroutine and no open file behind.
func (w *Watcher) Run(ctx context.Context) {
	defer close(w.signals)
	defer w.tree.close()
	var rescan <-chan time.Time
	if w.rescan > 0 {
		ticker := time.NewTicker(w.rescan)
		defer ticker.Stop()
		rescan = ticker.C
	}
	for {
		events, errs := w.tree.channels()
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			w.handle(event)
		case err := <-errs:
			w.handleError(err)
		case <-w.burst.fire():
			w.burst.end()
			w.signal(Change)
		case <-rescan:
			w.rewatch()
			// In a burst the tree may be half written; the burst's own signal
			// comes soon, and covers this one.
			if !w.burst.running() {
				w.signal(Rescan)
			}
		}
	}
}

// signal leaves an unfetched signal as it is: its receiver has yet to look.
func (w *Watcher) signal(r Reason) {
	select {
	case w.signals <- r:
	default:
	}
}

func (w *Watcher) handle(event fsnotify.Event) {
	path, ok := w.tree.locate(event.Name)
	// Scanners and backups change attributes all day; content never changes so.
	if !ok || event.Op == fsnotify.Chmod || w.tree.ignored(path) {
		return
	}
	if event.Has(fsnotify.Create | fsnotify.Remove | fsnotify.Rename) {
		if within(w.tree.root, path) {
			w.rewatch()
		} else if err := w.tree.refresh(path); err != nil {
			w.warn(err)
		}
	}
	w.log.Debug("changed", "path", path, "op", event.Op.String())
	w.burst.event()
}

func (w *Watcher) handleError(err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		w.warn(fmt.Errorf("watch %s: %w", w.tree.root, explain(err)))
		return
	}
	w.rewatch() // new folders may be among what was dropped
	w.log.Warn("events were dropped, looked at the whole tree again; the sysctl fs.inotify.max_queued_events sets how many can wait")
	w.burst.event()
}

// rewatch makes all watches anew. Errors are logged only when they are news: the
// root may be missing for days, with a rescan every few seconds.
func (w *Watcher) rewatch() {
	w.known, w.trouble = w.trouble, map[string]bool{}
	if err := w.tree.rewatch(); err != nil {
		w.warn(err)
	}
	if len(w.known) > 0 && len(w.trouble) == 0 {
		w.log.Info("all folders are watched again", "root", w.tree.root)
	}
}

func (w *Watcher) warn(err error) {
	text := err.Error()
	if !w.known[text] && !w.trouble[text] {
		w.log.Warn("not all folders are watched; the rescan tries again", "error", err, "rescan", w.rescan)
	}
	w.trouble[text] = true
}
