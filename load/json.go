package load

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/diag"
)

// jsonSource decodes a JSON file. The text is checked first, doubled names too:
// Envoy takes the last of two.
func (d *decoder) jsonSource() {
	s := d.file.source
	text := bytes.TrimPrefix(s.data, []byte("\ufeff"))
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}
	doc := s.document(text, 0)
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	if err := dec.SkipValue(); err != nil {
		d.jsonError(doc, err)
		return
	}
	if rest := bytes.TrimSpace(text[dec.InputOffset():]); len(rest) > 0 {
		offset := len(text) - len(bytes.TrimLeft(text[dec.InputOffset():], " \t\r\n"))
		d.report(s.finding(codeSyntax, doc.at(offset), "not valid JSON: more text after the end of the document", ""))
		return
	}
	d.document(doc, text)
}

func (d *decoder) jsonError(doc *document, err error) {
	offset, reason := len(doc.text), err.Error()
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		offset = int(syntactic.ByteOffset)
		if syntactic.Err != nil {
			reason = syntactic.Err.Error()
		}
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		name := syntactic.JSONPointer.LastToken()
		tokens := pointerTokens(syntactic.JSONPointer)
		f := doc.source.finding(codeDuplicateKey, doc.at(offset), fmt.Sprintf("key %q stands twice in one object", name),
			"Envoy would silently take the last of them; keep one")
		f.Related = []diag.Related{{Position: doc.position(tokens, true), Message: "first here"}}
		d.report(f)
		return
	}
	d.report(doc.source.finding(codeSyntax, doc.at(offset), "not valid JSON: "+strings.TrimPrefix(reason, "jsontext: "), ""))
}

// at is the position of a byte offset into the document's text.
func (d *document) at(offset int) diag.Position {
	return d.source.at(offset + len(d.source.data) - len(d.text)) // JSON: one document, perhaps after a BOM
}

func pointerTokens(p jsontext.Pointer) []string {
	var tokens []string
	for t := range p.Tokens() {
		tokens = append(tokens, t)
	}
	return tokens
}

// positionJSON goes down the text token by token.
func (d *document) positionJSON(tokens []string, key bool) diag.Position {
	dec := jsontext.NewDecoder(bytes.NewReader(d.text), jsontext.AllowDuplicateNames(true))
	found := valueStart(d.text, 0)
	for i, token := range tokens {
		keyAt, valueAt, ok := descend(dec, d.text, token)
		if !ok {
			break
		}
		if found = valueAt; key && i == len(tokens)-1 && keyAt >= 0 {
			found = keyAt
		}
	}
	return d.at(found)
}

// descend reads into the next value of dec up to the entry that token names, and
// returns the offsets of its key (-1 in an array) and value.
func descend(dec *jsontext.Decoder, text []byte, token string) (keyAt, valueAt int, ok bool) {
	switch dec.PeekKind() {
	case '{':
		if _, err := dec.ReadToken(); err != nil {
			return 0, 0, false
		}
		for dec.PeekKind() == '"' {
			keyAt = valueStart(text, int(dec.InputOffset()))
			name, err := dec.ReadToken()
			if err != nil {
				return 0, 0, false
			}
			if sameField(name.String(), token) {
				return keyAt, valueStart(text, int(dec.InputOffset())), true
			}
			if dec.SkipValue() != nil {
				return 0, 0, false
			}
		}
	case '[':
		if _, err := dec.ReadToken(); err != nil {
			return 0, 0, false
		}
		for i := 0; dec.PeekKind() != ']'; i++ {
			if fmt.Sprint(i) == token {
				return -1, valueStart(text, int(dec.InputOffset())), true
			}
			if dec.SkipValue() != nil {
				return 0, 0, false
			}
		}
	}
	return 0, 0, false
}

// valueStart skips what stands between two tokens.
func valueStart(text []byte, offset int) int {
	return len(text) - len(bytes.TrimLeft(text[min(offset, len(text)):], " \t\r\n,:"))
}

// pathAt is the JSON pointer of the token at an offset, and whether that token
// is a key.
func pathAt(text []byte, offset int) (tokens []string, key bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	for int(dec.InputOffset()) <= offset {
		if _, err := dec.ReadToken(); err != nil {
			break
		}
	}
	kind, n := dec.StackIndex(dec.StackDepth())
	return pointerTokens(dec.StackPointer()), kind == '{' && n%2 == 1
}
