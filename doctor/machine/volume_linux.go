package machine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// remote are the file systems that report no changes by others, by the magic number of statfs.
var remote = map[int64]string{
	unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.CIFS_SUPER_MAGIC: "cifs", unix.SMB2_SUPER_MAGIC: "smb2",
	unix.V9FS_MAGIC: "9p", unix.FUSE_SUPER_MAGIC: "fuse", unix.AFS_SUPER_MAGIC: "afs", unix.AFS_FS_MAGIC: "afs",
	unix.CODA_SUPER_MAGIC: "coda", unix.CEPH_SUPER_MAGIC: "ceph", unix.OCFS2_SUPER_MAGIC: "ocfs2",
	0x01161970: "gfs2", 0x0bd00bd0: "lustre", 0x47504653: "gpfs", 0x786f4256: "vboxsf", 0xbacbacbc: "vmhgfs",
}

// VolumeOf returns the file system of a path.
func VolumeOf(path string) (Volume, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Volume{}, fmt.Errorf("statfs %s: %w", path, err)
	}
	v := Volume{
		ReadOnly: s.Flags&unix.ST_RDONLY != 0, Free: s.Bavail * uint64(s.Bsize), Inodes: s.Ffree, Limited: s.Files > 0,
	}
	v.Kind, v.Remote = kindOf(int64(uint32(s.Type)))
	return v, nil
}

// kindOf returns the name of the file system with a magic number, and whether it is remote.
func kindOf(magic int64) (kind string, isRemote bool) {
	if kind, isRemote = remote[magic]; isRemote {
		return kind, true
	}
	if magic == unix.OVERLAYFS_SUPER_MAGIC {
		return "overlay", false
	}
	return "", false
}

// HasACL reports whether a file has an access control list.
func HasACL(path string) bool {
	n, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}
