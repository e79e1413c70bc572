package syntax

import (
	"bytes"
	"strings"
)

// Literal is a key or a scalar as it is written.
type Literal struct {
	Span
	Means string // the text that it stands for
}

func exactly(key, name string) bool { return key == name }

// SameField compares a key of the source with a proto name: protojson takes
// snake_case and lowerCamelCase.
func SameField(key, name string) bool {
	return strings.EqualFold(strings.ReplaceAll(key, "_", ""), strings.ReplaceAll(name, "_", ""))
}

func lineLength(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// Span is a part of a document: the offsets of its first byte and behind its last one.
type Span struct{ From, To int }

// typeURL is the field of an Any that JSON and YAML call "@type".
const typeURL = "type_url"

// endOfQuoted is the offset behind a text in double quotes, or in single ones.
func endOfQuoted(text []byte, at int) int {
	if at >= len(text) {
		return len(text)
	}
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return len(text)
}

// closing is the bracket that ends what kind begins, a {, [ or <: in ASCII, it stands two behind it.
func closing(kind byte) byte { return kind + 2 }
