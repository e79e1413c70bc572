package publish

import "golang.org/x/sys/unix"

// Many is the number of files and folders above which flushing the whole file system is faster than flushing
// them one by one. A flush of the file system also writes other programs' changes, so it is not for a few
// files.
func (osDisk) Many() int { return 100 }

// SyncAll flushes the file system of a folder. Before Linux 5.8, SyncAll does not report failed writes.
func (osDisk) SyncAll(in folder) error { return in.failed("sync", ".", unix.Syncfs(in.fd())) }
