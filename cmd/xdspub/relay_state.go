package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// stateDirs are the directories of the aggregates of a relay, below the directory of --state. An aggregate whose node
// had a directory before, also in an earlier process, begins with the last valid snapshot in this directory.
type stateDirs struct {
	dir  string // empty without --state
	most int    // the number of directories that stay while no aggregate uses them

	mu    sync.Mutex
	inUse map[string]chan struct{} // by the key of the aggregate; each closes when the directory is free
}

func newStateDirs(state string, most int) *stateDirs {
	s := &stateDirs{most: most, inUse: make(map[string]chan struct{})}
	if state != "" {
		s.dir = filepath.Join(state, "aggregates")
	}
	return s
}

// enter returns the directory of an aggregate. enter waits until no earlier aggregate of the same node uses the
// directory. Without --state, enter returns "". enter removes no directory: clients can invent nodes while the control
// plane is gone, and must not remove the snapshots of other clients.
func (s *stateDirs) enter(ctx context.Context, key string) (dir string, leave func() error, err error) {
	if s.dir == "" {
		return "", func() error { return nil }, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.inUse[key] != nil {
		free := s.inUse[key]
		s.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
	}
	s.inUse[key] = make(chan struct{})
	if err := s.inRoot(func(root *os.Root) error { return use(root, key) }); err != nil {
		s.free(key)
		return "", nil, err
	}
	return filepath.Join(s.dir, key), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer s.free(key)
		return s.inRoot(func(root *os.Root) error { return s.leave(root, key) })
	}, nil
}

// free frees the directory of an aggregate. The caller holds mu.
func (s *stateDirs) free(key string) {
	close(s.inUse[key])
	delete(s.inUse, key)
}

// inRoot calls do with the directory that has the directories of the aggregates.
func (s *stateDirs) inRoot(do func(*os.Root) error) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// use marks a directory as the most recently used one.
func use(root *os.Root, key string) error {
	if err := root.Mkdir(key, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	now := time.Now()
	return root.Chtimes(key, now, now)
}

// isState matches the names of the directories.
var isState = regexp.MustCompile(`^[0-9a-f]{32}$`)

// leave removes the directory of an aggregate that has published nothing. Otherwise leave marks the directory as the
// most recently used one. If more than most directories are not in use, leave removes the least recently used ones.
func (s *stateDirs) leave(root *os.Root, key string) error {
	if list, err := fs.ReadDir(root.FS(), path.Join(key, ".xdspub/history")); len(list) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return root.RemoveAll(key)
	}
	if err := use(root, key); err != nil {
		return err
	}
	all, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return !e.IsDir() || !isState.MatchString(e.Name()) })
	free := slices.DeleteFunc(all, func(e fs.DirEntry) bool { return s.inUse[e.Name()] != nil })
	more := len(free) + 1 - s.most // with the directory that becomes free
	slices.SortFunc(free, func(a, b fs.DirEntry) int { return used(a).Compare(used(b)) })
	for _, e := range free[:max(0, min(more, len(free)))] {
		if err := root.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// used returns the time of the last use of a directory.
func used(e fs.DirEntry) time.Time {
	info, err := e.Info()
	if err != nil { // removed meanwhile
		return time.Time{}
	}
	return info.ModTime()
}
