package safefile

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// kernelFileSystems are the file systems whose content the kernel makes when a file is read. The last three have no
// name in package unix: configfs, fusectl and mqueue.
var kernelFileSystems = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.SELINUX_MAGIC, unix.SMACK_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC,
	unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.NSFS_MAGIC, unix.BINFMTFS_MAGIC, unix.RDTGROUP_SUPER_MAGIC,
	unix.DEVPTS_SUPER_MAGIC, unix.ANON_INODE_FS_MAGIC, 0x62656570, 0x65735543, 0x19800202,
}

// checkFileSystem returns an error for a file of such a file system, because the type and size of the file look
// like those of any other file.
func checkFileSystem(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var on unix.Statfs_t
	if cerr := conn.Control(func(fd uintptr) { err = unix.Fstatfs(int(fd), &on) }); cerr != nil {
		return cerr
	}
	if err != nil {
		return os.NewSyscallError("fstatfs", err)
	}
	if slices.Contains(kernelFileSystems, int64(on.Type)) {
		return ErrKernel
	}
	return nil
}
