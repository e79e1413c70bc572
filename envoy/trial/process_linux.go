package trial

import "syscall"

// processAttributes puts Envoy into its own process group, out of reach of an interrupt from the terminal:
// Envoy ends with the context. Envoy also dies with this process, whatever the cause.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
