package safefile

import (
	"syscall"
	"time"
)

// changed returns when the file's inode changed last.
func changed(sys *syscall.Stat_t) int64 {
	return time.Unix(int64(sys.Ctim.Sec), int64(sys.Ctim.Nsec)).UnixNano()
}
