package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// tree is the set of watched folders.
//
// fsnotify gets resolved paths only. It files watches by path, but the kernel by
// inode: a folder that was added under two names would lose both watches when
// one of them goes.
type tree struct {
	root   string // absolute, may be a link
	flat   bool   // no folders below root
	ignore func(path string) bool
	warn   func(error)

	fsw    *fsnotify.Watcher // nil when none could be made
	real   string            // root, resolved when it was last there
	byReal map[string]string // resolved path → path as reached from root
	byPath map[string]string // the other way
}

// channels gives nil channels, which never deliver, without a watcher.
func (t *tree) channels() (<-chan fsnotify.Event, <-chan error) {
	if t.fsw == nil {
		return nil, nil
	}
	return t.fsw.Events, t.fsw.Errors
}

func (t *tree) close() {
	if t.fsw != nil {
		t.fsw.Close()
		t.fsw = nil
	}
}

// rewatch drops all watches and makes them anew: no state can then be stale.
// Events that were still queued go with them, so a signal must follow. The old
// watcher is closed first, because a user has few inotify instances, and Envoy,
// which may run as the same one, aborts when it gets none.
func (t *tree) rewatch() error {
	t.close()
	t.byReal, t.byPath = map[string]string{}, map[string]string{}
	fsw, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", t.root, explain(err))
	}
	t.fsw = fsw

	// The parent tells when root goes and comes back; where it can't be watched,
	// the rescan does. It comes first, or else root could come in between.
	dir := filepath.Dir(t.root)
	parent, err := filepath.EvalSymlinks(dir)
	watched := err == nil && fsw.Add(parent) == nil
	// Stat's error reads the same however much of the path is missing.
	_, missing := os.Stat(t.root)
	real, _ := filepath.EvalSymlinks(t.root)
	if watched && parent != real {
		t.byReal[parent], t.byPath[dir] = dir, parent
	}
	if missing != nil {
		return fmt.Errorf("watch: %w", missing)
	}
	t.real = real
	if err := t.follow(t.root); err != nil {
		return err
	}
	if _, ok := t.byPath[t.root]; !ok {
		return fmt.Errorf("watch %s: %w", t.root, syscall.ENOTDIR)
	}
	return nil
}

// refresh brings the watches at path and below up to date, whatever is there now.
// What is known under that name goes first: after a rename it belongs to another
// folder.
func (t *tree) refresh(path string) error {
	if _, ok := t.byPath[path]; ok { // else nothing below it is watched either
		for p, real := range t.byPath {
			if within(p, path) {
				_ = t.fsw.Remove(real) // an error says that it is gone already
				delete(t.byPath, p)
				delete(t.byReal, real)
			}
		}
	}
	if t.flat {
		return nil
	}
	return t.follow(path)
}

// follow watches the folder at path, if it is one, and all below it. Links come
// after the folders that are really there, so that a folder inside the tree is
// known by its own name and does not go when a link to it does.
func (t *tree) follow(path string) error {
	for todo := []string{path}; len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue // not a folder, gone again, or a dangling link
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		// A link to a folder that holds root is a loop on a grand scale.
		if path != t.root && (within(t.real, real) || t.ignored(real)) {
			continue
		}
		links, err := t.walk(path, real)
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
func (t *tree) walk(path, real string) (links []string, err error) {
	if _, ok := t.byReal[real]; ok || t.ignored(path) {
		return nil, nil
	}
	// Watch first, list second: what comes in between is seen twice, not never.
	if err := t.fsw.Add(real); err != nil {
		return nil, t.judge(path, err)
	}
	t.byReal[real], t.byPath[path] = path, real
	if t.flat {
		return nil, nil
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil, t.judge(path, err)
	}
	for _, e := range entries {
		sub := filepath.Join(path, e.Name())
		switch {
		case e.IsDir():
			more, err := t.walk(sub, filepath.Join(real, e.Name()))
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

// judge says whether err, met at path, ends the walk: a limit of the system does,
// and so does a root that can't be watched. One folder does not.
func (t *tree) judge(path string, err error) error {
	switch limit := explain(err); {
	case errors.Is(err, fs.ErrNotExist): // gone again
		return nil
	case limit != err: // without path: it is one trouble, not one for each folder
		return fmt.Errorf("watch %s: %w", t.root, limit)
	case path == t.root:
		return fmt.Errorf("watch %s: %w", path, err)
	}
	t.warn(fmt.Errorf("watch %s: %w", path, err))
	return nil
}

// locate turns the name in an event into a path as reached from root. It is not
// ok for what only stands next to root.
func (t *tree) locate(name string) (path string, ok bool) {
	if path, ok := t.byReal[name]; ok {
		return path, true
	}
	dir, ok := t.byReal[filepath.Dir(name)]
	path = filepath.Join(dir, filepath.Base(name))
	return path, ok && within(path, t.root)
}

// ignored does not ask about root: who names it wants it, hidden or not.
func (t *tree) ignored(path string) bool {
	return t.ignore != nil && path != t.root && t.ignore(path)
}

// within tells whether path is dir or below it.
func within(path, dir string) bool {
	const sep = string(filepath.Separator)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, sep)+sep)
}

// explain adds the name of the limit to the errors that mean anything but what
// they say: "no space left on device" is not about the disk.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: raise the sysctl fs.inotify.max_user_watches", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: raise the sysctl fs.inotify.max_user_instances or the limit of open files", err)
	}
	return err
}
