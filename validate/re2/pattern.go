package re2

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scanner goes through a pattern once, and writes it in the syntax of Go's parser. It treats the differences from
// RE2: only RE2 accepts \C, which matches one byte; only RE2 refuses other spellings of the names of character
// classes and, in Latin-1, escapes above \xFF.
type scanner struct {
	in       string
	encoding Encoding
	at       int
	out      []byte
	// splits is Program.SplitsCharacters, and only set in Latin-1. approximate means that the computed size may be
	// too large, and is only set in UTF-8.
	splits, approximate bool
}

func (s *scanner) scan() error {
	inClass := false
	for s.at < len(s.in) {
		rest := s.in[s.at:]
		switch c := rest[0]; {
		case c == '\\' && len(rest) > 1:
			if err := s.escape(rest, inClass); err != nil {
				return err
			}
		case inClass && strings.HasPrefix(rest, "[:") && strings.Contains(rest, ":]"):
			s.keep(strings.Index(rest, ":]") + 2)
		case inClass && c == ']':
			inClass = false
			s.keep(1)
		case !inClass && c == '[':
			inClass = true
			opening := "["
			if strings.HasPrefix(rest, "[^") {
				opening = "[^"
			}
			if strings.HasPrefix(rest, opening+"]") { // a ] at the beginning is a character of the class
				opening += "]"
			}
			s.keep(len(opening))
		case !inClass && s.encoding == UTF8 && strings.HasPrefix(rest, "(?P<"):
			s.groupName(rest)
		case c >= utf8.RuneSelf:
			_, n := utf8.DecodeRuneInString(rest)
			s.splits = s.splits || s.encoding == Latin1 && (inClass || n > 1 && n < len(rest) && strings.ContainsRune("*+?{", rune(rest[n])))
			s.keep(n)
		default:
			s.keep(1)
		}
	}
	return nil
}

// groupName copies the beginning of a named group. It replaces letters outside ASCII in the name, which Go's parser
// refuses.
func (s *scanner) groupName(rest string) {
	name, _, _ := strings.Cut(rest, ">")
	s.out = append(s.out, "(?P<"...)
	for _, r := range name[len("(?P<"):] {
		if r < utf8.RuneSelf || !unicode.IsLetter(r) {
			s.out = utf8.AppendRune(s.out, r)
		} else {
			s.out = fmt.Appendf(s.out, "u%x", r)
		}
	}
	s.at += len(name)
}

// keep copies the next n bytes.
func (s *scanner) keep(n int) {
	s.out = append(s.out, s.in[s.at:s.at+n]...)
	s.at += n
}

func (s *scanner) escape(rest string, inClass bool) error {
	switch c := rest[1]; {
	case c == 'Q' && !inClass:
		if end := strings.Index(rest, `\E`); end > 0 {
			s.keep(end + 2)
		} else {
			s.keep(len(rest))
		}
	case c == 'C' && !inClass:
		s.out = append(s.out, `(?s:.)`...)
		s.at += 2
		s.approximate = s.encoding == UTF8
	case strings.HasPrefix(rest, `\x{`) && s.encoding == Latin1:
		digits, _, closed := strings.Cut(rest[3:], "}")
		if r, err := strconv.ParseUint(digits, 16, 32); closed && err == nil && r > maxLatin1 {
			return fmt.Errorf("invalid escape sequence: `\\x{%s}`: Envoy matches bytes, up to \\xFF", digits)
		}
		s.keep(3)
	case '1' <= c && c <= '7' && s.encoding == Latin1:
		digits := rest[1:min(4, len(rest))]
		if r, err := strconv.ParseUint(digits, 8, 32); err == nil && r > maxLatin1 {
			return fmt.Errorf("invalid escape sequence: `\\%s`: Envoy matches bytes, up to \\377", digits)
		}
		s.keep(2)
	case strings.HasPrefix(rest, `\p{`), strings.HasPrefix(rest, `\P{`):
		name, _, closed := strings.Cut(rest[3:], "}")
		if closed && !knowsClass(strings.TrimPrefix(name, "^")) {
			return fmt.Errorf("invalid character class range: `%s{%s}`", rest[:2], name)
		}
		s.approximate = s.encoding == UTF8
		s.keep(3)
	case s.encoding == UTF8 && (c == 'p' || c == 'P'):
		s.approximate = true // RE2 has tables of another version of Unicode
		s.keep(2)
	default:
		s.keep(2)
	}
	return nil
}

// knowsClass reports whether RE2 knows the class \p{name}. Go accepts more spellings of names.
func knowsClass(name string) bool {
	if name == "LC" || name == "Cn" {
		return false
	}
	return name == "Any" || unicode.Categories[name] != nil || unicode.Scripts[name] != nil
}
