//go:build darwin || freebsd

package safefile

import (
	"syscall"
	"time"
)

// changed returns when the file's inode changed last.
func changed(sys *syscall.Stat_t) int64 {
	return time.Unix(int64(sys.Ctimespec.Sec), int64(sys.Ctimespec.Nsec)).UnixNano()
}
