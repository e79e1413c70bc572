package publish

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"xdspub/event"
	"xdspub/internal/usergroup"
)

// Options of an output directory. The zero value is good.
type Options struct {
	// Group is the name or number of the group that may read secret files:
	// Envoy's, mostly. Empty means the group that owns OUT.
	Group string
	// Log is told what goes out; nil discards.
	Log *event.Log

	// maxChanged is how many files a record holds beside its base; 0 stands for the constant
	// of that name. Tests have fewer files.
	maxChanged int
}

// Dir is an output directory, open for writing. Over all processes, a directory has at most one Dir at a time.
// Not for concurrent use.
type Dir struct {
	given string // absolute, as it was asked for
	out   string // without symbolic links
	root  folder
	gid   int // of secret files
	log   *event.Log
	disk  disk
	lock  file // nil when closed
	// stuck is what stood in our own folders when d began, and can't be removed: paths
	// below OUT.
	stuck   map[string]bool
	reader  *Reader
	started bool
	bulk    bool // the files of the current write or step are flushed together at its end
	// maxChanged is how many files a record holds beside its base.
	maxChanged int
}

// Open creates the directory out if missing, locks it, and removes a killed writer's files from the stage. If
// another writer has the directory, the error is a *LockedError.
func Open(out string, o Options) (*Dir, error) {
	return open(out, o, osDisk{})
}

func open(out string, o Options, real disk) (*Dir, error) {
	d := &Dir{log: o.Log, disk: real, stuck: make(map[string]bool), maxChanged: cmp.Or(o.maxChanged, maxChanged)}
	if err := d.find(out); err != nil {
		return nil, err
	}
	d.reader = NewReader(d.out)
	if err := d.take(o); err != nil {
		if d.lock != nil {
			release(d.lock)
		}
		d.root.Close()
		return nil, err
	}
	return d, nil
}

// find opens the directory, and creates it if missing. A running writer stays in the opened directory even if
// a link on its path is turned; holding detects that.
func (d *Dir) find(out string) (err error) {
	if d.given, err = filepath.Abs(out); err != nil {
		return err
	}
	if d.root, err = d.outermost(d.given); err != nil {
		return err
	}
	if d.out, err = filepath.EvalSymlinks(d.given); err != nil {
		d.root.Close()
	}
	return err
}

// outermost opens the output directory or a folder on its way. It creates a missing folder, and keeps the mode
// of an existing one.
func (d *Dir) outermost(name string) (folder, error) {
	f, err := openOut(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if _, err := os.Lstat(name); err == nil {
		return folder{}, &fs.PathError{Op: "mkdir", Path: name, Err: errors.New("a symbolic link that leads nowhere: remove it, or create its target")}
	}
	above, err := d.outermost(filepath.Dir(name))
	if err != nil {
		return folder{}, err
	}
	defer above.Close()
	f, err = d.makeFolder(above, filepath.Base(name))
	if err != nil {
		return f, err
	}
	if err := d.permit(f, 0o755, anyGroup); err != nil {
		f.Close()
		return folder{}, err
	}
	return f, nil
}

// take makes the directory d's own.
func (d *Dir) take(o Options) (err error) {
	if d.gid, err = lookupGroup(o.Group, d.root); err != nil {
		return err
	}
	if err := d.ensureFolder(private, 0o700, anyGroup); err != nil {
		return err
	}
	if d.lock, err = d.acquire(); err != nil {
		return err
	}
	return d.begin()
}

// begin calls tidy before any change. A file that can't be removed mostly belongs to somebody else; begin
// works around the file, which must not prevent a publish.
func (d *Dir) begin() error {
	d.started = false
	err := d.tidy()
	d.started = true
	return err
}

// tidy restores our own folders: they exist, the stage is empty, and saved bytes and bases that no record
// needs are gone.
func (d *Dir) tidy() error {
	if err := d.holding(); err != nil {
		return err
	}
	err := d.emptyStage()
	if uerr := d.ensureFolder(undoPath, 0o700, anyGroup); uerr != nil {
		return errors.Join(err, uerr)
	}
	in, ierr := readIntent(d.root)
	if ierr != nil {
		return errors.Join(err, ierr)
	}
	return errors.Join(err, d.clear(undoPath, in.needs()), d.clearBases(in))
}

// clearBases removes the bases that neither the manifest nor the intent in refers to.
func (d *Dir) clearBases(in *Intent) error {
	switch _, err := d.root.stat(basesPath); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	m, err := d.reader.manifestIn(d.root)
	if err != nil {
		return nil // the next Plan or Publish says why
	}
	return d.clear(basesPath, basesOf(m, in))
}

// basesOf returns the bases that the manifest and the intent refer to.
func basesOf(m Manifest, in *Intent) map[string]bool {
	keep := make(map[string]bool)
	if b := m.Files.base; b != nil {
		keep[b.sum] = true
	}
	if in != nil && in.Manifest.Files.base != nil {
		keep[in.Manifest.Files.base.sum] = true
	}
	return keep
}

func (d *Dir) emptyStage() error {
	if err := d.ensureFolder(stagePath, 0o700, anyGroup); err != nil {
		return err
	}
	return d.clear(stagePath, nil)
}

// usable fails when d may not write any more.
func (d *Dir) usable(op string) error {
	if d.lock == nil {
		return fmt.Errorf("%s %s: %w", op, d.out, os.ErrClosed)
	}
	if err := d.holding(); err != nil {
		return fmt.Errorf("%s %s: %w", op, d.out, err)
	}
	return nil
}

// holding returns ErrLost if the directory was removed, or if its path leads elsewhere: another writer may
// hold the new directory. Another error means that the answer is unknown. holding is called whenever time may
// have passed.
func (d *Dir) holding() error {
	there, err := openOut(d.given)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return ErrLost
	case err != nil:
		return err
	}
	defer there.Close()
	if err := sameFile(there, d.root); err != nil {
		return err
	}
	return d.stillHolds()
}

// sameFile is ErrLost if two open files are not the same.
func sameFile(theirs, ours file) error {
	is, err := infoOf(theirs)
	if err != nil {
		return err
	}
	was, err := infoOf(ours)
	if err == nil && !is.SameFile(was.Signature) {
		err = ErrLost
	}
	return err
}

// Lost reports whether the directory was removed or replaced, or its path leads to another directory.
func (d *Dir) Lost() bool { return errors.Is(d.holding(), ErrLost) }

// Close releases the lock. The lock file stays: whoever unlinked it could take
// the name from under a writer that has just locked it.
func (d *Dir) Close() error {
	if d.lock == nil {
		return fmt.Errorf("close %s: %w", d.out, os.ErrClosed)
	}
	err := errors.Join(release(d.lock), d.root.Close())
	d.lock = nil
	return err
}

// Path returns the path of the directory, absolute and without symbolic links, as it was opened.
func (d *Dir) Path() string { return d.out }

// Reader returns the Reader of the directory, which knows what d has written.
func (d *Dir) Reader() *Reader { return d.reader }

// path is where the file name, relative to OUT, stands on disk.
func (d *Dir) path(name string) string { return d.root.path(name) }

// lookupGroup is the number of group; of the group of out when group is empty.
func lookupGroup(group string, out folder) (int, error) {
	if group == "" {
		info, err := out.info()
		return info.group, err
	}
	return usergroup.ID(group)
}
