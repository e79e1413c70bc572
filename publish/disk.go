package publish

import (
	"io"
	"io/fs"
	"os"
)

// disk is the one door to everything that changes the file system. A test
// stands in it to record the calls, to make any of them fail, and to kill the
// process at any of them; so each method is one system call.
type disk interface {
	OpenFile(name string, flag int, mode fs.FileMode) (file, error)
	Mkdir(name string, mode fs.FileMode) error
	Chmod(name string, mode fs.FileMode) error
	Chown(name string, uid, gid int) error
	Rename(from, to string) error
	Remove(name string) error
}

// file is what is opened by way of a disk: a file to write or a folder to flush.
type file interface {
	io.WriteCloser
	Sync() error
	Fd() uintptr
}

// osDisk is the real one.
type osDisk struct{}

func (osDisk) OpenFile(name string, flag int, mode fs.FileMode) (file, error) {
	f, err := os.OpenFile(name, flag, mode)
	if err != nil {
		return nil, err // not f: a nil *os.File in an interface is not nil
	}
	return f, nil
}

func (osDisk) Mkdir(name string, mode fs.FileMode) error { return os.Mkdir(name, mode) }
func (osDisk) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }
func (osDisk) Chown(name string, uid, gid int) error     { return os.Chown(name, uid, gid) }
func (osDisk) Rename(from, to string) error              { return os.Rename(from, to) }
func (osDisk) Remove(name string) error                  { return os.Remove(name) }
