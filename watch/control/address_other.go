//go:build !linux

package control

import "fmt"

// shorten always fails: this system can't reach a folder by its descriptor.
func shorten(path string) (name string, done func(), err error) {
	return "", nil, fmt.Errorf("the path has %d bytes, and this system allows %d for a socket: choose a shorter --out", len(path), maxPath)
}
