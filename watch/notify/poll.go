package notify

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// stamp is the state of a file without its contents. A file with an equal stamp counts as unchanged.
type stamp struct {
	mode   fs.FileMode // its type only
	size   int64
	mtime  time.Time
	inode  uint64
	device uint64
	target string // of a link; the other fields are about the link's target
	denied bool
}

// stampOf returns the stamp of a file. The stamp of a missing file is zero. The stamp of a folder doesn't cover
// its contents, which have stamps of their own.
func stampOf(path string) stamp {
	s := stamp{denied: denied(path)}
	s.target, _ = os.Readlink(path)
	info, err := os.Stat(path)
	if err != nil {
		return s
	}
	s.mode = info.Mode().Type()
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode, s.device = uint64(sys.Ino), uint64(sys.Dev)
	}
	if !info.IsDir() {
		s.size, s.mtime = info.Size(), info.ModTime()
	}
	return s
}

// poll scans the tree without watches. If a limit of the system is the reason, poll warns of the limit.
func (t *tree) poll(ctx context.Context) error {
	if t.limit != nil {
		t.warn(t.limit)
	}
	return t.scan(ctx)
}

// differences lists the paths that were added, removed or have another stamp.
func differences(before, now map[string]stamp) []string {
	var list []string
	for path, s := range now {
		if b, ok := before[path]; !ok || b != s {
			list = append(list, path)
		}
	}
	for path := range before {
		if _, ok := now[path]; !ok {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}
