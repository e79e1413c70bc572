package publish

import (
	"errors"

	"golang.org/x/sys/unix"
)

// mount returns the number of the mount that the file at a name belongs to; 0 if the kernel,
// before 5.8, or a sandbox does not tell.
func (f folder) mount(name string) (uint64, error) {
	var s unix.Statx_t
	err := unix.Statx(f.fd(), name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &s)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), err == nil && s.Mask&unix.STATX_MNT_ID == 0:
		return 0, nil
	}
	return s.Mnt_id, f.failed("statx", name, err)
}
