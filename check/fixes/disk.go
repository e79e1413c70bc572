package fixes

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
	"xdspub/source/syntax"
)

// place is the place of a file on disk.
type place struct {
	root  *os.Root // the folder that the file must not leave; nil for a text that is not a file's
	below string   // the path of the file below root, without links
	mode  fs.FileMode
	owner *syscall.Stat_t
}

func (p *place) onDisk() bool { return p.root != nil }

// openFile returns the place and the text of a file, by its path without links. The error says why a fix can't change
// the file.
func (r *Run) openFile(dir, path string) (at place, text []byte, err error) {
	dir = fspath.Resolve(dir)
	if !fspath.Within(path, dir) {
		return at, nil, fmt.Errorf("the file is %s, outside of %s", path, dir)
	}
	if at.below, err = filepath.Rel(dir, path); err != nil {
		return at, nil, err
	}
	if r.roots[dir] == nil {
		if r.roots[dir], err = os.OpenRoot(dir); err != nil {
			return at, nil, err
		}
	}
	at.root = r.roots[dir]
	info, err := at.root.Lstat(at.below)
	if err != nil {
		return at, nil, err
	}
	at.mode = info.Mode()
	at.owner, _ = info.Sys().(*syscall.Stat_t)
	if err := at.writable(path); err != nil {
		return at, nil, err
	}
	text, _, err = safefile.ReadIn(at.root, at.below, syntax.MaxBytes)
	return at, text, err
}

// writable returns an error if the file must not be replaced: the file or its folder is read-only, or the new file
// would have another owner.
func (p *place) writable(path string) error {
	if p.mode.Perm()&0o222 == 0 {
		return errors.New("the file is read-only")
	}
	for _, name := range []string{path, filepath.Dir(path)} {
		if err := unix.Faccessat(unix.AT_FDCWD, name, unix.W_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("%s is not writable: %w", name, err)
		}
	}
	if uid := os.Geteuid(); uid != 0 && p.owner != nil && int(p.owner.Uid) != uid {
		return errors.New("the file belongs to another user")
	}
	return nil
}

// Close closes the folders of the files.
func (r *Run) Close() {
	for _, root := range r.roots {
		if root != nil {
			root.Close()
		}
	}
}

// Write writes the changed files. It writes each file beside the old one and replaces the old file by a rename, which
// keeps mode and owner. If a file has changed since it was read, or can't be written, Write changes no file.
func (r *Run) Write() error {
	var staged []*stagedFile
	defer func() {
		for _, s := range staged {
			_ = s.root.Remove(s.temporary) // renamed, unless Write failed
		}
	}()
	for _, f := range r.changed() {
		if !f.onDisk() {
			continue
		}
		s := &stagedFile{file: f, temporary: filepath.Join(filepath.Dir(f.below), ".xdspub-fix-"+rand.Text())}
		staged = append(staged, s)
		if err := s.write(); err != nil {
			return fmt.Errorf("write %s: %w: no file is changed", f.name, fspath.Reason(err))
		}
	}
	for _, s := range staged {
		if err := s.unchanged(); err != nil {
			return fmt.Errorf("fix %s: %w: no file is changed: run the command again", s.name, err)
		}
	}
	for i, s := range staged {
		if err := s.replace(); err != nil {
			return fmt.Errorf("write %s: %w: %d of %d files are changed", s.name, fspath.Reason(err), i, len(staged))
		}
	}
	return nil
}

// stagedFile is a file with its new text in a temporary file beside it. The source tree and a watch ignore the
// temporary file, because its name begins with a dot.
type stagedFile struct {
	*file
	temporary string
}

// write writes the temporary file, with the mode and the owner of the file.
func (s *stagedFile) write() error {
	f, err := s.root.OpenFile(s.temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(s.now)
	if err == nil && s.owner != nil {
		err = f.Chown(int(s.owner.Uid), int(s.owner.Gid))
	}
	if err == nil {
		err = f.Chmod(s.mode.Perm())
	}
	return errors.Join(err, f.Sync(), f.Close())
}

var errChanged = errors.New("the file has changed while xdspub read it")

// unchanged returns an error if the file is not the file that was read.
func (s *stagedFile) unchanged() error {
	text, _, err := safefile.ReadIn(s.root, s.below, syntax.MaxBytes)
	if err != nil {
		return fspath.Reason(err)
	}
	if info, err := s.root.Lstat(s.below); err != nil || !info.Mode().IsRegular() || !bytes.Equal(text, s.before) {
		return errChanged
	}
	return nil
}

// replace renames the temporary file, and makes the name durable.
func (s *stagedFile) replace() error {
	if err := s.unchanged(); err != nil {
		return err
	}
	if err := s.root.Rename(s.temporary, s.below); err != nil {
		return err
	}
	dir, err := s.root.Open(filepath.Dir(s.below))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
