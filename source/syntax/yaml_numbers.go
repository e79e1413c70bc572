package syntax

import (
	"regexp"
)

// holdsOddNumber reports whether a text may hold a numberToGo, before it is parsed for
// positions. oddNumber alone would take longer for a long text than its parser does.
func holdsOddNumber(text []byte) bool {
	for i, c := range text {
		first := i // digit of the number
		switch {
		case i == 0:
			continue
		case (c == 'o' || c == 'b') && text[i-1] == '0':
			first--
		case c == '_':
			for first > 0 && isHex(text[first-1]) {
				first--
			}
			if isHexNumber := first > 0 && text[first-1] == 'x'; !isHexNumber && !IsDigit(text[first]) {
				continue // as in load_assignment
			}
		default:
			continue
		}
		if oddNumber.Match(text[max(first-len(" -0x"), 0):min(i+len("o0"), len(text))]) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool { return IsDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// IsDigit reports whether a character is a digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// NumberToGo is what YAML 1.1 of sigs.k8s.io/yaml takes for a number, and
// Envoy's parser for text.
var NumberToGo = regexp.MustCompile(`^[-+]?(?:0o[0-7_]+|0b[01_]+|0x[0-9a-fA-F]*_[0-9a-fA-F_]*|[0-9][0-9]*_[0-9_]*(?:\.[0-9_]*)?)$`)

// oddNumber finds where one may stand.
var oddNumber = regexp.MustCompile(`[\s:\[,{-][-+]?(?:0o[0-7]|0b[01]|0x[0-9a-fA-F]*_|[0-9]+_)`)
