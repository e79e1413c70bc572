package notify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
	"xdspub/source/gitdir"
)

type set map[string]bool

// tree is the set of watched folders.
//
// fsnotify gets resolved paths only: it knows watches by path, but the kernel by
// inode, and a folder that was added under two names would lose both watches when
// one of them goes.
type tree struct {
	root   string   // absolute, may be a link
	flat   bool     // no folders below root
	files  []string // that count too
	always bool     // never watched, only polled
	ignore func(path string) bool
	skip   func(name string) bool
	warn   func(error)
	names  int // that may be met in one look
	met    int // names, in this look

	fsw           *fsnotify.Watcher   // nil while the tree is polled
	errors        *errorQueue         // of fsw
	limit         error               // why it is polled, unless always
	info          fs.FileInfo         // root's; nil while it is missing
	real          string              // root, resolved
	byReal        map[string]string   // resolved path → path as reached from root
	byPath        map[string]string   // the other way
	watchpoints   map[string]set      // resolved path → paths that a rename there may lead elsewhere
	watchpointsOf map[string][]string // the other way
	denied        set                 // what can't be read, by path as reached from root
	gits          set                 // the .git in the tree and above it
	stamps        map[string]stamp    // of all that counts, in a polled tree
}

func (t *tree) polled() bool { return t.fsw == nil }

// channels gives nil channels, which never deliver, for a polled tree.
func (t *tree) channels() (<-chan fsnotify.Event, <-chan error) {
	if t.polled() {
		return nil, nil
	}
	return t.fsw.Events, t.errors.out
}

func (t *tree) close() {
	if t.fsw != nil {
		t.fsw.Close() // closes its channels
		t.errors.wait()
		t.fsw, t.errors = nil, nil
	}
}

// rewatch removes all watches and makes them again: no state can then be stale.
// Events that were still queued go with them, so a signal must follow. The old
// watcher is closed first, because a user has few inotify instances, and Envoy,
// which may run as the same one, aborts when it gets none.
func (t *tree) rewatch(ctx context.Context) error {
	t.close()
	t.limit = nil
	if t.always {
		return t.poll(ctx)
	}
	fsw, err := fsnotify.NewWatcher()
	if err != nil {
		if err = explain(err); !isLimit(err) {
			err = &limitError{err, "this system reports no file events"}
		}
		return t.fallBack(ctx, fmt.Errorf("watch %s: %w", t.root, err))
	}
	t.fsw, t.errors = fsw, newErrorQueue(fsw.Errors)
	if err = t.scan(ctx); isLimit(err) {
		return t.fallBack(ctx, err)
	}
	return err
}

// scan goes through the whole tree, to watch it or to take its stamps.
func (t *tree) scan(ctx context.Context) error {
	t.byReal, t.byPath = map[string]string{}, map[string]string{}
	t.watchpoints, t.watchpointsOf = map[string]set{}, map[string][]string{}
	t.denied, t.gits, t.stamps = set{}, set{}, map[string]stamp{}
	t.met = 0
	t.real = fspath.Resolve(t.root)
	// They come first, or else root could come in between.
	for _, path := range append([]string{t.root}, t.files...) {
		if err := t.setWatchpoints(path); err != nil {
			return err
		}
		t.note(path)
	}
	// Stat's error reads the same however much of the path is missing.
	info, missing := os.Stat(t.root)
	if t.info = info; missing != nil {
		t.info = nil
		return fmt.Errorf("watch: %w", missing)
	}
	if err := t.follow(ctx, t.root); err != nil {
		return err
	}
	switch _, ok := t.byPath[t.root]; {
	case ok:
		return nil
	case info.IsDir(): // it has gone since
		t.info = nil
		return fmt.Errorf("watch: %w", &fs.PathError{Op: "stat", Path: t.root, Err: syscall.ENOENT})
	}
	return fmt.Errorf("watch %s: %w", t.root, syscall.ENOTDIR)
}

// turned reports whether root is not the folder that was last scanned.
func (t *tree) turned() bool {
	info, err := os.Stat(t.root)
	if err != nil || t.info == nil {
		return (err == nil) != (t.info != nil)
	}
	return !os.SameFile(info, t.info)
}

// refresh brings the watches at path and below up to date, whatever is there now.
// What is known under that name goes first: after a rename it belongs to another
// folder.
func (t *tree) refresh(ctx context.Context, path string) error {
	t.met = 0
	if _, ok := t.byPath[path]; ok { // else nothing below it is watched either
		for p, real := range t.byPath {
			if fspath.Within(p, path) {
				_ = t.fsw.Remove(real) // an error says that it is gone already
				delete(t.byPath, p)
				delete(t.byReal, real)
			}
		}
		for p := range t.watchpointsOf {
			if fspath.Within(p, path) {
				t.dropWatchpoints(p)
			}
		}
		maps.DeleteFunc(t.denied, func(p string, _ bool) bool { return fspath.Within(p, path) })
	}
	t.note(path)
	t.dropWatchpoints(path)
	switch {
	case slices.Contains(t.files, path):
		return t.setWatchpoints(path)
	case t.flat:
		return nil
	}
	return t.follow(ctx, path)
}

// follow watches the folder at path, if it is one, and all below it. Links come
// after the folders that are really there, so that a folder inside the tree is
// known by its own name and does not go when a link to it does.
func (t *tree) follow(ctx context.Context, path string) error {
	for todo := []string{path}; len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := t.setWatchpoints(path); err != nil {
				return err
			}
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue // not a folder, gone again, or a dangling link
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		// A link to a folder that holds root is a loop on a grand scale.
		if path != t.root && (fspath.Within(t.real, real) || t.ignore != nil && t.ignore(real)) {
			continue
		}
		for _, git := range gitdir.Enclosing(real) {
			t.gits[git] = true
		}
		links, err := t.walk(ctx, path, real)
		if err != nil {
			return err
		}
		todo = append(todo, links...)
	}
	return nil
}

// walk watches the folder at path and those below it, and returns the links it
// met. A folder that is watched already, by whatever name, is a loop or a second
// link (which the rescan finds should the first one go). An error means that
// going on is of no use.
func (t *tree) walk(ctx context.Context, path, real string) (links []string, err error) {
	if _, ok := t.byReal[real]; ok || t.ignored(path) {
		return nil, nil
	}
	// Watch first, list second: what comes in between is seen twice, not never.
	if err := t.add(real); err != nil {
		return nil, t.judge(path, err)
	}
	t.byReal[real], t.byPath[path] = path, real
	if t.flat {
		return nil, nil
	}
	entries, err := t.list(ctx, path, real)
	if err != nil {
		return nil, t.judge(path, err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sub := filepath.Join(path, e.Name())
		t.noteEntry(sub, e)
		switch {
		case e.IsDir():
			more, err := t.walk(ctx, sub, filepath.Join(real, e.Name()))
			if err != nil {
				return nil, err
			}
			links = append(links, more...)
		case e.Type()&fs.ModeSymlink != 0:
			links = append(links, sub)
		}
	}
	return links, nil
}

// maxNames bounds the files and folders of a tree, those that don't count among them.
const maxNames = 2_000_000

var errTooManyNames = errors.New("the tree has too many files and folders")

// list returns what the folder at path holds and what counts.
func (t *tree) list(ctx context.Context, path, real string) ([]fs.DirEntry, error) {
	return safefile.List(ctx, real, func(names int) error {
		if t.met += names; t.met > t.names {
			return fmt.Errorf("%w: more than %d", errTooManyNames, t.names)
		}
		return nil
	}, func(e fs.DirEntry) bool {
		if e.Name() == gitdir.Name {
			t.gits[filepath.Join(real, gitdir.Name)] = true
		}
		return !t.ignored(filepath.Join(path, e.Name()))
	})
}

func (t *tree) add(real string) error {
	if t.polled() {
		return nil
	}
	return t.fsw.Add(real)
}

// note remembers about path what events don't tell: in a polled tree all, else
// whether it can be read.
func (t *tree) note(path string) {
	if t.polled() {
		t.stamps[path] = stampOf(path)
	} else if denied(path) {
		t.denied[path] = true
	} else {
		delete(t.denied, path)
	}
}

// noteEntry is note for what a folder holds. Of a file one question is enough, and there
// are many.
func (t *tree) noteEntry(path string, e fs.DirEntry) {
	if !t.polled() && e.Type().IsRegular() && unix.Access(path, unix.R_OK) == nil {
		delete(t.denied, path)
		return
	}
	t.note(path)
}

// accessTurned reports whether path can be read now, and could not before, or the
// reverse. All else that is an attribute does not count: scanners and backups
// change those all day, and content never changes so.
func (t *tree) accessTurned(path string) bool {
	before := t.denied[path]
	t.note(path)
	return t.denied[path] != before
}

// denied reports whether path is there and can't be read.
func denied(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	mode := uint32(unix.R_OK)
	if info.IsDir() {
		mode |= unix.X_OK
	}
	return unix.Access(path, mode) != nil
}

// judge says whether err, met at path, ends the walk: a limit does, and so does a root
// that can't be watched. One folder does not.
func (t *tree) judge(path string, err error) error {
	switch err = explain(err); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR) && path != t.root: // gone again
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errTooManyNames):
		return fmt.Errorf("watch %s: %w", t.root, err)
	case isLimit(err): // without path: it is one trouble, not one for each folder
		return fmt.Errorf("watch %s: %w", t.root, err)
	case path == t.root:
		return fmt.Errorf("watch %s: %w", path, err)
	}
	t.warn(fmt.Errorf("watch %s: %w", path, err))
	return nil
}

// locate turns the name in an event into the paths that it may concern: that as
// reached from root, and those whose way leads through there. There is none for
// what does not count.
func (t *tree) locate(name string) []string {
	var paths []string
	if path, ok := t.reached(name); ok {
		paths = append(paths, path)
	}
	paths = slices.AppendSeq(paths, maps.Keys(t.watchpoints[name]))
	slices.Sort(paths)
	return slices.Compact(paths)
}

// reached turns a name into the path as reached from root, if it is in the tree and counts. Of a
// flat tree, what stands beside the files does not.
func (t *tree) reached(name string) (path string, ok bool) {
	path, ok = t.byReal[name]
	if dir, in := t.byReal[filepath.Dir(name)]; !ok && in {
		path = filepath.Join(dir, filepath.Base(name))
		ok = !t.flat || slices.Contains(t.files, path)
	}
	return path, ok && !t.ignored(path)
}

// ignored does not ask about root: who names it wants it, hidden or not.
func (t *tree) ignored(path string) bool {
	if path == t.root {
		return false
	}
	return t.skip != nil && t.skip(filepath.Base(path)) || t.ignore != nil && t.ignore(path)
}
