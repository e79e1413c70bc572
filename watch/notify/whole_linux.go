package notify

import (
	"errors"

	"golang.org/x/sys/unix"

	"xdspub/internal/safefile"
)

// openForWriting reports whether a process has the regular file at path open for writing. known is false if
// the system doesn't tell: the kernel answers only for files of this process's user, or to root.
func openForWriting(path string) (open, known bool) {
	f, _, err := safefile.Open(path)
	if err != nil {
		return false, false
	}
	defer f.Close() // with the lease
	// The kernel grants a read lease if no process has the file open for writing. This is the only way to
	// ask, because fsnotify doesn't report closed files.
	switch _, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); {
	case err == nil:
		return false, true
	case errors.Is(err, unix.EAGAIN):
		return true, true
	default:
		return false, false
	}
}
