//go:build !linux

package hook

import "syscall"

// processAttributes puts a program into its own process group, out of reach of an interrupt from the terminal.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
