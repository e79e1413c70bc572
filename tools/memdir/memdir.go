// Package memdir makes the directories of tests that write and flush a lot.
package memdir

import (
	"os"
	"testing"
)

// New returns a directory that goes with the test: in memory where there is such a file system,
// since a disk is waited for at each fsync, and what a process sees is the same there.
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
