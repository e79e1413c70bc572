package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
)

// maxInlined bounds a file that is put into a resource: a certificate bundle of a
// whole system has a quarter of it. maxDescriptors bounds a file of a descriptor set, which has the
// comments of its sources.
const (
	maxInlined     = 1 << 20
	maxDescriptors = 16 << 20
)

// Files are the files that resources of a source tree name by relative paths.
type Files interface {
	// Read reads a file of at most most bytes. The error is an *OutsideError if the path leads out of the tree.
	Read(path string, most int64) ([]byte, safefile.Stamp, error)
	// Take counts read bytes. Full reports whether the counted bytes exceed Limit.
	Take(bytes int)
	Full() bool
	Limit() int64
	// StubSecrets reports whether files of secrets may be missing.
	StubSecrets() bool
	// IsRoot reports whether a file is in the root folder of the tree.
	IsRoot(path string) bool
	// Ended reports whether nobody waits for the result any more.
	Ended() bool
}

// OutsideError means that a name in a source tree leads out of it.
type OutsideError struct {
	// To is the target of the link.
	To string
}

func (e *OutsideError) Error() string { return "it leads out of the source tree, to " + e.To }

// OutsideHelp is the help for an OutsideError.
const OutsideHelp = "move its target into the tree, or allow its folder by --allow-path"

// Inlined is a file that was inlined into a resource, with its content, or with the reason why it could not be
// read.
type Inlined struct {
	Path  string
	Data  []byte
	Stamp safefile.Stamp
	Err   error
	Most  int64 // the limit of the read, in bytes
}

// Unchanged reports whether the content of the file is the same as at the last read. It reads the file only if the
// Stamp and info, the present metadata, do not answer that; info may be nil. Unchanged sets the Stamp of its read.
func (i *Inlined) Unchanged(files Files, info fs.FileInfo) bool {
	if info != nil && i.Stamp.Holds(info) {
		return true
	}
	data, stamp, err := readInlined(files, i.Path, i.Most)
	if !bytes.Equal(data, i.Data) || fmt.Sprint(err) != fmt.Sprint(i.Err) {
		return false
	}
	i.Stamp = stamp
	return true
}

// readInlined reads a file of at most most bytes, which must hold something.
func readInlined(files Files, path string, most int64) (data []byte, stamp safefile.Stamp, err error) {
	data, stamp, err = files.Read(path, most)
	if err == nil && len(data) == 0 {
		return nil, safefile.Stamp{}, errors.New("the file is empty")
	}
	return data, stamp, reason(err)
}

// Failure returns an error that names a file if err, the error of reading the file, means that the disk or the
// system has failed. Failure returns nil for other errors, which are faults of the configuration that names
// the file.
func Failure(path string, err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok && slices.Contains(failures[:], errno) {
		return &fs.PathError{Op: "read", Path: path, Err: errno}
	}
	return nil
}

// failures are the errors of a disk, of a file server, and of a system that lacks memory or descriptors.
var failures = [...]syscall.Errno{
	syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENOTCONN, syscall.EHOSTDOWN,
	syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE,
}

// ReadData reads a file to inline into a resource. The error is for a finding that names the file, so the
// error does not name it.
func ReadData(path string) ([]byte, error) {
	data, err := safefile.Read(path, maxInlined)
	return data, reason(err)
}

// ReadDescriptors is ReadData for a file of a descriptor set.
func ReadDescriptors(path string) ([]byte, error) {
	data, err := safefile.Read(path, maxDescriptors)
	return data, reason(err)
}

// ErrMissing is the error of ReadData for a file that does not exist.
var ErrMissing = errors.New("the file does not exist")

// reason is an error without the path in it, in plain words where the file does not exist.
func reason(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrMissing
	}
	return fspath.Reason(err)
}
