package publish

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// Options of an output directory. The zero value is good.
type Options struct {
	// Group is the name or number of the group that may read secret files:
	// Envoy's, mostly. Empty means the group that owns OUT.
	Group string
	// Log is told what goes out; nil discards.
	Log *slog.Logger
}

// Dir is an output directory that is open for writing. At any time it has one
// Dir at most, over all processes. Its methods are not for concurrent use.
type Dir struct {
	out  string // absolute, without symbolic links
	gid  int    // of secret files
	log  *slog.Logger
	disk disk
	lock file // nil when closed
}

// Open makes the directory out when it is missing, locks it, and clears away
// what a killed writer left in the stage. When another writer has it the error
// is a *LockedError.
func Open(out string, o Options) (*Dir, error) {
	return open(out, o, osDisk{})
}

func open(out string, o Options, real disk) (*Dir, error) {
	d := &Dir{log: o.Log, disk: real}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if err := d.find(out); err != nil {
		return nil, err
	}
	var err error
	if d.gid, err = lookupGroup(o.Group, d.out); err != nil {
		return nil, err
	}
	if err := d.ensureFolder(d.path(private), 0o700, anyGroup); err != nil {
		return nil, err
	}
	if d.lock, err = acquire(d.disk, d.path(lockPath)); err != nil {
		return nil, err
	}
	if err := d.tidy(); err != nil {
		release(d.lock)
		return nil, err
	}
	return d, nil
}

// tidy sees to our own folders: they are there, the stage is empty, and no bytes are
// saved that no way back needs.
func (d *Dir) tidy() error {
	if err := d.holding(); err != nil {
		return err
	}
	err := d.emptyStage()
	if uerr := d.ensureFolder(d.path(undoPath), 0o700, anyGroup); uerr != nil {
		return errors.Join(err, uerr)
	}
	in, ierr := ReadIntent(d.out)
	if ierr != nil {
		return errors.Join(err, ierr)
	}
	return errors.Join(err, d.clear(undoPath, in.needs()))
}

func (d *Dir) emptyStage() error {
	if err := d.ensureFolder(d.path(stagePath), 0o700, anyGroup); err != nil {
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

// holding is ErrLost when the directory was taken away: another writer may have
// what stands in its place. It is asked whenever time may have passed.
func (d *Dir) holding() error {
	if !stillHolds(d.lock, d.path(lockPath)) {
		return ErrLost
	}
	return nil
}

// find sets where the directory is, once: later changes of the working
// directory, or of a symbolic link, must not lead a running writer elsewhere.
func (d *Dir) find(out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	fi, err := statFolder(out)
	if err != nil {
		return err
	}
	if fi == nil { // one that exists keeps the mode that it has
		if err := d.ensureFolder(out, 0o755, anyGroup); err != nil {
			return err
		}
	}
	d.out, err = filepath.EvalSymlinks(out)
	return err
}

// Close releases the lock. The lock file stays: whoever unlinked it could take
// the name from under a writer that has just locked it.
func (d *Dir) Close() error {
	if d.lock == nil {
		return fmt.Errorf("close %s: %w", d.out, os.ErrClosed)
	}
	err := release(d.lock)
	d.lock = nil
	return err
}

// Path is the directory, absolute and without symbolic links, as it was opened.
func (d *Dir) Path() string { return d.out }

// path is where the file name, relative to OUT, stands on disk.
func (d *Dir) path(name string) string { return filepath.Join(d.out, name) }

// lookupGroup is the number of group; of the group of out when group is empty.
func lookupGroup(group, out string) (int, error) {
	if group == "" {
		fi, err := os.Stat(out)
		if err != nil {
			return 0, err
		}
		return int(stat(fi).Gid), nil
	}
	if gid, err := strconv.ParseUint(group, 10, 31); err == nil {
		return int(gid), nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return 0, fmt.Errorf("lookup group %q: %w", group, err)
	}
	return strconv.Atoi(g.Gid)
}
