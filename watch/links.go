package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// watchSpots watches the places on the way to path: a rename there puts something
// else at its end, and no folder of the tree hears of it. Kubernetes turns the
// link ..data, git-sync the link current, of which others only make use.
func (t *tree) watchSpots(path string) error {
	t.dropSpots(path)
	if t.polled() {
		return nil // stamps see through links
	}
	for _, spot := range spots(path) {
		if t.ignore != nil && t.ignore(spot) {
			continue
		}
		// What can't be watched for another reason than a limit is left to the
		// rescan: the way there may be closed to us for good.
		dir := filepath.Dir(spot)
		if err := explain(t.fsw.Add(dir)); isLimit(err) {
			return t.judge(path, err)
		}
		t.addSpot(spot, path)
		if _, ok := t.byReal[dir]; !ok {
			t.addSpot(dir, path) // for when dir itself goes
		}
	}
	return nil
}

func (t *tree) addSpot(spot, path string) {
	if t.spots[spot] == nil {
		t.spots[spot] = set{}
	}
	t.spots[spot][path] = true
	t.ways[path] = append(t.ways[path], spot)
}

// dropSpots forgets the way to path. The watches stay until the rescan: others may
// need them, and what nobody asks for does not count.
func (t *tree) dropSpots(path string) {
	for _, spot := range t.ways[path] {
		delete(t.spots[spot], path)
		if len(t.spots[spot]) == 0 {
			delete(t.spots, spot)
		}
	}
	delete(t.ways, path)
}

// maxLinks is how many links the kernel follows before it calls them a loop.
const maxLinks = 40

// spots goes the way of path as the kernel does, and returns what decides where it
// ends: each link, the end, and the first thing that is missing. All are free of
// links but in their last element.
func spots(path string) []string {
	var list []string
	dir, rest := string(filepath.Separator), elements(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		spot := filepath.Join(dir, name)
		info, err := os.Lstat(spot)
		switch {
		case errors.Is(err, syscall.ENOTDIR):
			return append(list, dir)
		case err != nil:
			return append(list, spot)
		case info.Mode()&fs.ModeSymlink == 0:
			if dir = spot; len(rest) == 0 {
				list = append(list, spot)
			}
			continue
		}
		list = append(list, spot)
		target, err := os.Readlink(spot)
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

// elements splits a path, but does not clean it: what .. means is not known before
// the links in front of it.
func elements(path string) []string {
	var list []string
	for _, e := range strings.Split(path, string(filepath.Separator)) {
		if e != "" && e != "." {
			list = append(list, e)
		}
	}
	return list
}
