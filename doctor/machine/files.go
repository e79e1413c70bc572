package machine

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Volume is the file system of a path.
type Volume struct {
	// Kind is its name, such as nfs or overlay; empty if unknown.
	Kind string
	// Remote means that the system reports only the changes that this machine makes through this mount.
	Remote   bool
	ReadOnly bool
	// Free and Inodes are what a user without privileges can still use. Limited is false if the file system has no
	// limit of inodes.
	Free, Inodes uint64
	Limited      bool
}

// Overlay reports whether a container's own layer is the file system.
func (v Volume) Overlay() bool { return v.Kind == "overlay" }

// Inode returns the number of the inode of a file; 0 if the system does not tell.
func Inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}

// Locker returns the ID of the process that holds a lock of flock on the file with an inode: 0 for no process, -1 for
// a process in another namespace.
func (p Proc) Locker(inode uint64) (pid int, err error) {
	data, err := readFile(filepath.Join(string(p), "locks"), maxSockets)
	if err != nil {
		return 0, err
	}
	suffix := fmt.Sprintf(":%d", inode)
	for line := range bytes.Lines(data) {
		words := strings.Fields(string(line)) // 1: FLOCK ADVISORY WRITE 3224 fe:00:11219003 0 EOF
		if len(words) < 6 || words[1] != "FLOCK" || !strings.HasSuffix(words[5], suffix) {
			continue
		}
		if holder := numbers(words[4:5]); len(holder) == 1 && holder[0] > 0 {
			return holder[0], nil
		}
		return -1, nil
	}
	return 0, nil
}

// Sees returns the file at an absolute path as the process sees it, in its own file system.
func (p *Process) Sees(path string) (fs.FileInfo, error) {
	root, err := os.OpenRoot(p.path("root"))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(strings.TrimLeft(filepath.Clean(path), "/"))
}

// SameFiles reports whether the process has the mounts of this process.
func (p *Process) SameFiles() bool {
	theirs, err := os.Readlink(p.path("ns/mnt"))
	ours, ownErr := os.Readlink(filepath.Join(string(p.proc), "self/ns/mnt"))
	return err == nil && ownErr == nil && theirs == ours
}
