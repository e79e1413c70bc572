package publish

import "golang.org/x/sys/unix"

// mount returns the number of the mount that what is at a name belongs to; 0 where the
// kernel, before 5.8, does not tell.
func (f folder) mount(name string) uint64 {
	var s unix.Statx_t
	err := unix.Statx(f.fd(), name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &s)
	if err != nil || s.Mask&unix.STATX_MNT_ID == 0 {
		return 0
	}
	return s.Mnt_id
}
