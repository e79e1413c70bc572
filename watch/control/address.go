package control

import "syscall"

// maxPath is the longest path of a socket that the system takes: its address ends
// with a zero byte.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// address returns a name of the socket at path that is short enough. It is good until
// done is called.
func address(path string) (name string, done func(), err error) {
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	return shorten(path)
}
