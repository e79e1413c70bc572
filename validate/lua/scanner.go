package lua

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

type kind int

const (
	end kind = iota
	name
	number
	text
	symbol // an operator or a keyword
)

const eof = "<eof>"

var keywords = []string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
	"local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
}

// symbols lists a longer symbol before its prefixes.
var symbols = []string{
	"...", "..", "==", "~=", "<=", ">=", "::",
	"+", "-", "*", "/", "%", "^", "#", "<", ">", "=", "(", ")", "{", "}", "[", "]", ";", ":", ",", ".",
}

// numeral matches the numbers of LuaJIT: decimal, hexadecimal and binary ones, with the suffixes of 64-bit and
// imaginary numbers.
var numeral = regexp.MustCompile(`(?i)^(?:(?:\d+|0x[0-9a-f]+|0b[01]+)u?ll|` +
	`(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?|0b[01]+)i?)$`)

// scanner splits a script into tokens.
type scanner struct {
	src  []byte
	pos  int
	line int

	kind  kind
	token string // the text of the token
}

func (s *scanner) fail(message string) {
	panic(&Error{Line: s.line, Message: message})
}

func (s *scanner) rest() []byte { return s.src[s.pos:] }

func (s *scanner) peek(i int) byte {
	if s.pos+i < len(s.src) {
		return s.src[s.pos+i]
	}
	return 0
}

func (s *scanner) skipLine() {
	if i := bytes.IndexByte(s.rest(), '\n'); i >= 0 {
		s.pos += i
	} else {
		s.pos = len(s.src)
	}
}

// skipSpace skips white space and comments.
func (s *scanner) skipSpace() {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == '\n':
			s.line++
			s.pos++
		case c == ' ', '\t' <= c && c <= '\r':
			s.pos++
		case c == '-' && s.peek(1) == '-':
			s.pos += 2
			if level := s.longBracket(); level >= 0 {
				s.long(level, "unfinished long comment")
			} else {
				s.skipLine()
			}
		default:
			return
		}
	}
}

func (s *scanner) next() {
	s.skipSpace()
	if s.pos == len(s.src) {
		s.kind, s.token = end, eof
		return
	}
	start := s.pos
	c := s.src[s.pos]
	switch {
	case isDigit(c), c == '.' && isDigit(s.peek(1)):
		s.number()
	case isIdent(c):
		for s.pos < len(s.src) && isIdent(s.src[s.pos]) {
			s.pos++
		}
		s.kind = name
		if slices.Contains(keywords, string(s.src[start:s.pos])) {
			s.kind = symbol
		}
	case c == '"' || c == '\'':
		s.pos++
		s.quoted(c)
		s.kind = text
	case c == '[' && s.longBracket() >= 0:
		s.long(s.longBracket(), "unfinished long string")
		s.kind = text
	case c == '[' && s.peek(1) == '=':
		s.fail("invalid long string delimiter near '[='")
	default:
		s.kind = symbol
		s.pos++ // an unknown character is a symbol, which no statement or expression accepts
		for _, symbol := range symbols {
			if bytes.HasPrefix(s.src[start:], []byte(symbol)) {
				s.pos = start + len(symbol)
				break
			}
		}
	}
	s.token = string(s.src[start:s.pos])
}

func (s *scanner) number() {
	start, exponent := s.pos, byte('e')
	if s.src[s.pos] == '0' && s.peek(1)|0x20 == 'x' {
		exponent = 'p'
	}
	for last := byte(0); s.pos < len(s.src); s.pos++ {
		c := s.src[s.pos]
		if !isIdent(c) && c != '.' && (c != '-' && c != '+' || last|0x20 != exponent) {
			break
		}
		last = c
	}
	s.kind = number
	if n := string(s.src[start:s.pos]); !numeral.MatchString(n) {
		s.fail("malformed number near '" + n + "'")
	}
}

// longBracket returns the number of = in the long bracket that opens at the current position, or -1 if none opens
// there.
func (s *scanner) longBracket() int {
	if s.peek(0) != '[' {
		return -1
	}
	level := 0
	for s.peek(1+level) == '=' {
		level++
	}
	if s.peek(1+level) != '[' {
		return -1
	}
	return level
}

func (s *scanner) long(level int, unfinished string) {
	closing := []byte("]" + strings.Repeat("=", level) + "]")
	i := bytes.Index(s.rest(), closing)
	if i < 0 {
		s.fail(unfinished)
	}
	s.line += bytes.Count(s.rest()[:i], []byte("\n"))
	s.pos += i + len(closing)
}

func (s *scanner) quoted(quote byte) {
	for {
		c := s.peek(0)
		switch {
		case s.pos == len(s.src), c == '\n', c == '\r':
			s.fail("unfinished string")
		case c == '\\':
			s.escape()
		case c == quote:
			s.pos++
			return
		default:
			s.pos++
		}
	}
}

var unicodeEscape = regexp.MustCompile(`^\{0*(?:[0-9A-Fa-f]{1,5}|10[0-9A-Fa-f]{4})\}`)

func (s *scanner) escape() {
	s.pos++
	if s.pos == len(s.src) {
		return // the string has no end
	}
	c := s.src[s.pos]
	s.pos++
	switch {
	case strings.IndexByte(`abfnrtv\"'`, c) >= 0:
	case c == '\n' || c == '\r':
		s.line++
		if next := s.peek(0); next != c && (next == '\n' || next == '\r') {
			s.pos++
		}
	case c == 'x' && isHex(s.peek(0)) && isHex(s.peek(1)):
		s.pos += 2
	case c == 'u' && unicodeEscape.Match(s.rest()):
		s.pos += bytes.IndexByte(s.rest(), '}') + 1
	case c == 'z':
		for next := s.peek(0); next == ' ' || '\t' <= next && next <= '\r'; next = s.peek(0) {
			if next == '\n' {
				s.line++
			}
			s.pos++
		}
	case isDigit(c):
		v := int(c - '0')
		for i := 0; i < 2 && isDigit(s.peek(0)); i++ {
			v = 10*v + int(s.peek(0)-'0')
			s.pos++
		}
		if v > 255 {
			s.fail("invalid escape sequence")
		}
	default:
		s.fail("invalid escape sequence")
	}
}

// assignsNext reports whether = follows the token, but not ==.
func (s *scanner) assignsNext() bool {
	ahead := *s
	ahead.skipSpace()
	return ahead.peek(0) == '=' && ahead.peek(1) != '='
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isIdent reports whether a name may contain c. LuaJIT accepts all bytes of characters outside ASCII.
func isIdent(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}
