package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Records is a folder in .xdspub, 0700, whose files belong to another package, such as the history. Records keeps
// the rules of all files in an output directory: it follows no link, and a file is whole or absent after a crash.
type Records struct {
	dir  *Dir   // nil if the Records are only for reading
	root folder // zero if the output directory does not exist
	name string // below OUT
}

// Records returns the folder of a name in .xdspub for writing. The folder is made by the first Write.
func (d *Dir) Records(name string) *Records {
	return &Records{d, d.root, path.Join(private, name)}
}

// OpenRecords opens the folder of a name in .xdspub of the directory out for reading. OpenRecords takes no lock. A
// missing directory has no records.
func OpenRecords(out, name string) (*Records, error) {
	root, err := openOut(out)
	if errors.Is(err, fs.ErrNotExist) {
		root, err = folder{}, nil
	}
	return &Records{nil, root, path.Join(private, name)}, err
}

// Close closes Records of OpenRecords.
func (r *Records) Close() error {
	if r.dir != nil || r.root.File == nil {
		return nil
	}
	return r.root.Close()
}

// Path returns the path of a file.
func (r *Records) Path(name string) string {
	if r.root.File == nil {
		return path.Join(r.name, name)
	}
	return r.root.path(path.Join(r.name, name))
}

// List returns all files and folders with their Info; nil if the folder does not exist.
func (r *Records) List() (map[string]Info, error) {
	in, err := r.root.folder(r.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer in.Close()
	names, err := in.names()
	if err != nil {
		return nil, err
	}
	all := make(map[string]Info, len(names))
	for _, name := range names {
		info, err := in.lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return nil, err
		default:
			all[name] = info
		}
	}
	return all, nil
}

// Stat returns the Info of a file.
func (r *Records) Stat(name string) (Info, error) { return r.root.stat(path.Join(r.name, name)) }

// Read reads a file of at most most bytes. A link, a pipe or a larger file is an error (Unreadable).
func (r *Records) Read(name string, most int64) ([]byte, error) {
	data, _, err := r.root.read(path.Join(r.name, name), most)
	return data, err
}

// ReadAt fills b with the bytes of a file from an offset on.
func (r *Records) ReadAt(name string, b []byte, offset int64) error {
	in, base, err := r.root.split(path.Join(r.name, name))
	if err != nil {
		return err
	}
	defer in.Close()
	return in.readAt(base, b, offset)
}

// Write writes a file and flushes its bytes. An existing file keeps its bytes until the new file is whole. The name
// of a new file is durable after Flush.
func (r *Records) Write(name string, data []byte) error {
	if err := r.writable("write", name); err != nil {
		return err
	}
	if _, err := r.root.stat(r.name); errors.Is(err, fs.ErrNotExist) {
		if err := r.dir.ensureFolder(r.name, 0o700, anyGroup); err != nil {
			return err
		}
	}
	stage, err := r.root.folder(stagePath)
	if err != nil {
		return err
	}
	defer stage.Close()
	f := staged{File{Path: path.Join(r.name, name), Data: data, private: true}, r.dir.free(path.Join(stagePath, "record"))}
	if err := r.dir.stage(stage, f); err != nil {
		return errors.Join(err, r.remove(f.at))
	}
	if err := r.rename(f.at, f.Path); err != nil {
		return errors.Join(err, r.remove(f.at))
	}
	return nil
}

// Rename gives a file another name.
func (r *Records) Rename(name, to string) error {
	if err := r.writable("rename", name, to); err != nil {
		return err
	}
	return r.rename(path.Join(r.name, name), path.Join(r.name, to))
}

// Remove removes a file, if it exists.
func (r *Records) Remove(name string) error {
	if err := r.writable("remove", name); err != nil {
		return err
	}
	return r.remove(path.Join(r.name, name))
}

// rename renames a file below OUT. The files of Records are no published files, so the Reader of the directory does
// not know them.
func (r *Records) rename(from, to string) error {
	in, name, err := r.root.split(from)
	if err != nil {
		return err
	}
	defer in.Close()
	into, toName, err := r.root.split(to)
	if err != nil {
		return err
	}
	defer into.Close()
	return r.dir.disk.Rename(in, name, into, toName)
}

// remove removes a file below OUT, if it exists.
func (r *Records) remove(file string) error {
	in, name, err := r.root.split(file)
	if err == nil {
		defer in.Close()
		err = r.dir.disk.Remove(in, name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Flush makes the names of files durable.
func (r *Records) Flush() error {
	if err := r.writable("flush"); err != nil {
		return err
	}
	return r.dir.sync(r.name)
}

// writable fails if the Records may not change, or if a name is a path.
func (r *Records) writable(op string, names ...string) error {
	if r.dir == nil {
		return fmt.Errorf("%s in %s: %w", op, r.Path(""), fs.ErrPermission)
	}
	for _, name := range names {
		if name == "" || strings.Contains(name, "/") || !fs.ValidPath(name) {
			return fmt.Errorf("%s %q in %s: %w", op, name, r.Path(""), fs.ErrInvalid)
		}
	}
	return r.dir.usable(op)
}
