package syntax

import (
	"bytes"
	"fmt"
)

// bracketScan is what stands in front of an offset of a text that is no JSON, or no text proto.
type bracketScan struct {
	text []byte
	open []int // offsets of the brackets that are open
	// lines has the line of each open bracket, line the current line of the scan.
	lines []lineStart
	line  lineStart
	// last and end are where the value, or bracket, in front of the offset begins and ends.
	last, end int
	inText    int // where the text in quotes that the offset is in begins, or -1
	// neighbours has the indent of the first line in each open bracket, and of the first line outside of all;
	// -1 if no line has come yet.
	neighbours []int
	// odd is the first line with another indent than its neighbours, or the first bracket with another indent
	// than the line of its opening bracket. If people arrange brackets by lines, a bracket above is missing or
	// surplus.
	odd *mistake
}

// scanBrackets goes through a text up to an offset. A text proto has comments, and quotes of two
// kinds.
func scanBrackets(text []byte, to int, isProto bool) bracketScan {
	s := bracketScan{text: text, inText: -1, neighbours: []int{-1}}
	s.line.content = len(text) - len(bytes.TrimLeft(text, " \t"))
	for i := 0; i < min(to, len(text)); {
		start := i
		switch c := text[i]; {
		case c == '\n':
			i++
			s.line = lineStart{at: i, content: i + len(text[i:]) - len(bytes.TrimLeft(text[i:], " \t"))}
			i = s.line.content
			s.lineUp(to)
			continue
		case bytes.IndexByte([]byte(JSONSpace+",:;"), c) >= 0:
			i++
			continue
		case c == '#' && isProto:
			i += lineLength(text[i:])
			continue
		case c == '{' || c == '[':
			s.open = append(s.open, i)
			s.lines, s.neighbours = append(s.lines, s.line), append(s.neighbours, -1)
			i++
		case c == '}' || c == ']':
			s.close(i)
			i++
		case c == '"' || c == '\'' && isProto:
			end := i + 1
			for end < len(text) && text[end] != c && text[end] != '\n' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			if i = min(end+1, len(text)); end >= to {
				s.inText = start
				return s
			}
		default:
			for i++; i < min(to, len(text)) && bytes.IndexByte([]byte(" \t\r\n,:;[]{}\""), text[i]) < 0; i++ {
			}
		}
		s.last, s.end = start, i
	}
	return s
}

// close handles a bracket that closes the last open bracket.
func (s *bracketScan) close(at int) {
	if len(s.open) == 0 {
		return
	}
	last := len(s.open) - 1
	opened, on := s.open[last], s.lines[last]
	s.open, s.lines, s.neighbours = s.open[:last], s.lines[:last], s.neighbours[:last+1]
	if s.odd != nil || s.line.content != at || s.line == on || s.line.indent() == on.indent() {
		return
	}
	s.odd = &mistake{At: Span{at, at + 1}, Message: fmt.Sprintf("this %c closes a bracket that is opened in another column: a "+
		"bracket is missing above, or too many", s.text[at]),
		Help: "close each bracket in the column of the line that opens it", other: &otherPlace{Span{opened, opened + 1}, "the bracket that it closes"}}
}

// lineUp compares the indent of the line that begins with that of its neighbours.
func (s *bracketScan) lineUp(to int) {
	at := s.line.content
	if at > to || at == len(s.text) || bytes.IndexByte([]byte("}]#\r\n"), s.text[at]) >= 0 {
		return
	}
	switch first := &s.neighbours[len(s.neighbours)-1]; {
	case *first < 0:
		*first = s.line.indent()
	case *first != s.line.indent() && s.odd == nil:
		s.odd = &mistake{At: Span{at, at + 1}, Message: "this line is indented otherwise than its neighbours: a bracket is missing above, or too many",
			Help: "open a bracket at the end of the line above, or close one"}
	}
}

// lineStart has the offsets of a line and of its content.
type lineStart struct{ at, content int }

func (l lineStart) indent() int { return l.content - l.at }

// unclosed is the mistake of a text that ends too early.
func (s *bracketScan) unclosed() *mistake {
	switch {
	case s.odd != nil:
		return s.odd
	case s.inText >= 0:
		return &mistake{At: Span{s.inText, s.inText + 1}, Message: "the quote is not closed", Help: `write " at the end of the text`}
	case len(s.open) == 0:
		end := len(bytes.TrimRight(s.text, JSONSpace))
		return &mistake{At: Span{end, end}, Message: "the file ends too early", Help: "write the rest of it"}
	}
	at := s.open[len(s.open)-1]
	return notClosed(at, s.text[at])
}

// wrongBracket returns the mistake of a bracket that does not match the open bracket.
func (s *bracketScan) wrongBracket(at int) *mistake {
	c := s.text[at]
	if s.odd != nil {
		return s.odd
	}
	if len(s.open) == 0 {
		return closesNothing(at, c)
	}
	opened := s.open[len(s.open)-1]
	switch want := closing(s.text[opened]); {
	case want == c && s.text[s.last] == '"' && c == '}':
		return &mistake{At: Span{at, at + 1}, Message: "a name has no value", Help: `write "name": value`}
	case want == c:
		return &mistake{At: Span{at, at + 1}, Message: fmt.Sprintf("a value is missing in front of this %c", c), Help: "write the value, or remove its name"}
	default:
		return closesOther(at, c, opened, s.text[opened])
	}
}
