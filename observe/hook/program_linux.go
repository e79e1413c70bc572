package hook

import "syscall"

// processAttributes puts a program into its own process group, out of reach of an interrupt from the terminal. The
// program also dies with this process, whatever the cause.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
