package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// nodeOf returns a JSON document as a node, with the places of its values. The decoder of YAML
// does not know all of JSON, such as \/ and characters that are written as two \u. An error says
// where a text is no JSON, or has a key twice.
func nodeOf(text []byte) (*yaml.Node, error) {
	r := jsonReader{dec: jsontext.NewDecoder(bytes.NewReader(text)), text: text, line: 1}
	n, err := r.value()
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		line, column := r.place(int(syntactic.ByteOffset))
		return nil, fmt.Errorf("line %d, column %d: %w", line, column, syntactic.Err)
	}
	return n, err
}

// jsonReader makes nodes of JSON.
type jsonReader struct {
	dec  *jsontext.Decoder
	text []byte
	// line is that of the last place, and begins at lineStart. Lines are counted once.
	line, lineStart int
}

// value reads the next value with its members and elements.
func (r *jsonReader) value() (*yaml.Node, error) {
	switch r.dec.PeekKind() {
	case '{':
		return r.elements(yaml.MappingNode, "!!map")
	case '[':
		return r.elements(yaml.SequenceNode, "!!seq")
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	n := r.node(yaml.ScalarNode, scalarTag(raw.Kind()), len(raw))
	n.Value = string(raw)
	if raw.Kind() == '"' {
		var unquoted []byte
		unquoted, err = jsontext.AppendUnquote(nil, raw)
		n.Value = string(unquoted)
	}
	return n, err
}

func scalarTag(kind jsontext.Kind) string {
	switch kind {
	case '"':
		return "!!str"
	case '0':
		return "!!float"
	case 'n':
		return "!!null"
	default:
		return "!!bool"
	}
}

// elements reads an object, or a list.
func (r *jsonReader) elements(kind yaml.Kind, tag string) (*yaml.Node, error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	n := r.node(kind, tag, 1)
	for next := r.dec.PeekKind(); next != '}' && next != ']'; next = r.dec.PeekKind() {
		element, err := r.value()
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, element)
	}
	_, err := r.dec.ReadToken()
	return n, err
}

// node returns a node for the text that was read last, of a length.
func (r *jsonReader) node(kind yaml.Kind, tag string, length int) *yaml.Node {
	line, column := r.place(int(r.dec.InputOffset()) - length)
	return &yaml.Node{Kind: kind, Tag: tag, Line: line, Column: column}
}

// place returns the line and the column of an offset, which is not before the last one.
func (r *jsonReader) place(offset int) (line, column int) {
	for {
		end := bytes.IndexByte(r.text[r.lineStart:offset], '\n')
		if end < 0 {
			return r.line, 1 + utf8.RuneCount(r.text[r.lineStart:offset])
		}
		r.line++
		r.lineStart += end + 1
	}
}
