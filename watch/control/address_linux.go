package control

import (
	"fmt"
	"os"
	"path/filepath"
)

// shorten returns a socket name that goes through the descriptor of the socket's folder. The descriptor stays
// open until done is called.
func shorten(path string) (name string, done func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { dir.Close() }, nil
}
