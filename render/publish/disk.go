package publish

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// disk makes every change of the file system. A test replaces disk to record the calls, to make any call fail,
// and to kill the process at any call, so each method is one system call. Methods take open folders and names
// inside, never a path, because somebody may put a link on a path.
type disk interface {
	OpenFile(in folder, name string, flag int, mode fs.FileMode) (file, error)
	Mkdir(in folder, name string, mode fs.FileMode) error
	Chmod(f file, mode fs.FileMode) error
	Chown(f file, gid int) error
	Rename(from folder, name string, to folder, toName string) error
	// Remove removes a file or an empty folder.
	Remove(in folder, name string) error
	// SyncAll flushes the file system that a folder is on. It is for at least Many files and
	// folders.
	SyncAll(in folder) error
	Many() int
}

// file is what is opened by way of a disk: a file to write or a folder to flush.
type file interface {
	io.WriteCloser
	Name() string
	Sync() error
	Chmod(mode fs.FileMode) error
	Chown(uid, gid int) error
	Fd() uintptr
}

// osDisk is the real one.
type osDisk struct{}

func (osDisk) OpenFile(in folder, name string, flag int, mode fs.FileMode) (file, error) {
	f, err := in.open(name, flag, mode)
	if err != nil {
		return nil, err // not f: a nil *os.File in an interface is not nil
	}
	return f, nil
}

func (osDisk) Mkdir(in folder, name string, mode fs.FileMode) error {
	return in.failed("mkdir", name, unix.Mkdirat(in.fd(), name, uint32(mode.Perm())))
}

func (osDisk) Chmod(f file, mode fs.FileMode) error { return f.Chmod(mode) }
func (osDisk) Chown(f file, gid int) error          { return f.Chown(-1, gid) }

func (osDisk) Rename(from folder, name string, to folder, toName string) error {
	if err := unix.Renameat(from.fd(), name, to.fd(), toName); err != nil {
		return &os.LinkError{Op: "rename", Old: from.path(name), New: to.path(toName), Err: err}
	}
	return nil
}

func (osDisk) Remove(in folder, name string) error {
	err := unix.Unlinkat(in.fd(), name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) { // EPERM is POSIX's word for a folder
		if rerr := unix.Unlinkat(in.fd(), name, unix.AT_REMOVEDIR); !errors.Is(rerr, unix.ENOTDIR) {
			err = rerr
		}
	}
	return in.failed("remove", name, err)
}
