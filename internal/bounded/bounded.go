// Package bounded takes what a program prints that may print anything.
package bounded

import (
	"bytes"
	"fmt"
)

// Buffer keeps at most Max bytes. Further writes fail, which ends the program that prints.
type Buffer struct {
	Max  int
	text bytes.Buffer // not embedded: its ReadFrom has no bound
	full bool
}

// Write takes all of p, or returns an error and takes none of it.
func (b *Buffer) Write(p []byte) (int, error) {
	if b.full = b.text.Len()+len(p) > b.Max; b.full {
		return 0, fmt.Errorf("it printed more than %d bytes", b.Max)
	}
	return b.text.Write(p)
}

// Full reports whether the last Write was refused.
func (b *Buffer) Full() bool { return b.full }

// String returns what was taken.
func (b *Buffer) String() string { return b.text.String() }
