package notify

import (
	"errors"

	"golang.org/x/sys/unix"

	"xdspub/internal/safefile"
)

// openForWriting reports whether some process has the regular file at path open for
// writing. It is not known where the system does not tell us: it does so about files of the
// user that this process runs as, and to root about all.
func openForWriting(path string) (open, known bool) {
	f, _, err := safefile.Open(path)
	if err != nil {
		return false, false
	}
	defer f.Close() // with the lease
	// The kernel gives a read lease where nobody has the file open for writing: the only
	// question that it answers. fsnotify does not pass on that a file was closed.
	switch _, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); {
	case err == nil:
		return false, true
	case errors.Is(err, unix.EAGAIN):
		return true, true
	default:
		return false, false
	}
}
