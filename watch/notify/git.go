package notify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"xdspub/event"
	"xdspub/source/gitdir"
)

const (
	// patience is how long to wait for a lock. A checkout takes seconds; a killed git has left an older lock
	// behind.
	patience = 30 * time.Second

	// longest is how long to wait while locks follow each other. A rebase of many commits takes one lock after
	// another, and a hostile process could do the same to prevent reads.
	longest = 2 * time.Minute

	// lockPoll is the interval at which Read checks a lock.
	lockPoll = 100 * time.Millisecond
)

// git watches the locks of the git work trees that contain the tree or lie in it. A git command creates
// index.lock before it changes the first file, and renames index.lock to index after it has changed the last
// file.
type git struct {
	log *event.Log

	mu   sync.Mutex
	dirs []string // folders with the index
	seen map[string]lock
}

// lock is the last known state of a lock file.
type lock struct {
	at    time.Time   // time of the look
	info  os.FileInfo // nil without a lock file
	since time.Time
	first time.Time // start of the series of locks
	stale bool      // older than patience or longest
}

// setGitDirs makes g watch the work trees whose .git have the paths gits.
func (g *git) setGitDirs(gits set) {
	var dirs []string
	for path := range gits {
		if dir, ok := gitdir.Of(path); ok {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dirs = slices.Compact(dirs)
}

// busy reports whether a git command is changing files. busy ignores a lock that a killed git left behind.
func (g *git) busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	busy, now := false, time.Now()
	seen := map[string]lock{}
	for _, dir := range g.dirs {
		path := filepath.Join(dir, "index.lock")
		info, err := os.Lstat(path)
		if err != nil {
			seen[path] = lock{at: now}
			continue
		}
		l := g.seen[path]
		// Inode numbers are reused soon. git writes to its lock only at the end.
		if l.info == nil || !os.SameFile(l.info, info) || !l.info.ModTime().Equal(info.ModTime()) {
			next := lock{info: info, since: l.born(now, info), first: now}
			if l.info != nil && now.Sub(l.since) < patience { // otherwise the old lock was left behind
				next.first, next.stale = l.first, l.stale
			}
			l = next
		}
		switch {
		case now.Sub(l.since) < patience && now.Sub(l.first) < longest:
			busy = true
		case !l.stale:
			l.stale = true
			g.log.Write(event.GitLockStale{File: path, Since: l.since})
		}
		l.at = now
		seen[path] = l
	}
	g.seen = seen
	return busy
}

// born returns the creation time of a lock that is new since the look l. The file's time may be wrong after a
// change of the clock, so born doesn't return a time before l. Later durations use the monotonic clock.
func (l lock) born(now time.Time, info os.FileInfo) time.Time {
	age := max(0, now.Sub(info.ModTime()))
	if !l.at.IsZero() {
		age = min(age, now.Sub(l.at))
	}
	return now.Add(-age)
}

// mark returns a text that differs after each git command that changes files, even if busy didn't see the
// command.
func (g *git) mark() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for _, dir := range g.dirs {
		fmt.Fprintln(&b, stampOf(filepath.Join(dir, "index")))
	}
	return b.String()
}

// reads is the largest number of times that Read calls its function, not counting changes by git and of
// links. A tree that never rests is read in its current state.
const reads = 3

// Read calls read, which reads the tree, while no git command is changing the tree. If the tree changes during
// read, the result may mix old and new files. Read then calls read again when the tree is quiet, or after the
// longest wait. After a checkout by git or a change of a link, Read waits longer, and passes All, because some
// events may still be on their way. Read does not call read after ctx has ended. Calls of Read must not
// overlap.
//
// Read passes each change once. A read that fails must keep its Changes, and add the next Changes to them.
func (w *Watcher) Read(ctx context.Context, read func(Changes)) {
	start := time.Now()
	for n := 1; ; n++ {
		for w.git.busy() && ctx.Err() == nil {
			rest(ctx, lockPoll)
		}
		if ctx.Err() != nil {
			return
		}
		counted, mark := w.counted.Load(), w.mark()
		changes := w.unread.take()
		if mark != w.read {
			changes = Changes{All: true}
		}
		w.read = mark
		read(changes)
		if changes.All { // events from during the read may be on their way
			rest(ctx, settling)
		}
		replaced, changed := w.git.busy() || w.mark() != mark, w.counted.Load() != counted
		if replaced && time.Since(start) > patience || !replaced && (!changed || n >= reads) {
			return
		}
		if replaced {
			w.unread.addAll()
		}
		if changed {
			w.quiet(ctx, start.Add(w.burst.maxDelay))
		}
	}
}

// mark returns a text that differs when git or a link may have replaced many files at once.
func (w *Watcher) mark() string {
	var b strings.Builder
	b.WriteString(w.git.mark())
	for _, path := range *w.links.Load() {
		if target, err := os.Readlink(path); err == nil { // skip a path without a link, such as a link's target
			fmt.Fprintln(&b, path, target)
		}
	}
	return b.String()
}

// quiet waits for the end of a burst, or for the deadline.
func (w *Watcher) quiet(ctx context.Context, deadline time.Time) {
	for counted := w.counted.Load(); ctx.Err() == nil; counted = w.counted.Load() {
		rest(ctx, min(w.burst.quiet, time.Until(deadline)))
		if w.counted.Load() == counted || !time.Now().Before(deadline) {
			return
		}
	}
}

// rest sleeps, until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
