package control

import (
	"fmt"
	"os"
	"path/filepath"
)

// shorten returns the name of a socket by way of the descriptor of its folder, which
// must stay open for as long as the name is used.
func shorten(path string) (name string, done func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { dir.Close() }, nil
}
