package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// unprivileged COMMAND ARG… runs a command without the rights of root over files.
func unprivileged() {
	runtime.LockOSThread() // capabilities belong to a thread
	for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
		if os.Geteuid() != 0 {
			break
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			fatal(err)
		}
	}
	become(os.Args[1:])
}

// mounted DIR OPTIONS COMMAND ARG… runs a command in a new mount namespace with a tmpfs at DIR. Both end with
// the command.
func mounted() {
	const inside = "XDSPUB_TEST_MOUNTED"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
		}
		if err := cmd.Run(); err != nil {
			if cmd.ProcessState == nil {
				fatal(err)
			}
			os.Exit(cmd.ProcessState.ExitCode())
		}
		return
	}
	os.Unsetenv(inside)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fatal(err)
	}
	if err := unix.Mount("tmpfs", os.Args[1], "tmpfs", 0, os.Args[2]); err != nil {
		fatal(err)
	}
	become(os.Args[3:])
}

func become(args []string) {
	name, err := exec.LookPath(args[0])
	if err == nil {
		err = unix.Exec(name, args, os.Environ())
	}
	fatal(err)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
