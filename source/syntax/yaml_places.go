package syntax

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"xdspub/diag"
)

// Found is what stands at a path of a YAML document, or as near to that as the document
// goes.
type Found struct {
	In         YAMLDocument // the document, or the element of a long list in it
	key, Value *yaml.Node   // key is nil for the document and for an element of a list
	Whole      bool         // the path leads there
	Shared     bool         // through an alias or a merge key: other paths lead there too
}

// YAMLAt follows a path, through aliases and merge keys.
func (d YAMLDocument) YAMLAt(tokens []string) Found {
	if element, rest, ok := d.elementWith(tokens); ok {
		return element.AsYAML().YAMLAt(rest)
	}
	f := Found{In: d, Value: d.beside()}
	if f.Value == nil {
		return f
	}
	for _, token := range tokens {
		key, value := d.child(f.Value, token)
		if value == nil {
			return f
		}
		f.Shared = f.Shared || f.Value.Kind == yaml.AliasNode || key != nil && !slices.Contains(f.Value.Content, key)
		f.key, f.Value = key, value
	}
	f.Whole = true
	f.Shared = f.Shared || f.Value.Kind == yaml.AliasNode
	return f
}

// rangeYAML finds what rangeOf does. A block on the lines below its key is found
// at the key: there a person looks for it.
func (d YAMLDocument) rangeYAML(tokens []string, key bool) diag.Range {
	f := d.YAMLAt(tokens)
	if f.Value == nil {
		return d.Point(0)
	}
	at := f.Value
	if f.key != nil && (key && f.Whole || f.Value.Line > f.key.Line && !startsWithType(f.Value)) {
		at = f.key
	}
	return f.In.NodeRange(at)
}

func (d YAMLDocument) literalYAML(tokens []string, key bool) (l Literal, ok bool) {
	f := d.YAMLAt(tokens)
	if last := len(tokens) - 1; !f.Whole && last >= 0 && tokens[last] == typeURL {
		f = d.YAMLAt(append(tokens[:last:last], "@type"))
	}
	n := f.Value
	if key {
		n = f.key
	}
	if !f.Whole || f.Shared || n == nil || n.Kind != yaml.ScalarNode || n.Anchor != "" {
		return Literal{}, false
	}
	s := f.In.nodeSpan(n)
	s.From += propertiesOf(f.In.Text[s.From:s.To])
	moved := f.In.offset - d.offset
	return Literal{Span{s.From + moved, s.To + moved}, n.Value}, true
}

// NodeRange is where a node stands in the file.
func (d YAMLDocument) NodeRange(n *yaml.Node) diag.Range { return d.Span(d.nodeSpan(n)) }

func (d YAMLDocument) nodeSpan(n *yaml.Node) Span {
	from := d.nodeOffset(n)
	return Span{from, max(from, d.endOf(n))}
}

// nodeOffset is where a node begins: the parser counts lines, and characters in them.
func (d YAMLDocument) nodeOffset(n *yaml.Node) int {
	starts := d.lines()
	if n.Line > len(starts) {
		return len(d.Text)
	}
	s := d.source
	p := s.Places()
	return min(p.offsetOf(s.Data(), p.runesTo(s.Data(), d.offset+starts[n.Line-1])+n.Column-1)-d.offset, len(d.Text))
}

// endOf is the offset behind a node. The parser keeps no ends: that of a mapping is the end of
// its last value, and brackets behind it.
func (d YAMLDocument) endOf(n *yaml.Node) int {
	from := d.nodeOffset(n)
	start := from + propertiesOf(d.Text[from:])
	rest := d.Text[start:]
	switch {
	case n.Kind == yaml.AliasNode:
		return min(from+1+len(n.Value), len(d.Text))
	case n.Kind == yaml.ScalarNode:
		return start + scalarLength(rest, n)
	case n.Style&yaml.FlowStyle != 0 && len(rest) > 0 && (rest[0] == '{' || rest[0] == '['):
		at := start + 1
		if len(n.Content) > 0 {
			at = d.endOf(n.Content[len(n.Content)-1])
		}
		return at + closingBracket(d.Text[at:])
	case len(n.Content) > 0:
		return d.endOf(n.Content[len(n.Content)-1])
	}
	return start
}

// propertiesOf is the length of the anchor and the tag at the beginning of a node, with the
// space behind them.
func propertiesOf(text []byte) int {
	at := 0
	for at < len(text) && (text[at] == '&' || text[at] == '!') {
		end := bytes.IndexFunc(text[at:], unicode.IsSpace)
		if end < 0 {
			return len(text)
		}
		at = len(text) - len(bytes.TrimLeftFunc(text[at+end:], unicode.IsSpace))
	}
	return at
}

// scalarLength is the length of a scalar that a text begins with.
func scalarLength(text []byte, n *yaml.Node) int {
	switch {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return endOfQuoted(text, 0)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return blockLength(text)
	}
	return plainLength(text, n.Value)
}

// plainLength is the length of a scalar without quotes: white space may be folded.
func plainLength(text []byte, value string) int {
	at := 0
	for value != "" {
		r, size := utf8.DecodeRuneInString(value)
		if unicode.IsSpace(r) {
			value = strings.TrimLeftFunc(value, unicode.IsSpace)
			at = len(text) - len(bytes.TrimLeftFunc(text[at:], unicode.IsSpace))
			continue
		}
		if !bytes.HasPrefix(text[at:], []byte(value[:size])) {
			return at
		}
		at, value = at+size, value[size:]
	}
	return at
}

// blockLength is the length of a scalar of lines: those below that are indented as the first
// of them, but for empty ones at the end.
func blockLength(text []byte) int {
	head := YAMLLine(text)
	end := len(bytes.TrimRight(text[:head], " \t\r\n"))
	indent := 0
	for at := head; at < len(text); {
		size := YAMLLine(text[at:])
		line := text[at : at+size]
		content := bytes.TrimLeft(line, " ")
		switch depth := len(line) - len(content); {
		case len(bytes.TrimSpace(content)) == 0:
		case indent == 0 && depth > 0:
			indent = depth
			fallthrough
		case indent > 0 && depth >= indent:
			end = at + len(bytes.TrimRight(line, "\r\n"))
		default:
			return end
		}
		at += size
	}
	return end
}

// closingBracket is the length up to the bracket that ends a node in flow style.
func closingBracket(text []byte) int {
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '}' || c == ']':
			return at + 1
		case c == '#':
			at += YAMLLine(text[at:])
		default:
			at++
		}
	}
	return len(text)
}

// startsWithType reports whether a node begins with an @type: that says more than the
// key above it.
func startsWithType(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Content[0].Value == "@type"
}

// manyKeys is from how many keys on a mapping is searched through an index: each of them
// may have a finding.
const manyKeys = 100

// child is that of a node, found with the index of a long mapping.
func (d YAMLDocument) child(n *yaml.Node, token string) (key, value *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.MappingNode && len(n.Content) >= 2*manyKeys {
		index, _ := d.views().keys.LoadOrStore(n, sync.OnceValue(func() map[string]int { return keysOf(n) }))
		if i, ok := index.(func() map[string]int)()[token]; ok {
			return n.Content[i], n.Content[i+1]
		}
	}
	return child(n, token)
}

// keysOf maps each key of a mapping to its index in Content; the last of equal keys wins.
func keysOf(n *yaml.Node) map[string]int {
	index := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		index[keyText(n.Content[i])] = i
	}
	return index
}

// child is the key and value of a node's entry, through aliases and merge keys.
func child(n *yaml.Node, token string) (key, value *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Content) {
			return nil, n.Content[i]
		}
	case yaml.MappingNode:
		for _, same := range []func(key, token string) bool{exactly, SameField} {
			for i := len(n.Content) - 2; i >= 0; i -= 2 { // of equal keys Envoy takes the last one
				if k := n.Content[i]; same(keyText(k), token) {
					return k, n.Content[i+1]
				}
			}
		}
		for _, m := range mergedInto(n) {
			if k, v := child(m, token); v != nil {
				return k, v
			}
		}
	}
	if token == "0" && n.Kind != yaml.SequenceNode {
		return nil, n // the one element of a list that is written without the list
	}
	return nil, nil
}

// NodeAt is the node of the value at a path, or nil.
func (d YAMLDocument) NodeAt(tokens []string) *yaml.Node {
	f := d.YAMLAt(tokens)
	if !f.Whole {
		return nil
	}
	return f.Value
}
