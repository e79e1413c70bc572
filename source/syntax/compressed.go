package syntax

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"weak"
)

// holder holds the content of a source, or a compressed copy of its text: a fifth of the space, and
// mostly nobody asks for it before the file changes.
type holder struct {
	held atomic.Pointer[content] // nil once it is compressed
	// compressed is the text of the content, and size its length.
	compressed []byte
	size       int
	// lent is the text decompressed last, until the garbage collector takes it.
	lent atomic.Pointer[weak.Pointer[content]]
}

func (s *Text) content() *content {
	h := &s.holder
	if c := h.held.Load(); c != nil {
		return c
	}
	if c := h.lent.Load().Value(); c != nil {
		return c
	}
	c := s.decompressed()
	h.lend(c)
	return c
}

func (h *holder) lend(c *content) {
	lent := weak.Make(c)
	h.lent.Store(&lent)
}

// Size is that of the text.
func (s *Text) Size() int {
	if c := s.holder.held.Load(); c != nil {
		return len(c.data)
	}
	return s.holder.size
}

// Holds reports whether the source's text equals text.
func (s *Text) Holds(text []byte) bool {
	return s.Size() == len(text) && bytes.Equal(s.Data(), text)
}

// worthCompressing is the size from which on a text is compressed.
const worthCompressing = 1 << 10

// Compressor compresses texts one after another.
type Compressor struct {
	out bytes.Buffer
	w   *flate.Writer // nil before the first
}

// compress returns a text in compressed form.
func (p *Compressor) compress(text []byte) (compressed []byte, err error) {
	p.out.Reset()
	if p.w == nil {
		if p.w, err = flate.NewWriter(&p.out, flate.BestSpeed); err != nil {
			return nil, err
		}
	}
	p.w.Reset(&p.out)
	if _, err = p.w.Write(text); err == nil {
		err = p.w.Close()
	}
	return bytes.Clone(p.out.Bytes()), err
}

// Compress compresses the text of the source, unless the source has cached data for places. Compress is safe
// for concurrent use of the source. It reports whether the text is compressed.
func (s *Text) Compress(p *Compressor) bool {
	h := &s.holder
	c := h.held.Load()
	if c == nil {
		return true
	}
	if len(c.data) < worthCompressing || !c.isPlain() {
		return false
	}
	compressed, err := p.compress(c.data)
	if err != nil {
		return false // the text stays uncompressed
	}
	h.compressed, h.size = compressed, len(c.data)
	h.lend(c)
	h.held.Store(nil)
	return true
}

// isPlain reports whether the content follows from its text alone.
func (c *content) isPlain() bool {
	return c.asked.made.Load() == nil && !slices.ContainsFunc(c.documents, func(d *Document) bool { return d.asked.made.Load() != nil })
}

// decompressed returns the content of a compressed source.
func (s *Text) decompressed() *content {
	data := make([]byte, s.holder.size)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(s.holder.compressed)), data); err != nil {
		panic(fmt.Sprintf("decompress %s: %v", s.Name, err))
	}
	c := &content{data: data}
	if s.Format == YAML {
		s.split(c)
	} else {
		s.whole(c)
	}
	return c
}
