// Package bounded keeps a bounded part of the output of another program.
package bounded

import (
	"bytes"
	"fmt"
)

// Buffer keeps at most Max bytes. A Write beyond Max fails, which usually ends the writing program.
type Buffer struct {
	Max  int
	text bytes.Buffer // not embedded, because ReadFrom of bytes.Buffer has no bound
	full bool
}

// Write keeps all of p. If p does not fit, Write keeps nothing of p and returns an error.
func (b *Buffer) Write(p []byte) (int, error) {
	if b.full = b.text.Len()+len(p) > b.Max; b.full {
		return 0, fmt.Errorf("it printed more than %d bytes", b.Max)
	}
	return b.text.Write(p)
}

// Full reports whether the last Write failed.
func (b *Buffer) Full() bool { return b.full }

// String returns the bytes that Buffer keeps.
func (b *Buffer) String() string { return b.text.String() }
