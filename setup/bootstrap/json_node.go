package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// nodeOf returns a JSON document as a node with the places of its values. It does not use the decoder of YAML,
// which does not know all escapes of JSON, such as \/ and pairs of \u. Its error tells the place at which the text
// is not JSON, or has a key twice.
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

// jsonReader reads JSON as nodes.
type jsonReader struct {
	dec  *jsontext.Decoder
	text []byte
	// line is the line of the last place, and lineStart the offset at which the line begins.
	line, lineStart int
}

// value reads the next value, with everything in it.
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

// elements reads an object or a list.
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

// node returns a node for the token or value that was read last. length is its length.
func (r *jsonReader) node(kind yaml.Kind, tag string, length int) *yaml.Node {
	line, column := r.place(int(r.dec.InputOffset()) - length)
	return &yaml.Node{Kind: kind, Tag: tag, Line: line, Column: column}
}

// place returns the line and the column of an offset. The offset must not be before the last one.
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
