package load

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
	"xdspub/source/decode"
)

// tree is where the files of a source tree may be read: below its root, and below
// the folders that Options.Allow names. Who may change the tree must not read with
// it what only this program may read.
type tree struct {
	root        string       // as named by the user; the folder of a single file
	folders     []folder     // the root, then those that are allowed
	bytes       atomic.Int64 // that were read: of a file that goes into several resources, several times
	most        int64        // bytes
	now         func() time.Time
	overlay     Overlay
	stubSecrets bool
	ended       func() bool // reports that nobody waits for the result; may be nil

	resources atomic.Int64 // that were read
}

// folder is a folder whose files may be read.
type folder struct {
	*os.Root
	real string // free of links
}

func openTree(root string, allow []string) (*tree, error) {
	t := &tree{root: root, most: MaxTotal, now: time.Now}
	for _, name := range append([]string{root}, allow...) {
		if err := t.add(name); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

func (t *tree) add(name string) error {
	real, err := realPath(name)
	if err != nil {
		return err
	}
	r, err := os.OpenRoot(real)
	if err != nil {
		return err
	}
	t.folders = append(t.folders, folder{r, real})
	return nil
}

// isRoot reports whether a file stands at the root of the tree.
func (t *tree) IsRoot(name string) bool { return filepath.Dir(name) == filepath.Clean(t.root) }

func (t *tree) close() {
	for _, f := range t.folders {
		f.Close()
	}
}

// realPath is an absolute path without links.
func realPath(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if _, named := errors.AsType[*fs.PathError](err); err != nil && !named { // a loop of links
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
	}
	return real, err
}

// locate returns the folder that a path leads into, and the path from there. The error is an *decode.OutsideError if
// no such folder exists.
func (t *tree) locate(path string) (in folder, below string, err error) {
	real, err := realPath(path)
	if err != nil {
		return folder{}, "", err
	}
	in, inside := t.folderOf(real)
	if !inside {
		return folder{}, "", &decode.OutsideError{To: real}
	}
	below, err = filepath.Rel(in.real, real)
	return in, below, err
}

// within does something with the file that a path leads to, as seen from the folder
// it is in. Mostly no link is in the way, or one that os.Root takes.
func within[T any](t *tree, path string, do func(root *os.Root, below string) (T, error)) (T, error) {
	below, err := filepath.Rel(t.root, path)
	if err == nil && filepath.IsLocal(below) {
		if value, err := do(t.folders[0].Root, below); err == nil {
			return value, nil
		}
	}
	in, below, err := t.locate(path)
	if err != nil {
		return *new(T), named(err, path)
	}
	value, err := do(in.Root, below)
	return value, named(err, path)
}

// named is an error that names a file as the reader knows it.
func named(err error, path string) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		op := pe.Op
		if op == "openat" {
			op = "open"
		}
		return &fs.PathError{Op: op, Path: path, Err: pe.Err}
	}
	return err
}

// bytesOf is what a file holds, and what the file system said of it then.
type bytesOf struct {
	data  []byte
	stamp safefile.Stamp
}

// read reads a file of at most limit bytes.
func (t *tree) read(path string, limit int64) (bytesOf, error) {
	if read, err, ok := t.unsaved(path, limit); ok {
		return read, err
	}
	return within(t, path, func(root *os.Root, below string) (bytesOf, error) { return t.readIn(root, below, limit) })
}

func (t *tree) readIn(root *os.Root, below string, limit int64) (bytesOf, error) {
	before := t.now()
	data, signature, err := safefile.ReadIn(root, below, limit)
	if err != nil {
		return bytesOf{}, err // nothing says that the next read fails, too
	}
	return bytesOf{data, safefile.StampOf(signature, before)}, nil
}

// batch reads files of a tree one after another. It keeps the folder of the last one open: the
// next mostly stands beside it.
type batch struct {
	tree *tree
	dir  string
	root *os.Root // of dir; nil where it is not below the root of the tree
}

// read is that of the tree, faster.
func (b *batch) read(path string, limit int64) (bytesOf, error) {
	if read, err, ok := b.tree.unsaved(path, limit); ok {
		return read, err
	}
	b.enter(filepath.Dir(path))
	if b.root != nil {
		if read, err := b.tree.readIn(b.root, filepath.Base(path), limit); err == nil {
			return read, nil
		}
	}
	return b.tree.read(path, limit) // a link, or an error
}

// enter opens a folder, if it is not open already.
func (b *batch) enter(dir string) {
	if b.dir == dir {
		return
	}
	b.close()
	b.dir = dir
	if below, err := filepath.Rel(b.tree.root, dir); err == nil && filepath.IsLocal(below) {
		b.root, _ = b.tree.folders[0].OpenRoot(below) // without the folder, its files fail, too
	}
}

func (b *batch) close() {
	if b.root != nil {
		b.root.Close()
		b.root = nil
	}
}

// stat asks the file system about the file that a path leads to.
func (t *tree) stat(path string) (fs.FileInfo, error) {
	return within(t, path, (*os.Root).Stat)
}

// peek reads the beginning of a file that is looked at only: what can't be read is
// no resource file.
func (t *tree) peek(path string) bytesOf {
	const most = 4 << 10
	if text, _, ok := t.overlay.text(path); ok {
		return bytesOf{data: text[:min(len(text), most)]}
	}
	read, err := within(t, path, func(root *os.Root, below string) (bytesOf, error) {
		before := t.now()
		f, info, err := safefile.OpenIn(root, below)
		if err != nil {
			return bytesOf{}, err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, most))
		return bytesOf{data, safefile.StampOf(safefile.SignatureOf(info), before)}, err
	})
	if err != nil {
		return bytesOf{}
	}
	return read
}

// Take counts read bytes.
func (t *tree) Take(n int) { t.bytes.Add(int64(n)) }

// Full reports whether the counted bytes exceed the Limit.
func (t *tree) Full() bool { return t.bytes.Load() > t.most }

// Limit is the bound of the bytes of all files.
func (t *tree) Limit() int64 { return t.most }

// StubSecrets is Options.StubSecrets.
func (t *tree) StubSecrets() bool { return t.stubSecrets }

// Ended reports whether nobody waits for the result any more.
func (t *tree) Ended() bool { return t.ended != nil && t.ended() }

// Read implements Files.
func (t *tree) Read(path string, most int64) ([]byte, safefile.Stamp, error) {
	read, err := t.read(path, most)
	return read.data, read.stamp, err
}

// unsaved returns the overlay's text for a file of the tree, so far as the tree may read it. Its stamp marks a
// file that has to be read again. ok is false if the overlay has no text, and the disk decides.
func (t *tree) unsaved(path string, limit int64) (read bytesOf, err error, ok bool) {
	text, real, ok := t.overlay.text(path)
	if !ok {
		return bytesOf{}, nil, false
	}
	if _, inside := t.folderOf(real); !inside {
		return bytesOf{}, &decode.OutsideError{To: real}, true
	}
	if int64(len(text)) > limit {
		return bytesOf{}, &safefile.TooLargeError{Size: int64(len(text)), Limit: limit}, true
	}
	return bytesOf{data: text}, nil, true
}

// folderOf is the folder that a path without links is in.
func (t *tree) folderOf(real string) (in folder, inside bool) {
	i := slices.IndexFunc(t.folders, func(f folder) bool { return fspath.Within(real, f.real) })
	if i < 0 {
		return folder{}, false
	}
	return t.folders[i], true
}

// Contains reports whether a source tree may be read from a path: from the root itself or below
// it, or below a folder that is allowed. There need not be such a file.
func Contains(root string, allow []string, path string) bool {
	real := fspath.Resolve(path)
	return slices.ContainsFunc(append([]string{root}, allow...), func(dir string) bool { return fspath.Within(real, fspath.Resolve(dir)) })
}
