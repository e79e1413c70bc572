package operator

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns the id of the last boot of this machine, and the time since then. That clock runs on while the
// machine sleeps.
func uptime() (start string, up time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var now unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return uptimeOfProcess()
	}
	return strings.TrimSpace(string(id)), time.Duration(now.Nano())
}
