package control

import "syscall"

// maxPath is the longest socket path that the system accepts. The address ends with a zero byte.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// address returns a short enough name for the socket at path. The name is valid until done is called.
func address(path string) (name string, done func(), err error) {
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	return shorten(path)
}
