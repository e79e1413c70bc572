//go:build darwin || freebsd

package safefile

import (
	"syscall"
	"time"
)

// changed returns the time of the last change of the file's inode, in ns since 1970.
func changed(sys *syscall.Stat_t) int64 {
	return time.Unix(int64(sys.Ctimespec.Sec), int64(sys.Ctimespec.Nsec)).UnixNano()
}
