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

// Options tune a Watcher; the zero value is good.
type Options struct {
	// QuietPeriod is how long the tree must be quiet before a burst of events
	// becomes a signal. 0 is 100ms. It is shorter after a change of one file that is
	// known to be whole.
	QuietPeriod time.Duration
	// MaxDelay is the longest that a burst may put off its signal. 0 is 2s.
	MaxDelay time.Duration
	// Rescan is how often all watches are made again, with a signal after it; it is less often
	// where that costs much and finds nothing (Watcher.FoundNothing).
	// 0 is 30s; below 0 is never, and then what is lost stays lost.
	Rescan time.Duration
	// Poll is how often to look for changes instead of waiting for events, on
	// file systems that have none. 0 is to wait for events.
	Poll time.Duration
	// Ignore tells which paths don't count: their events give no signal, and
	// folders are not watched. It gets absolute paths below the root, and what
	// a link leads to also as the path without links. nil ignores nothing.
	Ignore func(path string) bool
	// Skip tells which names in the tree don't count, such as those of hidden
	// files. What a link with another name leads to does. nil skips nothing.
	Skip func(name string) bool
	// Files are files outside of the tree, or ignored in it, that count too.
	// They may be missing.
	Files []string
	// Log gets a warning once when something can't be watched, and each counted
	// event at debug level. nil discards.
	Log *event.Log
}

// Reason says why to read the tree again. It is for logs: one signal can have several reasons,
// and has one of them.
type Reason string

const (
	// Change is for events.
	Change Reason = "change"
	// Rescan is for Options.Rescan.
	Rescan Reason = "rescan"
)

// Watcher watches one tree. New starts watching, Run turns events into signals.
type Watcher struct {
	tree   *tree
	burst  *debouncer
	rescan rescan
	poll   time.Duration // how often a polled tree is looked at
	file   string        // what is wanted, if it is no folder
	log    *event.Log
	git    *git
	// lone is the file that the last event is about, if it is about one alone; unfinished
	// is when to look again whether it is whole.
	lone       string
	unfinished *time.Timer
	reason     Reason // of the burst
	signals    chan Reason
	unread     unread                   // changes, for the next Read
	counted    atomic.Uint64            // events that counted
	links      atomic.Pointer[[]string] // that lead into the tree, and in it
	read       string                   // the mark before the last Read read the tree

	mu    sync.Mutex
	files []string // what Also asked for last
	also  chan struct{}

	// What can't be watched, by error text: found by the previous look at the
	// whole tree, and found since. Each is logged when it is new.
	known, trouble map[string]bool
}

// New watches root: a directory with all below it, or a file's directory without
// what is below. From here on nothing is missed, so read the tree after New and
// not before it. Run, which must be called, frees what New takes. Where ctx ends, New
// looks no further, and returns its error.
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
	w.tree = &tree{root: root, always: o.Poll > 0, ignore: o.Ignore, skip: o.Skip, warn: w.warn, names: maxNames}
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
	return w, nil
}

// Signals returns the channel of the signals. Signals that are not received become one. The
// channel is closed when Run returns.
func (w *Watcher) Signals() <-chan Reason { return w.signals }

// Also replaces Options.Files, at any time and from any goroutine. Another list than
// before gives a signal: a file may have changed since its name was learned.
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

// absolute gives a list that can be compared: sorted, each once.
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

// Run sends signals until ctx ends; nothing that happens to the tree ends it. It
// must be called once, and leaves no goroutine and no open file behind.
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

// look makes all watches again, and begins a burst or prolongs the one that is running. The
// tree may be half written, and the event that says so may have gone with the old watches: an
// editor moves a file away and writes it anew.
func (w *Watcher) look(ctx context.Context) {
	if !w.burst.running() {
		w.reason = Rescan
	}
	w.rewatch(ctx)
	w.burst.event("")
}

// signal leaves an unfetched signal as it is: its receiver has yet to look.
func (w *Watcher) signal(r Reason) {
	select {
	case w.signals <- r:
	default:
	}
}

// settled reports whether the burst that fires is at its end. If not, it goes on.
func (w *Watcher) settled(ctx context.Context) bool {
	if !w.burst.overdue() && (w.late(ctx) || w.burst.held()) {
		return false
	}
	if w.git.busy() {
		w.burst.end() // from here a new one, so that the lock is asked for again
		w.burst.event("")
		return false
	}
	// Nothing else prolongs the burst of a polled tree. The look comes in any
	// case: what it finds now needs no signal later.
	overdue := w.burst.overdue()
	return !(w.tree.polled() && w.pollAgain(ctx)) || overdue
}

// late takes up an event that is there already when the burst fires, as on a machine that is
// busy: the burst fires again after it. It reports whether there was one.
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
	// On whose name nothing else depends.
	if path, ok := w.tree.reached(e.Name); ok && slices.Equal(paths, []string{path}) && (e.Has(fsnotify.Create) || e.Has(fsnotify.Write)) {
		w.lone = path
		w.finish()
	}
}

// finish tells the burst that the change of the lone file is whole. Where the file is still
// open for writing it asks again soon. What is empty is about to be written.
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
		if !w.tree.polled() { // which it may become on the way
			w.check(ctx, w.tree.refresh(ctx, path))
		}
	}
}

func (w *Watcher) count(path, op string) {
	w.unread.add(path)
	w.counted.Add(1) // after that: who sees it finds the path
	w.log.Write(event.PathChanged{Path: path, Op: op})
	w.change(path)
}

// change begins or prolongs a burst. path is what changed; empty where that is not known.
func (w *Watcher) change(path string) {
	w.reason = Change
	w.burst.event(path)
}

func (w *Watcher) handleError(ctx context.Context, err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		w.check(ctx, fmt.Errorf("watch %s: %w", w.tree.root, explain(err)))
		return
	}
	w.rewatch(ctx) // new folders may be among what was dropped
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

// checkPeriodically finds what causes no event: every change in a polled tree, and a root
// that became another folder, because a file system was mounted or unmounted there, or
// a folder above it moved.
func (w *Watcher) checkPeriodically(ctx context.Context) {
	switch {
	case w.burst.running(): // its end has a look
	case w.tree.polled():
		w.pollAgain(ctx)
	case w.tree.turned():
		w.rewatch(ctx)
		w.count(w.tree.root, "TURNED")
	}
}

// rewatch makes all watches again. Events that were on their way go with the old ones.
func (w *Watcher) rewatch(ctx context.Context) {
	w.scan(ctx, w.tree.rewatch)
	w.unread.addAll()
}

// refreshMark stores the git directories and the links by which mark tells Read that the
// tree changed while it was read.
func (w *Watcher) refreshMark() {
	w.git.setGitDirs(w.tree.gits)
	links := slices.Sorted(maps.Keys(w.tree.watchpoints))
	w.links.Store(&links)
}

// pollAgain looks at a polled tree and reports whether it changed since the last look.
func (w *Watcher) pollAgain(ctx context.Context) bool { return w.scan(ctx, w.tree.poll) }

// scan looks at the whole tree, and counts what changed if it stays polled. It logs an
// error only when the last scan had another one: the root may be missing for days, with a
// rescan every few seconds.
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

// check takes up an error of watching: a limit of the system makes the tree polled.
func (w *Watcher) check(ctx context.Context, err error) {
	if isLimit(err) {
		err = w.tree.fallBack(ctx, err)
		w.unread.addAll() // for what was still queued
		w.change("")
	}
	if err != nil && ctx.Err() == nil {
		w.warn(err)
	}
}

func (w *Watcher) warn(err error) {
	text := err.Error()
	if !w.known[text] && !w.trouble[text] {
		if isLimit(err) {
			w.log.Write(event.WatchPolling{Error: err, Rescan: w.rescan.every, Poll: w.poll})
		} else {
			w.log.Write(event.WatchPartial{Error: err, Rescan: w.rescan.every})
		}
	}
	w.trouble[text] = true
}
