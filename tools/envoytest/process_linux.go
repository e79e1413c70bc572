package envoytest

import "syscall"

// processAttributes put Envoy into a process group of its own, so that an
// interrupt from the terminal reaches only the test, which then ends Envoy. And
// Envoy dies with the test binary: one that crashes or runs into its time limit
// does no cleanup, and an orphan would hold inotify instances that later tests
// need.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
