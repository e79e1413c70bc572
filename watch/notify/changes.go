package notify

import (
	"maps"
	"slices"
	"sync"
)

// Changes are the paths that changed since the last read of the tree.
type Changes struct {
	// All means an unknown set of paths: each path may have changed. Paths is then nil.
	All bool
	// Paths are absolute paths as reached from the root, sorted. A folder in Paths was added, removed or
	// replaced; its contents may have changed too.
	Paths []string
}

// maxChanged is the largest number of Paths. Beyond it, reading the whole tree costs little more, and the
// list stays bounded.
const maxChanged = 1000

// And returns the union of two Changes. All of the union is set if one of the two sets All, or above maxChanged
// paths.
func (c Changes) And(other Changes) Changes {
	paths := append(slices.Clip(c.Paths), other.Paths...)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if c.All || other.All || len(paths) > maxChanged {
		return Changes{All: true}
	}
	return Changes{Paths: paths}
}

// unread collects changed paths for another goroutine.
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

// addAll records a change of an unknown path.
func (u *unread) addAll() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all, u.paths = true, nil
}

// take returns the collected changes and clears them.
func (u *unread) take() Changes {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := Changes{All: u.all, Paths: slices.Sorted(maps.Keys(u.paths))}
	u.all, u.paths = false, nil
	return taken
}
