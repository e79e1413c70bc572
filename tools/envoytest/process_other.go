//go:build !linux

package envoytest

import "syscall"

// processAttributes puts Envoy into its own process group, so that an interrupt from the terminal reaches only the
// test, which then ends Envoy.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
