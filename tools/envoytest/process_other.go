//go:build !linux

package envoytest

import "syscall"

// processAttributes put Envoy into a process group of its own, so that an
// interrupt from the terminal reaches only the test, which then ends Envoy.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
