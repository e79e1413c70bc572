package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"xdspub/internal/safefile"
)

// LockedError means that another writer has the directory.
type LockedError struct {
	PID  int    // of the writer; 0 when it has not written it down yet
	Path string // of the lock file
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s: held by another process, which publishes into this directory: stop it, or publish into another directory", e.Path)
	}
	return fmt.Sprintf("lock %s: held by process %d, which publishes into this directory: stop it, or publish into another directory", e.Path, e.PID)
}

// ErrLost means that the directory was removed or replaced: the lock is on a file without a path. Open the
// directory again.
var ErrLost = errors.New("the directory was removed or replaced while xdspub was publishing into it")

// lockPath is the lock file, below OUT.
const lockPath = private + "/lock"

// stillHolds returns ErrLost if another writer would lock another file.
func (d *Dir) stillHolds() error {
	ours, err := infoOf(d.lock)
	if err != nil {
		return err
	}
	theirs, err := d.root.stat(lockPath)
	switch {
	case errors.Is(err, fs.ErrNotExist), isOther(err), err == nil && !theirs.SameFile(ours.Signature):
		return ErrLost
	}
	return err
}

// acquire locks the lock file and writes our pid into it. The kernel releases
// the lock when its holder dies, in whatever way, so what counts is the lock
// and never that the file exists.
func (d *Dir) acquire() (file, error) {
	in, name, err := d.root.split(lockPath)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := d.disk.OpenFile(in, name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = d.lockFile(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (d *Dir) lockFile(f file) error {
	info, err := infoOf(f)
	switch {
	case err != nil:
		return err
	case !info.Mode.IsRegular():
		return fmt.Errorf("lock %s: %w: remove it", f.Name(), safefile.ErrNotRegular)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return &LockedError{PID: holder(d.root), Path: f.Name()}
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	case info.names > 1:
		return nil // a hard link: the file may also be somebody's file elsewhere, so nothing is written into it
	}
	// Of one width, so that one write replaces the pid of the former holder
	// and nobody reads an empty file.
	_, err = fmt.Fprintf(f, "%-10d\n", os.Getpid())
	return err
}

// release unlocks and closes f. The unlock is explicit because a child that is
// being started holds a copy of the descriptor until it execs, and with it the
// lock.
func release(f file) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return errors.Join(err, f.Close())
}

// maxLock bounds what is read of the lock file, in bytes.
const maxLock = 1 << 10

// holder returns the pid in the lock file, or 0.
func holder(root folder) int {
	data, _, err := root.read(lockPath, maxLock)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(data), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0
	}
	return pid
}
