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

	"xdspub/event"
	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
	"xdspub/source/gitdir"
)

type set map[string]bool

// tree is the set of watched folders.
//
// fsnotify gets only resolved paths. It identifies watches by path, but the kernel identifies them by inode:
// a folder added under two names would lose both watches with the removal of one name.
type tree struct {
	root   string   // absolute, may be a link
	flat   bool     // no folders below root
	files  []string // additional files
	always bool     // always polled
	ignore func(path string) bool
	skip   func(name string) bool
	warn   func(error)
	log    *event.Log // of panics
	names  int        // largest number of names in one look
	met    int        // names met so far in the current look

	fsw           *fsnotify.Watcher   // nil while the tree is polled
	errors        *errorQueue         // of fsw
	limit         error               // why the tree is polled, unless always
	info          fs.FileInfo         // root's; nil while it is missing
	real          string              // root, resolved
	byReal        map[string]string   // resolved path → path as reached from root
	byPath        map[string]string   // reverse of byReal
	watchpoints   map[string]set      // resolved path → paths that a rename of it may redirect
	watchpointsOf map[string][]string // reverse of watchpoints
	denied        set                 // unreadable paths, as reached from root
	gits          set                 // the .git in the tree and above it
	stamps        map[string]stamp    // of the whole tree, if polled
}

func (t *tree) polled() bool { return t.fsw == nil }

// channels returns the channels for events and errors; nil channels for a polled tree.
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

// rewatch removes and creates all watches, so that no state is stale. Queued events get lost, so a signal
// must follow. rewatch closes the old watcher first: a user has few inotify instances, and an Envoy of the
// same user aborts without them.
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
	t.fsw, t.errors = fsw, newErrorQueue(fsw.Errors, t.log)
	if err = t.scan(ctx); isLimit(err) {
		return t.fallBack(ctx, err)
	}
	return err
}

// scan walks the whole tree, to watch it or to take its stamps.
func (t *tree) scan(ctx context.Context) error {
	t.byReal, t.byPath = map[string]string{}, map[string]string{}
	t.watchpoints, t.watchpointsOf = map[string]set{}, map[string][]string{}
	t.denied, t.gits, t.stamps = set{}, set{}, map[string]stamp{}
	t.met = 0
	t.real = fspath.Resolve(t.root)
	// Set watchpoints first: otherwise the root could appear unnoticed before its watchpoint.
	for _, path := range append([]string{t.root}, t.files...) {
		if err := t.setWatchpoints(path); err != nil {
			return err
		}
		t.note(path)
	}
	// Stat returns the same error text for any missing part of the path.
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
	case info.IsDir(): // removed meanwhile
		t.info = nil
		return fmt.Errorf("watch: %w", &fs.PathError{Op: "stat", Path: t.root, Err: syscall.ENOENT})
	}
	return fmt.Errorf("watch %s: %w", t.root, syscall.ENOTDIR)
}

// turned reports whether root leads to another folder than at the last scan, has appeared or has gone.
func (t *tree) turned() bool {
	info, err := os.Stat(t.root)
	if err != nil || t.info == nil {
		return (err == nil) != (t.info != nil)
	}
	return !os.SameFile(info, t.info)
}

// refresh updates the watches at path and below. refresh first removes the known watches there, because after
// a rename they belong to another folder.
func (t *tree) refresh(ctx context.Context, path string) error {
	t.met = 0
	if _, ok := t.byPath[path]; ok { // otherwise no path below it is watched
		for p, real := range t.byPath {
			if fspath.Within(p, path) {
				_ = t.fsw.Remove(real) // an error means that the watch has ended
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

// follow watches the folder at path and all folders below. Links come after real folders: a folder inside the
// tree then keeps its own name, and its watch outlives a link to it.
func (t *tree) follow(ctx context.Context, path string) error {
	for todo := []string{path}; len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := t.setWatchpoints(path); err != nil {
				return err
			}
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue // a file, a removed path, or a dangling link
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		// A link to a folder above root is a loop.
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

// walk watches the folder at path and the folders below, and returns the links that it met. walk skips a folder
// that is already watched, because of a loop or a second link to the folder; if the first link is removed, the
// rescan finds the second. An error ends the scan.
func (t *tree) walk(ctx context.Context, path, real string) (links []string, err error) {
	if _, ok := t.byReal[real]; ok || t.ignored(path) {
		return nil, nil
	}
	// Watch before listing: a change in between is seen twice instead of never.
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

// maxNames is the largest number of files and folders in a tree, including ignored ones.
const maxNames = 2_000_000

var errTooManyNames = errors.New("the tree has too many files and folders")

// list returns the entries of the folder at path, whose resolved path is real, without ignored entries.
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

// note records the state of path that events don't report: the stamp in a polled tree, otherwise only whether
// path is readable.
func (t *tree) note(path string) {
	if t.polled() {
		t.stamps[path] = stampOf(path)
	} else if denied(path) {
		t.denied[path] = true
	} else {
		delete(t.denied, path)
	}
}

// noteEntry is note for an entry of a folder. For regular files, which are many, one system call suffices.
func (t *tree) noteEntry(path string, e fs.DirEntry) {
	if !t.polled() && e.Type().IsRegular() && unix.Access(path, unix.R_OK) == nil {
		delete(t.denied, path)
		return
	}
	t.note(path)
}

// accessTurned reports whether path has become readable or unreadable. Other attributes don't count: virus
// scanners and backups change them all day, without a change of content.
func (t *tree) accessTurned(path string) bool {
	before := t.denied[path]
	t.note(path)
	return t.denied[path] != before
}

// denied reports whether path exists and is unreadable.
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

// judge returns an error that ends the walk: a limit, the end of the context, or a root that can't be watched.
// judge returns nil for other errors, and warns of them unless path was removed meanwhile.
func (t *tree) judge(path string, err error) error {
	switch err = explain(err); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR) && path != t.root: // removed meanwhile
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errTooManyNames):
		return fmt.Errorf("watch %s: %w", t.root, err)
	case isLimit(err): // without path, to report the problem once
		return fmt.Errorf("watch %s: %w", t.root, err)
	case path == t.root:
		return fmt.Errorf("watch %s: %w", path, err)
	}
	t.warn(fmt.Errorf("watch %s: %w", path, err))
	return nil
}

// locate returns the paths that an event about a name may concern: the path of the name as reached from root,
// and the paths that lead through the name. locate returns nil if the event concerns no path of the tree.
func (t *tree) locate(name string) []string {
	var paths []string
	if path, ok := t.reached(name); ok {
		paths = append(paths, path)
	}
	paths = slices.AppendSeq(paths, maps.Keys(t.watchpoints[name]))
	slices.Sort(paths)
	return slices.Compact(paths)
}

// reached returns the path of a name as reached from root. ok is false if the name is outside the tree or
// ignored. In a flat tree, only the files have a path.
func (t *tree) reached(name string) (path string, ok bool) {
	path, ok = t.byReal[name]
	if dir, in := t.byReal[filepath.Dir(name)]; !ok && in {
		path = filepath.Join(dir, filepath.Base(name))
		ok = !t.flat || slices.Contains(t.files, path)
	}
	return path, ok && !t.ignored(path)
}

// ignored reports whether a path is ignored. The root is never ignored, even if hidden.
func (t *tree) ignored(path string) bool {
	if path == t.root {
		return false
	}
	return t.skip != nil && t.skip(filepath.Base(path)) || t.ignore != nil && t.ignore(path)
}
