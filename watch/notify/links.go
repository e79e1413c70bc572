package notify

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"xdspub/internal/fspath"
)

// setWatchpoints watches the folders of path's watchpoints. A rename in such a folder makes path lead
// elsewhere, without an event in a folder of the tree. Kubernetes replaces the link ..data and git-sync the
// link current; other links only lead through these.
func (t *tree) setWatchpoints(path string) error {
	t.dropWatchpoints(path)
	if t.polled() {
		return nil // stamps follow links
	}
	for _, point := range watchpoints(path) {
		if t.ignore != nil && t.ignore(point) {
			continue
		}
		if err := t.setWatchpoint(point, path); err != nil {
			return err
		}
	}
	return nil
}

// setWatchpoint watches the folder of one watchpoint of path. Below root, setWatchpoint also watches the
// folders above: renaming one of them replaces the target of path.
func (t *tree) setWatchpoint(point, path string) error {
	for {
		// Leave errors other than limits to the rescan: the folders on the way may be unreadable forever.
		dir := filepath.Dir(point)
		if err := explain(t.fsw.Add(dir)); isLimit(err) {
			return t.judge(path, err)
		}
		t.addWatchpoint(point, path)
		if dir == t.real || !fspath.Within(dir, t.real) {
			if _, ok := t.byReal[dir]; !ok {
				t.addWatchpoint(dir, path) // for a rename of dir itself
			}
			return nil
		}
		point = dir
	}
}

func (t *tree) addWatchpoint(point, path string) {
	if t.watchpoints[point] == nil {
		t.watchpoints[point] = set{}
	}
	if !t.watchpoints[point][path] {
		t.watchpoints[point][path] = true
		t.watchpointsOf[path] = append(t.watchpointsOf[path], point)
	}
}

// dropWatchpoints removes the watchpoints of path. The watches stay until the rescan, because other
// paths may need them. Events of a watchpoint without a path are ignored.
func (t *tree) dropWatchpoints(path string) {
	for _, point := range t.watchpointsOf[path] {
		delete(t.watchpoints[point], path)
		if len(t.watchpoints[point]) == 0 {
			delete(t.watchpoints, point)
		}
	}
	delete(t.watchpointsOf, path)
}

// maxLinks is the number of links that the kernel follows before ELOOP.
const maxLinks = 40

// watchpoints follows path like the kernel, and returns the paths that decide where path leads: each link,
// the end, and the first missing path. Only the last element of these paths may be a link.
func watchpoints(path string) []string {
	var list []string
	dir, rest := string(filepath.Separator), elements(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		point := filepath.Join(dir, name)
		info, err := os.Lstat(point)
		switch {
		case errors.Is(err, syscall.ENOTDIR):
			return append(list, dir)
		case err != nil:
			return append(list, point)
		case info.Mode()&fs.ModeSymlink == 0:
			if dir = point; len(rest) == 0 {
				list = append(list, point)
			}
			continue
		}
		list = append(list, point)
		target, err := os.Readlink(point)
		if links++; err != nil || links == maxLinks {
			return list
		}
		if filepath.IsAbs(target) {
			dir = string(filepath.Separator)
		}
		rest = append(elements(target), rest...)
	}
	return list
}

// elements splits a path without cleaning it, because the meaning of .. depends on the links before it.
func elements(path string) []string {
	var list []string
	for _, e := range strings.Split(path, string(filepath.Separator)) {
		if e != "" && e != "." {
			list = append(list, e)
		}
	}
	return list
}
