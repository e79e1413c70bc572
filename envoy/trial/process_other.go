//go:build !linux

package trial

import "syscall"

// processAttributes put Envoy into a process group of its own, which an interrupt from the terminal
// does not reach: it ends with the context.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
