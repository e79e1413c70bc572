package decode

import (
	"bytes"
	"fmt"

	"xdspub/diag"
	"xdspub/source/syntax"
)

const (
	// MaxElements bounds the lines, commas and brackets of a file, and so the values
	// that it can hold: each takes a hundred bytes and more.
	MaxElements = 20_000_000
	// MaxParsed bounds the same in a YAML document that is parsed at once: there each
	// takes a kilobyte. A long list of resources is parsed in pieces.
	MaxParsed = 600_000
)

// elements counts what a text can hold values between, at most.
func elements(text []byte) (n int) {
	for _, mark := range []string{"\n", ",", "{", "["} {
		n += bytes.Count(text, []byte(mark))
	}
	return n
}

// tooMany reports a file with more elements than the limit.
func tooMany(d *decoder) bool {
	s := d.file.Source
	n := elements(s.Data())
	if n <= MaxElements {
		return false
	}
	d.lose(diag.Diagnostic{
		Code: syntax.CodeTooLarge.Name, Position: diag.Position{File: s.Name},
		Message: fmt.Sprintf("the file has %d lines, commas and brackets, the limit is %d", n, MaxElements),
		Help:    "split it: a tree may have many files",
	})
	return true
}

// tooManyAtOnce reports a YAML document with more elements than a parser gets.
func tooManyAtOnce(d *decoder, doc *document) bool {
	n := elements(doc.Text)
	if n <= MaxParsed {
		return false
	}
	d.lose(diag.Diagnostic{
		Code: syntax.CodeTooLarge.Name, Position: diag.Position{File: doc.source.Name},
		Message: fmt.Sprintf("a document of the file has %d lines, commas and brackets, the limit is %d for one that is not a "+
			"plain list of resources, by itself or under resources or static_resources", n, MaxParsed),
		Help: "put --- between its resources, or split the file",
	})
	return true
}
