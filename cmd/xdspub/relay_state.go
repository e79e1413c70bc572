package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
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
	most int    // the number of directories that stay

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
// directory. If there are more than most directories, enter removes the least recently used ones. Without --state,
// enter returns "".
func (s *stateDirs) enter(ctx context.Context, key string) (dir string, leave func(), err error) {
	if s.dir == "" {
		return "", func() {}, nil
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
	if err := s.use(key); err != nil {
		s.leave(key)
		return "", nil, err
	}
	return filepath.Join(s.dir, key), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leave(key)
	}, nil
}

// leave frees the directory of an aggregate. The caller holds mu.
func (s *stateDirs) leave(key string) {
	close(s.inUse[key])
	delete(s.inUse, key)
}

// isState matches the names of the directories.
var isState = regexp.MustCompile(`^[0-9a-f]{32}$`)

// use marks a directory as the most recently used one. If there are more than most directories, use removes the least
// recently used ones that are not in use.
func (s *stateDirs) use(key string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir(key, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	now := time.Now()
	if err := root.Chtimes(key, now, now); err != nil {
		return err
	}
	all, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return !e.IsDir() || !isState.MatchString(e.Name()) })
	more := len(all) - s.most
	free := slices.DeleteFunc(all, func(e fs.DirEntry) bool { return s.inUse[e.Name()] != nil })
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
