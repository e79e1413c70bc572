package syntax

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Unquoted returns the text of a scalar of a text proto; adjacent literals form one text. Invalid syntax is
// returned unchanged.
func Unquoted(scalar []byte) string {
	var out []byte
	rest := scalar
	for literals := 0; ; literals++ {
		rest = skipBlank(rest)
		if len(rest) == 0 && literals > 0 && utf8.Valid(out) {
			return string(out)
		}
		var ok bool
		if out, rest, ok = appendLiteral(out, rest); !ok {
			return string(scalar)
		}
	}
}

// skipBlank takes white space and comments off the beginning of a text.
func skipBlank(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, " \n\r\t")
		if len(text) == 0 || text[0] != '#' {
			return text
		}
		text = text[lineLength(text):]
	}
}

// appendLiteral appends what the literal at the beginning of a text means, and returns what stands behind the literal.
func appendLiteral(out, text []byte) (means, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' && text[0] != '\'' {
		return out, text, false
	}
	quote := text[0]
	for text = text[1:]; len(text) > 0; {
		switch c := text[0]; {
		case c == quote:
			return out, text[1:], true
		case c == '\n' || c == 0:
			return out, text, false
		case c != '\\':
			out, text = append(out, c), text[1:]
		default:
			if out, text, ok = appendEscape(out, text[1:]); !ok {
				return out, text, false
			}
		}
	}
	return out, text, false
}

// simpleEscapes maps the letter of an escape to its character.
var simpleEscapes = map[byte]byte{'"': '"', '\'': '\'', '\\': '\\', '?': '?', 'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// appendEscape appends the meaning of the escape at the beginning of text, behind its backslash.
func appendEscape(out, text []byte) (means, rest []byte, ok bool) {
	if len(text) == 0 {
		return out, text, false
	}
	if c, simple := simpleEscapes[text[0]]; simple {
		return append(out, c), text[1:], true
	}
	switch c := text[0]; {
	case IsOctal(c):
		digits := digitsOf(text, "01234567", 3)
		n, err := strconv.ParseUint(string(digits), 8, 8)
		return append(out, byte(n)), text[len(digits):], err == nil
	case c == 'x':
		digits := digitsOf(text[1:], "0123456789abcdefABCDEF", 2)
		n, err := strconv.ParseUint(string(digits), 16, 8)
		return append(out, byte(n)), text[1+len(digits):], err == nil
	case c == 'u' || c == 'U':
		return appendRune(out, text)
	}
	return out, text, false
}

// appendRune appends the character of an escape such as u00e4. A character may be two escapes of UTF-16.
func appendRune(out, text []byte) (means, rest []byte, ok bool) {
	size := map[byte]int{'u': 4, 'U': 8}[text[0]]
	r, ok := hexRune(text[1:], size)
	if !ok {
		return out, text, false
	}
	text = text[1+size:]
	if 0xd800 <= r && r < 0xe000 {
		if len(text) < 2 || text[0] != '\\' || text[1] != 'u' {
			return out, text, false
		}
		low, ok := hexRune(text[2:], 4)
		if r >= 0xdc00 || !ok || low < 0xdc00 || low >= 0xe000 {
			return out, text, false
		}
		r, text = (r-0xd800)<<10|(low-0xdc00)+0x10000, text[6:]
	}
	return utf8.AppendRune(out, r), text, true
}

// hexRune returns the character for a number of hexadecimal digits.
func hexRune(text []byte, size int) (rune, bool) {
	if len(text) < size {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[:size]), 16, 32)
	return rune(n), err == nil && n <= utf8.MaxRune
}

// digitsOf are the digits that a text begins with, as many as there may be.
func digitsOf(text []byte, digits string, most int) []byte {
	n := 0
	for n < min(most, len(text)) && strings.IndexByte(digits, text[n]) >= 0 {
		n++
	}
	return text[:n]
}

// IsOctal reports whether a character is an octal digit.
func IsOctal(c byte) bool { return '0' <= c && c <= '7' }
