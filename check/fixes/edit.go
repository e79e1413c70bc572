package fixes

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"xdspub/diag"
)

var errNoSuchPlace = errors.New("an edit is not in the text")

// edit returns a text with sorted edits, which do not overlap. Columns count characters, as in findings.
func edit(text []byte, edits []diag.Edit) ([]byte, error) {
	rest := strings.TrimPrefix(string(text), byteOrderMark)
	c := cursor{rest: rest, line: 1, column: 1}
	var out strings.Builder
	out.WriteString(string(text[:len(text)-len(rest)]))
	for _, e := range edits {
		between, ok := c.advance(e.Line, e.Column)
		_, whole := c.advance(e.EndLine, e.EndColumn)
		if !ok || !whole {
			return nil, errNoSuchPlace
		}
		out.WriteString(between)
		out.WriteString(e.Text)
	}
	out.WriteString(c.rest)
	return []byte(out.String()), nil
}

// byteOrderMark is no character of the first line.
const byteOrderMark = "\ufeff"

// cursor is a place in a text.
type cursor struct {
	rest         string // the text behind the place
	line, column int
}

// advance moves the cursor forward, and returns the text in between. ok is false if the text has no such place.
func (c *cursor) advance(line, column int) (passed string, ok bool) {
	begin := c.rest
	for c.line < line {
		end := strings.IndexByte(c.rest, '\n')
		if end < 0 {
			return "", false
		}
		c.rest, c.line, c.column = c.rest[end+1:], c.line+1, 1
	}
	for c.column < column && c.rest != "" && c.rest[0] != '\n' {
		_, size := utf8.DecodeRuneInString(c.rest)
		c.rest, c.column = c.rest[size:], c.column+1
	}
	return begin[:len(begin)-len(c.rest)], c.line == line && c.column == column
}

// hasRoom reports whether an edit can be made together with sorted edits of the same file: no two edits change the
// same text, or insert at the same place.
func hasRoom(edits []diag.Edit, e diag.Edit) bool {
	i, same := slices.BinarySearchFunc(edits, e, byPlace)
	return !same && (i == 0 || !endsBehind(edits[i-1], e)) && (i == len(edits) || !endsBehind(e, edits[i]))
}

// insert adds an edit to sorted edits.
func insert(edits []diag.Edit, e diag.Edit) []diag.Edit {
	i, _ := slices.BinarySearchFunc(edits, e, byPlace)
	return slices.Insert(edits, i, e)
}

// byPlace orders edits of one file, which may have several names.
func byPlace(a, b diag.Edit) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// endsBehind reports whether an edit ends behind the beginning of another.
func endsBehind(e, other diag.Edit) bool {
	return cmp.Or(cmp.Compare(e.EndLine, other.Line), cmp.Compare(e.EndColumn, other.Column)) > 0
}
