package decode

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/xds"
)

func pointerTokens(p jsontext.Pointer) []string {
	var tokens []string
	for t := range p.Tokens() {
		tokens = append(tokens, t)
	}
	return tokens
}

// pathAt is the path of the token at an offset, and whether that token is a key.
func pathAt(text []byte, offset int) (path xds.Path, key bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	for int(dec.InputOffset()) <= offset {
		if _, err := dec.ReadToken(); err != nil {
			break
		}
	}
	path = stackPath(dec)
	kind, n := dec.StackIndex(dec.StackDepth())
	return path, kind == '{' && n%2 == 1
}

// stackPath is the path of the token that was read last.
func stackPath(dec *jsontext.Decoder) (path xds.Path) {
	for i, token := range pointerTokens(dec.StackPointer()) {
		switch kind, _ := dec.StackIndex(i + 1); {
		case kind == '[':
			index, _ := strconv.Atoi(token)
			path = path.Index(index)
		case isName(token):
			path = path.Field(token)
		default:
			path = path.Key(token)
		}
	}
	return path
}

// isName reports whether a key can be the name of a field.
func isName(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool { return r != '_' && r != '@' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
