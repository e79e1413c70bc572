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
	// patience is how long a lock is waited for. A checkout takes seconds; what
	// stands longer was left behind by a git that was killed.
	patience = 30 * time.Second

	// longest is how long locks are waited for that follow each other without a gap:
	// a rebase of many commits takes one after the other, and so can somebody who
	// wants nothing to be read.
	longest = 2 * time.Minute

	// lockPoll is how often Read asks for a lock while it stands.
	lockPoll = 100 * time.Millisecond
)

// git knows the work trees that the watched tree is a part of, or that are parts
// of it. A git command that changes the files of one holds its index.lock from
// before the first until after the last, and then renames it to index.
type git struct {
	log *event.Log

	mu   sync.Mutex
	dirs []string // those that hold the index
	seen map[string]lock
}

// lock is what there was at the place of a lock when it was looked for last.
type lock struct {
	at    time.Time   // of the look
	info  os.FileInfo // nil where there was none
	since time.Time
	first time.Time // when the first of those that follow each other was seen
	stale bool      // waited for in vain
}

// setGitDirs replaces the repositories whose locks count: those that these .git lead to.
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

// busy reports whether a git command is changing files. What it leaves behind when
// it is killed keeps nobody for ever.
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
		// An inode is soon used again; git writes to its lock at the end only.
		if l.info == nil || !os.SameFile(l.info, info) || !l.info.ModTime().Equal(info.ModTime()) {
			next := lock{info: info, since: l.born(now, info), first: now}
			if l.info != nil && now.Sub(l.since) < patience { // else that one was left behind
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

// born returns since when a lock exists that did not at the look l. Its file tells by a
// clock that somebody may have set since: it is no older than that look, where there was
// one, and from now on time is measured by a clock that nobody sets.
func (l lock) born(now time.Time, info os.FileInfo) time.Time {
	age := max(0, now.Sub(info.ModTime()))
	if !l.at.IsZero() {
		age = min(age, now.Sub(l.at))
	}
	return now.Add(-age)
}

// mark changes with each git command that changes files, also with one that was
// not seen at work.
func (g *git) mark() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for _, dir := range g.dirs {
		fmt.Fprintln(&b, stampOf(filepath.Join(dir, "index")))
	}
	return b.String()
}

// reads is how often Read calls its function at most on account of other changes
// than those of git and of links: a tree that never rests is read as it is.
const reads = 3

// Read calls read, which reads the tree, while no git command is changing it. Where the tree
// changes meanwhile, what was read may be half old and half new: then Read calls read again, once
// the tree is quiet or has not been quiet for long. After a checkout by git, or where a link was
// turned, it waits the longest, and tells that anything may have changed, since some events may
// still be on their way. Read does not call read once ctx has ended.
//
// Each change is told once: where read fails, it has to keep the Changes for the next time.
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
		if changes.All { // an event of what happened meanwhile may be on its way
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

// mark changes with all that replaces many files at once.
func (w *Watcher) mark() string {
	var b strings.Builder
	b.WriteString(w.git.mark())
	for _, path := range *w.links.Load() {
		if target, err := os.Readlink(path); err == nil { // else it is no link, but what one leads to
			fmt.Fprintln(&b, path, target)
		}
	}
	return b.String()
}

// quiet waits for a burst of changes to end, or for the deadline.
func (w *Watcher) quiet(ctx context.Context, deadline time.Time) {
	for counted := w.counted.Load(); ctx.Err() == nil; counted = w.counted.Load() {
		rest(ctx, min(w.burst.quiet, time.Until(deadline)))
		if w.counted.Load() == counted || !time.Now().Before(deadline) {
			return
		}
	}
}

// rest passes some time, or less where ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
