package notify

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// stamp is what a look from outside tells about a file. What has the same stamp is
// taken for unchanged.
type stamp struct {
	mode   fs.FileMode // its type only
	size   int64
	mtime  time.Time
	inode  uint64
	device uint64
	target string // of a link; the rest is about what it leads to
	denied bool
}

// stampOf gives the zero stamp for what is missing. Of a folder it does not tell
// what is in it: that has stamps of its own, or does not count.
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

// poll looks at all of the tree that counts.
func (t *tree) poll(ctx context.Context) error {
	if t.limit != nil {
		t.warn(t.limit)
	}
	return t.scan(ctx)
}

// differences lists what has another stamp now, came or went.
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
