//go:build !linux

package operator

import "time"

// uptime takes the start of this process for the start of the machine, because this system has no id of a boot.
func uptime() (start string, up time.Duration) { return uptimeOfProcess() }
