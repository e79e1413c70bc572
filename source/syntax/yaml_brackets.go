package syntax

import (
	"bytes"
	"fmt"
)

// bracket is an open bracket.
type bracket struct {
	at   int
	open byte
	// colons counts those since the last comma, filled says that a value stands behind the
	// last comma or colon.
	colons int
	filled bool
	end    int // of that value
	before int // end of the key in front of it
}

// brackets reads a list in [] or a mapping in {}, which may go on for several lines.
func (s *yamlSearch) brackets(at int) *mistake {
	var open []bracket
	_, end := s.bounds(s.line - 1)
	for i := at; i < len(s.text); {
		if i >= end { // the next line
			if i = s.starts[s.line]; i == len(s.text) {
				break
			}
			if m := s.unclosedAt(open, i); m != nil {
				return m
			}
			_, end = s.bounds(s.line)
			s.line++
			continue
		}
		switch c := s.text[i]; c {
		case ' ', '\t', '\r':
			i++
		case '#':
			i = end
		case '{', '[':
			if len(open) > 0 {
				if m := open[len(open)-1].fill(); m != nil {
					return m
				}
			}
			open = append(open, bracket{at: i, open: c})
			i++
		case '}', ']':
			top := open[len(open)-1]
			if c != closing(top.open) {
				return closesOther(i, c, top.at, top.open)
			}
			i++
			if open = open[:len(open)-1]; len(open) == 0 {
				return s.behind(i, end)
			}
			open[len(open)-1].end = i
		default:
			next, m := s.inBrackets(&open[len(open)-1], i, end)
			if m != nil {
				return m
			}
			i = next
		}
	}
	if len(open) > 0 {
		return open[len(open)-1].notClosed()
	}
	return nil
}

// inBrackets reads the value, or what stands between two, that begins at an offset of a line
// between brackets, and returns where the next thing begins.
func (s *yamlSearch) inBrackets(b *bracket, at, end int) (next int, m *mistake) {
	switch c := s.text[at]; c {
	case ',':
		b.colons, b.filled = 0, false
		return at + 1, nil
	case ':':
		if b.colons++; b.colons > 1 {
			return 0, missingComma(b.before)
		}
		b.filled, b.before = false, b.end
		return at + 1, nil
	case '&', '!':
		return at + propertyInBrackets(s.text[at:end]), nil
	case '"', '\'':
		if m := b.fill(); m != nil {
			return 0, m
		}
		next = at + endOfQuoted(s.text[at:], 0)
		if next > end || !closesQuote(s.text[at:], next-at) {
			return 0, &mistake{At: Span{at, end}, Message: "the quote is not closed", Help: fmt.Sprintf("write %c at the end of the text", c)}
		}
		m = s.escapes(at, next)
	default:
		if m := s.badStart(at, end); m != nil {
			return 0, m
		}
		next = at + max(plainInBrackets(s.text[at:end]), 1)
		m = b.fill()
	}
	b.end = next
	return next, m
}

func (b bracket) notClosed() *mistake { return notClosed(b.at, b.open) }

// fill takes a value up. It must not stand behind another one.
func (b *bracket) fill() *mistake {
	if b.filled {
		return missingComma(b.end)
	}
	b.filled = true
	return nil
}

// unclosedAt returns the mistake of brackets that are open at the beginning of a line that looks like a line
// outside of brackets.
func (s *yamlSearch) unclosedAt(open []bracket, at int) *mistake {
	start, end := s.bounds(s.line)
	content := bytes.TrimLeft(s.text[start:end], " ")
	if len(open) == 0 || len(content) == 0 || !looksLikeEntry.Match(content) {
		return nil
	}
	if isItem(content) || end-len(content)-start <= s.column() && content[0] != '"' {
		return open[len(open)-1].notClosed()
	}
	return nil
}

// propertyInBrackets is the length of an anchor or a tag between brackets.
func propertyInBrackets(text []byte) int {
	ends := " \t,[]{}"
	if bytes.HasPrefix(text, []byte("!<")) {
		ends = " \t"
	}
	if i := bytes.IndexAny(text[1:], ends); i >= 0 {
		return 1 + i
	}
	return len(text)
}

// plainInBrackets is the length of a value without quotes between brackets.
func plainInBrackets(text []byte) int {
	for i, c := range text {
		switch {
		case c == ',' || c == '[' || c == ']' || c == '{' || c == '}':
			return i
		case c == ':' && (i+1 == len(text) || bytes.IndexByte([]byte(" \t,[]{}"), text[i+1]) >= 0):
			return i
		case c == '#' && i > 0 && text[i-1] == ' ':
			return i
		}
	}
	return len(text)
}
