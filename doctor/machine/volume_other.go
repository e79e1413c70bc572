//go:build !linux

package machine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// VolumeOf returns the file system of a path, without its kind, which only Linux tells by a number.
func VolumeOf(path string) (Volume, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Volume{}, fmt.Errorf("statfs %s: %w", path, err)
	}
	return Volume{
		ReadOnly: uint64(s.Flags)&unix.MNT_RDONLY != 0, Free: uint64(s.Bavail) * uint64(s.Bsize), Inodes: uint64(s.Ffree), Limited: s.Files > 0,
	}, nil
}

// HasACL returns false: only Linux is asked for access control lists.
func HasACL(string) bool { return false }
