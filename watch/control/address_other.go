//go:build !linux

package control

import "fmt"

// shorten has no way on a system whose folders can't be reached by descriptor.
func shorten(path string) (name string, done func(), err error) {
	return "", nil, fmt.Errorf("the path has %d bytes, and this system allows %d for a socket", len(path), maxPath)
}
