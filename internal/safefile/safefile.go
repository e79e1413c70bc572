// Package safefile reads files in folders that other users may write. A name in such a folder can be a pipe, a
// device, a link into /proc, or an endless file. Reading such a file blocks for ever, takes all memory, or has
// side effects. Package safefile reads only regular files of real file systems, up to a limit.
//
//	data, err := safefile.Read("config/clusters.yaml", 1<<20)
//
// Package safefile checks the target of a name before opening, because opening a device can have side effects.
// The check of the opened file decides.
//
// List does the same for folders, which can hold millions of names.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular means that a name leads to a file that is not regular.
var ErrNotRegular = errors.New("not a regular file")

// ErrKernel means that a name leads to a file that the kernel makes, such as a file of /proc. Such a file may be
// endless, and may reveal facts about the machine.
var ErrKernel = fmt.Errorf("%w: it is on a file system of the kernel's, such as /proc", ErrNotRegular)

// TooLargeError means that a file has more bytes than the limit.
type TooLargeError struct {
	// Size is the size of the file, or 0 if the file has more bytes than its reported size.
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("the file is larger than the limit of %d bytes", e.Limit)
	}
	return fmt.Sprintf("the file has %d bytes, the limit is %d", e.Size, e.Limit)
}

// Read reads a file of at most limit bytes. Read follows links.
func Read(path string, limit int64) ([]byte, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, info, path, limit)
}

// ReadIn reads like Read a file below root. A link that leads out of root is an error. ReadIn also returns the
// Signature that the file had before the read.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, Signature, error) {
	f, info, err := OpenIn(root, name)
	if err != nil {
		return nil, Signature{}, err
	}
	defer f.Close()
	data, err := read(f, info, name, limit)
	return data, SignatureOf(info), err
}

// ReadOpen reads like Read an open file.
func ReadOpen(f *os.File, limit int64) ([]byte, error) {
	info, err := checkOpen(f)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	return read(f, info, f.Name(), limit)
}

// Open opens a regular file for reading, and never blocks. All errors are of type *fs.PathError.
func Open(path string) (*os.File, fs.FileInfo, error) {
	return open(path, os.Stat, os.OpenFile)
}

// OpenIn opens like Open a file below root. A link that leads out of root is an error.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return open(name, root.Stat, root.OpenFile)
}

func open(path string, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, fs.FileInfo, error) {
	info, err := stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkRegular(info); err != nil {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	// The name may now lead to another file. With O_NONBLOCK, even a pipe without a writer opens at once.
	f, err := openFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = checkOpen(f); err != nil {
		f.Close()
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return f, info, nil
}

// checkOpen returns an error if an open file must not be read.
func checkOpen(f *os.File) (fs.FileInfo, error) {
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(info)
	}
	if err == nil {
		err = checkFileSystem(f)
	}
	return info, err
}

func checkRegular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return syscall.EISDIR
	case !info.Mode().IsRegular():
		return ErrNotRegular
	}
	return nil
}

func read(r io.Reader, info fs.FileInfo, path string, limit int64) ([]byte, error) {
	data, err := readAll(r, info.Size(), limit)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, nil
}

// readAll reads to the end of r. size is the reported size of the file, which may be wrong.
func readAll(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, &TooLargeError{Size: size, Limit: limit}
	}
	r = io.LimitReader(r, limit+1)
	data := make([]byte, 0, size+1) // with one byte more, the end is found without growing
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, &TooLargeError{Limit: limit}
		case err == io.EOF:
			return data, nil
		case err != nil:
			if pe, ok := errors.AsType[*fs.PathError](err); ok {
				err = pe.Err
			}
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}
