package safefile

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// kernelFileSystems hold files that the kernel makes up while they are read. The
// last three have no name in package unix: configfs, fusectl and mqueue.
var kernelFileSystems = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.SELINUX_MAGIC, unix.SMACK_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC,
	unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.NSFS_MAGIC, unix.BINFMTFS_MAGIC, unix.RDTGROUP_SUPER_MAGIC,
	unix.DEVPTS_SUPER_MAGIC, unix.ANON_INODE_FS_MAGIC, 0x62656570, 0x65735543, 0x19800202,
}

// checkFileSystem refuses a file of a kernel's file system, because its type and size look like those of any
// file.
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
