package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/event"
	"xdspub/source/gitdir"

	"github.com/fsnotify/fsnotify"
)

// Options tune a Watcher. The zero value is usable.
type Options struct {
	// QuietPeriod is how long the tree must be quiet before a burst of events becomes a signal; 0 means
	// 100ms. After a change of one file that is known to be complete, the period is shorter.
	QuietPeriod time.Duration
	// MaxDelay is the longest delay of a signal by a burst; 0 means 2s.
	MaxDelay time.Duration
	// Rescan is the interval at which the Watcher creates all watches again and sends a signal; 0 means 30s.
	// FoundNothing makes the interval longer if rescans are expensive. A negative Rescan disables rescans, so
	// that lost watches stay lost.
	Rescan time.Duration
	// Poll is the interval at which the Watcher polls the tree, for file systems without events; 0 means to
	// wait for events.
	Poll time.Duration
	// Ignore reports whether to ignore a path: its events give no signal, and folders are not watched. Ignore
	// gets absolute paths below the root, and for the target of a link also the path without links. nil
	// ignores nothing.
	Ignore func(path string) bool
	// Skip reports whether to ignore a name in the tree, such as the name of a hidden file. The target of a
	// link with another name is not ignored. nil skips nothing.
	Skip func(name string) bool
	// Files are additional files, outside of the tree or ignored in the tree. Files may be missing.
	Files []string
	// Log gets a warning once for each path that can't be watched, and each event at debug level. nil
	// discards.
	Log *event.Log
}

// Reason is the reason to read the tree again, for logs. A signal with several reasons has one of them.
type Reason string

const (
	// Change means that an event has come.
	Change Reason = "change"
	// Rescan means that Options.Rescan is over.
	Rescan Reason = "rescan"
)

// Mode is how a Watcher learns of changes.
type Mode string

const (
	// Events means that the system reports events of the whole tree.
	Events Mode = "events"
	// Polling means that the Watcher polls the whole tree.
	Polling Mode = "polling"
	// Partial means that the system reports no events of a part of the tree. Only rescans find changes there.
	Partial Mode = "partial"
)

// Mode returns how the Watcher learns of changes. Mode is safe for concurrent use.
func (w *Watcher) Mode() Mode { return *w.mode.Load() }

// refreshMode sets the Mode.
func (w *Watcher) refreshMode() {
	m := Events
	switch {
	case w.tree.polled():
		m = Polling
	case len(w.trouble) > 0:
		m = Partial
	}
	w.mode.Store(&m)
}

// Watcher watches a tree. New starts watching, Run turns events into signals.
type Watcher struct {
	tree   *tree
	burst  *debouncer
	rescan rescan
	poll   time.Duration // interval for a polled tree
	file   string        // the watched file; empty if the root is a folder
	log    *event.Log
	git    *git
	// lone is the file that the last event created or wrote; empty if the last event concerns another change or
	// several paths. unfinished fires when finish has to check again whether the file is complete.
	lone       string
	unfinished *time.Timer
	reason     Reason // of the burst
	signals    chan Reason
	unread     unread                   // changes for the next Read
	counted    atomic.Uint64            // number of events
	links      atomic.Pointer[[]string] // links to and in the tree
	mode       atomic.Pointer[Mode]
	read       string // the mark before the last call of read

	mu    sync.Mutex
	files []string // the last files passed to Also
	also  chan struct{}

	// Errors by text: known from the previous look at the whole tree, trouble since then. New errors are
	// logged.
	known, trouble map[string]bool
}

// New watches root: a directory with everything below it, or a single file by its directory. Read the tree
// after New, so that no change is missed. Call Run, which frees the resources of New. If ctx ends, New returns
// the error of ctx.
func New(ctx context.Context, root string, o Options) (*Watcher, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &Watcher{
		burst:   newDebouncer(cmp.Or(o.QuietPeriod, 100*time.Millisecond), cmp.Or(o.MaxDelay, 2*time.Second)),
		rescan:  newRescan(cmp.Or(o.Rescan, 30*time.Second)),
		poll:    cmp.Or(o.Poll, 2*time.Second),
		log:     o.Log,
		signals: make(chan Reason, 1),
		also:    make(chan struct{}, 1),
		trouble: map[string]bool{},
	}
	w.unfinished = time.NewTimer(0)
	w.unfinished.Stop()
	w.git = &git{log: w.log}
	w.unread.addAll()
	w.tree = &tree{root: root, always: o.Poll > 0, ignore: o.Ignore, skip: o.Skip, warn: w.warn, log: o.Log, names: maxNames}
	if !info.IsDir() {
		w.tree.root, w.tree.flat, w.file = filepath.Dir(root), true, root
	}
	if w.files, err = w.absolute(o.Files); err != nil {
		return nil, err
	}
	w.tree.files = w.files
	if err := w.tree.rewatch(ctx); err != nil {
		w.tree.close()
		return nil, err
	}
	w.refreshMark()
	w.refreshMode()
	return w, nil
}

// Signals returns the channel of signals. Unreceived signals merge into one. Run closes the channel when it
// returns.
func (w *Watcher) Signals() <-chan Reason { return w.signals }

// Also replaces Options.Files. Also is safe for concurrent use. A changed list gives a signal, because a file
// may have changed before it was watched.
func (w *Watcher) Also(files ...string) error {
	files, err := w.absolute(files)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(files, w.files) {
		return nil
	}
	w.files = files
	select {
	case w.also <- struct{}{}:
	default:
	}
	return nil
}

// absolute returns the absolute paths of the files and of w.file, sorted and unique.
func (w *Watcher) absolute(files []string) ([]string, error) {
	var list []string
	if w.file != "" {
		list = append(list, w.file)
	}
	for _, f := range files {
		abs, err := filepath.Abs(f)
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		list = append(list, abs)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Run sends signals until ctx ends; no change of the tree ends Run. Run must be called once, and leaves no
// goroutine and no open file behind.
func (w *Watcher) Run(ctx context.Context) {
	defer close(w.signals)
	defer w.tree.close()
	w.rescan.begin()
	defer w.rescan.timer.Stop()
	defer w.unfinished.Stop()
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	for {
		events, errs := w.tree.channels()
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			w.handle(ctx, event)
		case err := <-errs:
			w.handleError(ctx, err)
		case <-w.also:
			w.takeFiles(ctx)
		case <-poll.C:
			w.checkPeriodically(ctx)
		case <-w.unfinished.C:
			if w.burst.running() {
				w.finish()
			}
		case <-w.burst.fire():
			if w.settled(ctx) {
				w.burst.end()
				w.refreshMark()
				w.signal(w.reason)
			}
		case <-w.rescan.idle:
			w.rescan.foundNothing()
		case <-w.rescan.timer.C:
			w.rescan.begin()
			w.look(ctx)
		}
	}
}

// look creates all watches again, and begins or prolongs a burst. The tree may be half written, and the event
// for that may have got lost with the old watches, for example when an editor moves a file away and then writes
// the file again.
func (w *Watcher) look(ctx context.Context) {
	if !w.burst.running() {
		w.reason = Rescan
	}
	w.rewatch(ctx)
	w.burst.event("")
}

// signal sends a signal, unless one is waiting for the receiver.
func (w *Watcher) signal(r Reason) {
	select {
	case w.signals <- r:
	default:
	}
}

// settled reports whether the burst ends with this firing. If not, settled makes the burst fire again.
func (w *Watcher) settled(ctx context.Context) bool {
	if !w.burst.overdue() && (w.late(ctx) || w.burst.held()) {
		return false
	}
	if w.git.busy() {
		w.burst.end() // a new burst, to check the lock again
		w.burst.event("")
		return false
	}
	// Only this look prolongs the burst of a polled tree. Look even if overdue: a change that the look finds
	// needs no later signal.
	overdue := w.burst.overdue()
	return !(w.tree.polled() && w.pollAgain(ctx)) || overdue
}

// late handles an event that was waiting when the burst fired, as on a busy machine, and makes the burst fire
// again. late reports whether an event was waiting.
func (w *Watcher) late(ctx context.Context) bool {
	events, _ := w.tree.channels()
	select {
	case event := <-events:
		w.burst.again()
		w.handle(ctx, event)
		return true
	default:
		return false
	}
}

func (w *Watcher) handle(ctx context.Context, e fsnotify.Event) {
	if filepath.Base(e.Name) == gitdir.Name && e.Has(fsnotify.Create) { // a clone begins
		w.tree.gits[e.Name] = true
		w.git.setGitDirs(w.tree.gits)
	}
	paths := w.tree.locate(e.Name)
	if e.Op == fsnotify.Chmod {
		paths = slices.DeleteFunc(paths, func(p string) bool { return !w.tree.accessTurned(p) })
	}
	if e.Op != fsnotify.Write {
		w.refresh(ctx, paths)
	}
	for _, path := range paths {
		w.count(path, e.Op.String())
	}
	if len(paths) > 0 {
		w.lone = ""
	}
	// No other path depends on this name.
	if path, ok := w.tree.reached(e.Name); ok && slices.Equal(paths, []string{path}) && (e.Has(fsnotify.Create) || e.Has(fsnotify.Write)) {
		w.lone = path
		w.finish()
	}
}

// finish tells the burst that the change of the lone file is complete. If the file is still open for writing,
// finish checks again soon. An empty file is about to be written.
func (w *Watcher) finish() {
	info, err := os.Lstat(w.lone)
	if w.lone == "" || err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return
	}
	switch open, known := openForWriting(w.lone); {
	case !known:
	case open:
		w.unfinished.Reset(settling)
	default:
		w.burst.finish(w.lone)
	}
}

func (w *Watcher) refresh(ctx context.Context, paths []string) {
	if slices.Contains(paths, w.tree.root) {
		w.rewatch(ctx)
		return
	}
	for _, path := range paths {
		if !w.tree.polled() { // refresh may switch to polling
			w.check(ctx, w.tree.refresh(ctx, path))
		}
	}
}

func (w *Watcher) count(path, op string) {
	w.unread.add(path)
	w.counted.Add(1) // after add: a reader that sees the count also finds the path
	w.log.Write(event.PathChanged{Path: path, Op: op})
	w.change(path)
}

// change begins or prolongs a burst. path is the changed path; empty if unknown.
func (w *Watcher) change(path string) {
	w.reason = Change
	w.burst.event(path)
}

func (w *Watcher) handleError(ctx context.Context, err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		w.check(ctx, fmt.Errorf("watch %s: %w", w.tree.root, explain(err)))
		return
	}
	w.rewatch(ctx) // new folders may be among the dropped events
	w.log.Write(event.EventsDropped{})
	w.counted.Add(1)
	w.change("")
}

func (w *Watcher) takeFiles(ctx context.Context) {
	w.mu.Lock()
	w.tree.files = w.files
	w.mu.Unlock()
	w.rewatch(ctx)
	w.change("")
}

// checkPeriodically finds changes without an event: all changes in a polled tree, and another folder at root
// after a mount, an unmount or a move of a folder above.
func (w *Watcher) checkPeriodically(ctx context.Context) {
	switch {
	case w.burst.running(): // the end of the burst looks
	case w.tree.polled():
		w.pollAgain(ctx)
	case w.tree.turned():
		w.rewatch(ctx)
		w.count(w.tree.root, "TURNED")
	}
}

// rewatch creates all watches again. Events on their way get lost with the old watches.
func (w *Watcher) rewatch(ctx context.Context) {
	w.scan(ctx, w.tree.rewatch)
	w.unread.addAll()
}

// refreshMark stores the git folders and the links for mark.
func (w *Watcher) refreshMark() {
	w.git.setGitDirs(w.tree.gits)
	links := slices.Sorted(maps.Keys(w.tree.watchpoints))
	w.links.Store(&links)
}

// pollAgain polls the tree and reports whether it has changed.
func (w *Watcher) pollAgain(ctx context.Context) bool { return w.scan(ctx, w.tree.poll) }

// scan looks at the whole tree, and counts the changes if the tree stays polled. scan logs an error only if
// the last scan didn't have it: the root may be missing for days, with a rescan every few seconds.
func (w *Watcher) scan(ctx context.Context, look func(context.Context) error) (changed bool) {
	polled, before := w.tree.polled(), w.tree.stamps
	w.known, w.trouble = w.trouble, map[string]bool{}
	w.check(ctx, look(ctx))
	w.refreshMark()
	if len(w.known) > 0 && len(w.trouble) == 0 {
		w.log.Write(event.WatchComplete{Root: w.tree.root})
	}
	if !polled || !w.tree.polled() {
		return false
	}
	paths := differences(before, w.tree.stamps)
	for _, path := range paths {
		w.count(path, "POLL")
	}
	return len(paths) > 0
}

// check handles an error of watching: a limit of the system switches the tree to polling.
func (w *Watcher) check(ctx context.Context, err error) {
	defer w.refreshMode()
	if isLimit(err) {
		err = w.tree.fallBack(ctx, err)
		w.unread.addAll() // queued events are lost
		w.change("")
	}
	if err != nil && ctx.Err() == nil {
		w.warn(err)
	}
}

func (w *Watcher) warn(err error) {
	text := err.Error()
	said := w.known[text] || w.trouble[text]
	w.trouble[text] = true
	w.refreshMode()
	if !said {
		if isLimit(err) {
			w.log.Write(event.WatchPolling{Error: err, Rescan: w.rescan.every, Poll: w.poll})
		} else {
			w.log.Write(event.WatchPartial{Error: err, Rescan: w.rescan.every})
		}
	}
}
