//go:build !linux

package trial

import "syscall"

// processAttributes puts Envoy into its own process group, out of reach of an interrupt from the terminal: Envoy
// ends with the context.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
