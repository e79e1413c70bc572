//go:build !linux

package hook_test

import (
	"fmt"
	"syscall"
	"testing"
)

// noProcess fails if a process still runs.
func noProcess(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprint("the end of process ", pid), func() bool { return syscall.Kill(pid, 0) != nil })
	}
}
