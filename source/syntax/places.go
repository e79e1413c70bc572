package syntax

import (
	"bytes"
	"sort"
	"unicode/utf8"

	"xdspub/diag"
)

// Places finds lines and columns in a text, in a time that does not depend on
// its length: a file of ten thousand resources may have a finding in each.
type Places struct {
	Lines []int // offsets at which lines begin
	runes []int // runes before each block of runeBlock bytes
}

const runeBlock = 1 << 10

func placesOf(data []byte) Places {
	p := Places{Lines: []int{0}, runes: []int{0}}
	for i, b := range data {
		if b == '\n' {
			p.Lines = append(p.Lines, i+1)
		}
	}
	for block := data; len(block) >= runeBlock; block = block[runeBlock:] {
		p.runes = append(p.runes, p.runes[len(p.runes)-1]+runesIn(block[:runeBlock]))
	}
	return p
}

// runesTo is the number of runes before an offset.
func (p Places) runesTo(data []byte, offset int) int {
	block := offset / runeBlock
	return p.runes[block] + runesIn(data[block*runeBlock:offset])
}

// offsetOf is the offset behind that many runes.
func (p Places) offsetOf(data []byte, runes int) int {
	block := max(sort.SearchInts(p.runes, runes+1)-1, 0)
	at := block * runeBlock
	for left := runes - p.runes[block]; at < len(data) && (left > 0 || !utf8.RuneStart(data[at])); at++ {
		if utf8.RuneStart(data[at]) {
			left--
		}
	}
	return at
}

// runesIn counts the first bytes of runes, so that parts of a text add up.
func runesIn(part []byte) int {
	n := 0
	for _, b := range part {
		if utf8.RuneStart(b) {
			n++
		}
	}
	return n
}

// yamlLines is where YAML sees lines of text begin. For YAML 1.1 more
// characters break a line than for an editor.
func yamlLines(text []byte) []int {
	starts := []int{0}
	for pos := 0; pos < len(text); {
		pos += YAMLLine(text[pos:])
		starts = append(starts, pos)
	}
	return starts
}

// YAMLLine is the length of the first line of text with its line break. It looks no further than
// in proportion to that: a text may have no \n.
func YAMLLine(text []byte) int {
	for part := 512; part < len(text); part *= 4 {
		if n := yamlBreak(text, part); n > 0 {
			return n
		}
	}
	if n := yamlBreak(text, len(text)); n > 0 {
		return n
	}
	return len(text)
}

// yamlBreak returns the offset behind the first line break that begins in text[:part], or 0.
func yamlBreak(text []byte, part int) int {
	line, end := text[:part], 0
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line, end = text[:i], i+1
	}
	if bytes.IndexByte(line, '\r') < 0 && bytes.IndexByte(line, 0xc2) < 0 && bytes.IndexByte(line, 0xe2) < 0 {
		return end
	}
	for i, r := range string(line) {
		switch r {
		case '\r':
			if i+1 < len(text) && text[i+1] == '\n' {
				return i + 2
			}
			return i + 1
		case '\u0085', '\u2028', '\u2029':
			return i + utf8.RuneLen(r)
		}
	}
	return end
}

// FileRange is that of a finding about a whole file.
func FileRange(name string) diag.Range { return diag.PointAt(diag.Position{File: name}) }
