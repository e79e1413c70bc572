package publish

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LockedError says that another writer has the directory.
type LockedError struct {
	PID  int    // of the writer; 0 when it has not written it down yet
	Path string // of the lock file
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s: held by another process", e.Path)
	}
	return fmt.Sprintf("lock %s: held by process %d", e.Path, e.PID)
}

// ErrLost says that the directory was removed, or replaced by another one: the
// lock is on a file that nobody finds any more. Open it anew.
var ErrLost = errors.New("the directory was removed or replaced, and with it the lock")

// lockPath is the lock file, below OUT.
const lockPath = private + "/lock"

// stillHolds tells whether the file that is locked is the one that another writer
// would meet.
func stillHolds(f file, name string) bool {
	var ours, theirs unix.Stat_t
	return unix.Fstat(int(f.Fd()), &ours) == nil && unix.Stat(name, &theirs) == nil && ours.Dev == theirs.Dev && ours.Ino == theirs.Ino
}

// Lost tells whether the directory was taken away under d.
func (d *Dir) Lost() bool { return !stillHolds(d.lock, d.path(lockPath)) }

// acquire locks the file name and writes our pid into it. The kernel releases
// the lock when its holder dies, in whatever way, so what counts is the lock
// and never that the file exists.
func acquire(d disk, name string) (file, error) {
	f, err := d.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = &LockedError{PID: holder(name), Path: name}
	case err != nil:
		err = fmt.Errorf("lock %s: %w", name, err)
	default:
		// Of one width, so that one write replaces the pid of the former holder
		// and nobody reads an empty file.
		_, err = fmt.Fprintf(f, "%-10d\n", os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// release unlocks and closes f. The unlock is explicit because a child that is
// being started holds a copy of the descriptor until it execs, and with it the
// lock.
func release(f file) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return errors.Join(err, f.Close())
}

// holder is the pid in the lock file, or 0.
func holder(name string) int {
	data, err := readRegular(name)
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
