package envoytest

import "syscall"

// processAttributes puts Envoy into its own process group, so that an interrupt from the terminal reaches only the
// test, which then ends Envoy. Envoy also dies with the test binary: a binary that crashes or exceeds its time
// limit calls no cleanup, and an orphan would hold inotify instances that later tests need.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
