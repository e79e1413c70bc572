package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
)

// folder is an open folder: the output directory, or a folder inside. folder reaches its content by the
// descriptor and one name at a time, and never follows a link. A user who can write into an output directory
// must not lead xdspub out of it, neither by a link nor by a link that appears between a check and a write.
// os.Root is not enough, because it follows links that stay inside.
//
// The zero folder stands for a missing folder.
type folder struct{ *os.File }

// errLink says why a link is in the way.
var errLink = errors.New("a symbolic link: remove it, xdspub follows no links inside an output directory")

// isOther reports whether err means that a link, a pipe, a folder or a file over the limit stands at a file's
// place, or that a file stands at a folder's place.
func isOther(err error) bool {
	_, large := errors.AsType[*safefile.TooLargeError](err)
	return large || errors.Is(err, safefile.ErrNotRegular) || errors.Is(err, errLink) || errors.Is(err, unix.ENOTDIR)
}

// MaxFile bounds a file of the output directory, in bytes: no larger one is
// published, or read back.
const MaxFile = 128 << 20

// maxNames bounds what is listed of a folder.
const maxNames = 1 << 20

// openOut opens an output directory. openOut follows the links on the way, which belong to the owner.
func openOut(out string) (folder, error) {
	f, err := os.OpenFile(out, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		err = &fs.PathError{Op: "open output directory", Path: out, Err: fspath.Reason(err)}
	}
	return folder{f}, err
}

// reading calls read with the output directory out, or with the zero folder if out does not exist.
func reading[T any](out string, read func(folder) (T, error)) (T, error) {
	root, err := openOut(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return read(folder{})
	case err != nil:
		var none T
		return none, err
	}
	defer root.Close()
	return read(root)
}

func (f folder) fd() int { return int(f.Fd()) }

func (f folder) path(name string) string { return filepath.Join(f.Name(), name) }

// failed returns what a system call said about a name, with its path.
func (f folder) failed(op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOTDIR):
		err = fmt.Errorf("%w: remove it, a directory of xdspub belongs here", err)
	case errors.Is(err, unix.EISDIR):
		err = fmt.Errorf("%w: remove it, only a file of xdspub belongs here", err)
	}
	return &fs.PathError{Op: op, Path: f.path(name), Err: err}
}

// open opens what is at a name. A pipe has nobody wait.
func (f folder) open(name string, flag int, mode fs.FileMode) (*os.File, error) {
	for {
		fd, err := unix.Openat(f.fd(), name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, uint32(mode.Perm()))
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), f.path(name)), nil
		case errors.Is(err, unix.EINTR):
			continue
		}
		// Systems differ in their errors for a link, and O_DIRECTORY has yet another error.
		if info, lerr := f.lstat(name); lerr == nil && info.Mode&fs.ModeSymlink != 0 {
			err = errLink
		}
		return nil, f.failed("open", name, err)
	}
}

// folder opens the folder at a slash-separated path below f; "." is f once more.
func (f folder) folder(name string) (folder, error) {
	switch {
	case f.File == nil:
		return folder{}, fs.ErrNotExist
	case !fs.ValidPath(name): // ".." would lead out
		return folder{}, f.failed("open", name, fs.ErrInvalid)
	}
	at := f
	for element := range strings.SplitSeq(name, "/") {
		next, err := at.open(element, os.O_RDONLY|unix.O_DIRECTORY, 0)
		if at != f {
			at.Close()
		}
		if err != nil {
			return folder{}, err
		}
		at = folder{next}
	}
	return at, nil
}

// split opens the folder of a file below f, and gives the file's name in it.
func (f folder) split(file string) (in folder, name string, err error) {
	dir, name := ".", file
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		dir, name = file[:i], file[i+1:]
	}
	in, err = f.folder(dir)
	if err == nil && !fs.ValidPath(name) {
		err = in.failed("open", name, fs.ErrInvalid)
		in.Close()
	}
	return in, name, err
}

// stat tells of the file at a slash-separated path below f.
func (f folder) stat(file string) (Info, error) {
	in, name, err := f.split(file)
	if err != nil {
		return Info{}, err
	}
	defer in.Close()
	return in.lstat(name)
}

// read reads the file at a slash-separated path below f, with what it is.
func (f folder) read(file string, most int64) ([]byte, Info, error) {
	in, name, err := f.split(file)
	if err != nil {
		return nil, Info{}, err
	}
	defer in.Close()
	return in.readHere(name, most)
}

// readHere reads the file at a name. A link, a pipe or a device is not opened.
func (f folder) readHere(name string, most int64) ([]byte, Info, error) {
	info, err := f.lstat(name)
	if err != nil {
		return nil, info, err
	}
	if !info.Mode.IsRegular() {
		return nil, info, f.failed("read", name, safefile.ErrNotRegular)
	}
	opened, err := f.open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, info, err
	}
	defer opened.Close()
	if info, err = infoOf(opened); err != nil {
		return nil, info, err
	}
	data, err := safefile.ReadOpen(opened, most)
	return data, info, err
}

// readAt fills b with the bytes of the file at a name from an offset on. A link, a pipe or a device is not opened.
func (f folder) readAt(name string, b []byte, offset int64) error {
	info, err := f.lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode.IsRegular() {
		return f.failed("read", name, safefile.ErrNotRegular)
	}
	opened, err := f.open(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer opened.Close()
	_, err = opened.ReadAt(b, offset)
	return err
}

// look compares a planned file with the disk. It returns the state of the file and of the folder of the file, and
// whether the disk has the file as planned. An error says why nobody can publish the file.
func (f folder) look(file File, gid int) (is settledFile, out bool, err error) {
	in, err := f.folder(path.Dir(file.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return is, false, nil
	case err != nil:
		return is, false, err
	}
	defer in.Close()
	is.File = file
	if is.folder, err = in.info(); err != nil {
		return is, false, err
	}
	// A folder that Envoy could not enter, or all could, is mended along with its
	// file: Envoy needs the rename to look again.
	mended := is.folder.Mode.Perm() != file.folderMode() || wrongGroup(is.folder, file.Secret, gid)
	now := time.Now()
	is.info, out, err = in.hasFile(path.Base(file.Path), file, gid)
	is.settled = is.info.Settled(now)
	return is, out && !mended, err
}

// hasFile reports whether name is a regular file with the bytes and the mode of a file, and what
// else is known of it.
func (f folder) hasFile(name string, file File, gid int) (Info, bool, error) {
	info, err := f.lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return info, false, nil
	case err != nil:
		return info, false, err
	case info.Mode.IsDir():
		return info, false, f.failed("rename", name, syscall.EISDIR)
	case info.Mode != file.mode() || info.Size() != int64(len(file.Data)) || wrongGroup(info, file.Secret, gid):
		return info, false, nil // a link or a pipe has another mode too: it is never opened
	}
	data, info, err := f.readHere(name, info.Size())
	return info, err == nil && bytes.Equal(data, file.Data), err
}

// removable reports whether a file to unlink exists.
func (f folder) removable(file string) (bool, error) {
	in, name, err := f.split(file)
	if err == nil {
		defer in.Close()
		var info Info
		if info, err = in.lstat(name); err == nil && info.Mode.IsDir() {
			err = in.failed("remove", name, syscall.EISDIR)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func wrongGroup(info Info, secret bool, gid int) bool {
	return secret && gid != anyGroup && info.group != gid
}

// names lists what is in f, sorted.
func (f folder) names() ([]string, error) {
	again, err := f.folder(".") // a descriptor has only one read position
	if err != nil {
		return nil, err
	}
	defer again.Close()
	names, err := again.Readdirnames(maxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxNames {
		return nil, fmt.Errorf("read %s: the directory has more than %d entries", f.Name(), maxNames)
	}
	slices.Sort(names)
	return names, nil
}

// Info is the metadata of a file. Infos of an untouched file are equal by ==.
type Info struct {
	safefile.Signature
	Mode fs.FileMode

	names uint64 // hard links
	group int
}

// lstat tells of what is at a name.
func (f folder) lstat(name string) (Info, error) {
	var s unix.Stat_t
	if err := unix.Fstatat(f.fd(), name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Info{}, f.failed("lstat", name, err)
	}
	return newInfo(&s), nil
}

// info tells of what is open.
func (f folder) info() (Info, error) { return infoOf(f) }

// infoOf tells of an open file.
func infoOf(f file) (Info, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return newInfo(&s), nil
}

func newInfo(s *unix.Stat_t) Info {
	mode := fs.FileMode(s.Mode & 0o777)
	if s.Mode&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if s.Mode&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if s.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	default:
		mode |= fs.ModeDevice
	}
	return Info{
		Signature: safefile.NewSignature(uint64(s.Dev), s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()),
		Mode:      mode, names: uint64(s.Nlink), group: int(s.Gid),
	}
}
