package notify

import (
	"maps"
	"slices"
	"sync"
)

// Changes are the paths that changed since the tree was read last.
type Changes struct {
	// All says that anything may have changed. There are no Paths then.
	All bool
	// Paths are absolute, as reached from the root, sorted. Of a folder that came, went or
	// was replaced, what is in it may have changed too.
	Paths []string
}

// maxChanged bounds the paths that are told one by one: to look at the whole tree costs
// little more then, and nobody can make the list long.
const maxChanged = 1000

// And returns the changes of both: all of their paths, or All where one of them has All or the
// paths are too many to keep.
func (c Changes) And(other Changes) Changes {
	paths := append(slices.Clip(c.Paths), other.Paths...)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if c.All || other.All || len(paths) > maxChanged {
		return Changes{All: true}
	}
	return Changes{Paths: paths}
}

// unread collects paths that changed, on one goroutine, until they are fetched on another.
type unread struct {
	mu    sync.Mutex
	all   bool
	paths set
}

func (u *unread) add(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all {
		return
	}
	if u.paths == nil {
		u.paths = set{}
	}
	u.paths[path] = true
	if len(u.paths) > maxChanged {
		u.all, u.paths = true, nil
	}
}

// addAll notes that anything may have changed.
func (u *unread) addAll() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all, u.paths = true, nil
}

// take gives what was collected, once.
func (u *unread) take() Changes {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := Changes{All: u.all, Paths: slices.Sorted(maps.Keys(u.paths))}
	u.all, u.paths = false, nil
	return taken
}
