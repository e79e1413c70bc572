package publish

import "golang.org/x/sys/unix"

// Many is how many files and folders take longer to flush one by one than the whole file
// system does. That also writes what others have changed, so it is not for a few.
func (osDisk) Many() int { return 100 }

// SyncAll flushes the file system that a folder is on. Before Linux 5.8 it does not tell
// that something could not be written.
func (osDisk) SyncAll(in folder) error { return in.failed("sync", ".", unix.Syncfs(in.fd())) }
