// Package memdir makes the directories of tests that write and flush a lot.
package memdir

import (
	"os"
	"testing"
)

// New returns a directory that is removed at the end of the test. The directory is in memory if the system has
// /dev/shm, because fsync on a disk takes long and makes no difference to a process.
func New(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "xdspub-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
