package syntax

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/diag"
)

// NotJSON says why a text is no JSON, or which names of it are doubled.
func NotJSON(doc *Document) diag.List {
	text := doc.Text
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	err := dec.SkipValue()
	var doubled diag.List
	if errors.Is(err, jsontext.ErrDuplicateName) {
		dec = jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
		if err = dec.SkipValue(); err == nil {
			doubled = doc.asJSON().doubledNames()
		}
	}
	if err != nil {
		return diag.List{jsonError(doc, err)}
	}
	if rest := bytes.TrimLeft(text[dec.InputOffset():], JSONSpace); len(rest) > 0 {
		return diag.List{doc.asJSON().behindJSON(len(text) - len(rest)).Finding(doc)}
	}
	return doubled
}

// doubledNames finds the names that stand twice in one object of a JSON text.
func (d jsonDocument) doubledNames() (list diag.List) {
	help := "keep one: " + d.source.lastCounts()
	if d.source.reader.OnlyJSON() {
		help = "keep one"
	}
	var look func(n JSONNode)
	look = func(n JSONNode) {
		first := make(map[string]JSONNode)
		for _, c := range n.Children {
			if earlier, twice := first[c.Name]; twice && c.key >= 0 {
				f := d.source.Finding(CodeDuplicateKey, d.Span(Span{c.key, endOfQuoted(d.Text, c.key)}),
					d.source.keyIn(c.Name)+" is set twice in one object", help)
				f.Related = []diag.Related{{Position: d.Point(earlier.key).Position, Message: "first here"}}
				list = append(list, f)
			} else {
				first[c.Name] = c
			}
			look(c)
		}
	}
	look(ParseJSON(d.Text))
	return list
}

// JSONSpace is the white space of JSON.
const JSONSpace = " \t\r\n"

func jsonError(doc *Document, err error) diag.Diagnostic {
	offset, reason := len(doc.Text), err.Error()
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		offset = int(syntactic.ByteOffset)
		if syntactic.Err != nil {
			reason = syntactic.Err.Error()
		}
	}
	return doc.asJSON().jsonMistake(offset, reason).Finding(doc)
}

// JSONNode is a value of a JSON text with its place.
type JSONNode struct {
	Name            string // of a member of an object
	key, Value, End int    // offsets of the name, of the value, and behind it; key is -1 in a list
	Children        []JSONNode
}

// ParseJSON is the tree of a text, as far as that is JSON.
func ParseJSON(text []byte) JSONNode {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	var parse func(n *JSONNode) bool
	parse = func(n *JSONNode) bool {
		n.Value = valueStart(text, int(dec.InputOffset()))
		open, err := dec.ReadToken()
		n.End = int(dec.InputOffset())
		if err != nil || open.Kind() != '{' && open.Kind() != '[' {
			return err == nil
		}
		for dec.PeekKind() > 0 && dec.PeekKind() != '}' && dec.PeekKind() != ']' {
			child := JSONNode{key: -1}
			if open.Kind() == '{' {
				child.key = valueStart(text, int(dec.InputOffset()))
				name, err := dec.ReadToken()
				if err != nil {
					return false
				}
				child.Name = name.String()
			}
			ok := parse(&child)
			n.Children = append(n.Children, child)
			if !ok {
				return false
			}
		}
		_, err = dec.ReadToken()
		n.End = int(dec.InputOffset())
		return err == nil
	}
	root := JSONNode{key: -1}
	parse(&root)
	return root
}

// longValue is the length from which a JSON value's members are cached, because any member may have a finding.
const longValue = 4 << 10

// members returns the direct children of a value, without the cost of a tree of the whole text.
func (d jsonDocument) members(n JSONNode) []JSONNode {
	if n.End-n.Value < longValue {
		return membersIn(d.Text, n)
	}
	made, _ := d.views().long.LoadOrStore(n.Value, sync.OnceValue(func() []JSONNode { return membersIn(d.Text, n) }))
	return made.(func() []JSONNode)()
}

// membersIn is what members makes, as far as the text is JSON.
func membersIn(text []byte, n JSONNode) (children []JSONNode) {
	text = text[:n.End]
	dec := jsontext.NewDecoder(bytes.NewReader(text[n.Value:]), jsontext.AllowDuplicateNames(true))
	offset := func() int { return n.Value + int(dec.InputOffset()) }
	open, err := dec.ReadToken()
	if err != nil || open.Kind() != '{' && open.Kind() != '[' {
		return nil
	}
	for dec.PeekKind() > 0 && dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		child := JSONNode{key: -1, End: n.End}
		if open.Kind() == '{' {
			child.key = valueStart(text, offset())
			name, err := dec.ReadToken()
			if err != nil {
				return children
			}
			child.Name = name.String()
		}
		child.Value = valueStart(text, offset())
		if err = dec.SkipValue(); err == nil {
			child.End = offset()
		}
		children = append(children, child)
		if err != nil {
			return children
		}
	}
	return children
}

// Find is the offset of the value at a path.
func (n JSONNode) Find(tokens []string) int {
	for _, token := range tokens {
		c := n.Child(token)
		if c == nil {
			break
		}
		n = *c
	}
	return n.Value
}

// Child returns the member of an object or the element of a list, nil if there is none.
func (n JSONNode) Child(token string) *JSONNode {
	if len(n.Children) > 0 && n.Children[0].key < 0 {
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Children) {
			return &n.Children[i]
		}
		return nil
	}
	for _, same := range []func(key, token string) bool{exactly, SameField} {
		for i := range slices.Backward(n.Children) { // of equal names Envoy takes the last one
			if same(n.Children[i].Name, token) {
				return &n.Children[i]
			}
		}
	}
	return nil
}

// valueStart skips what stands between two tokens.
func valueStart(text []byte, offset int) int {
	return len(text) - len(bytes.TrimLeft(text[min(offset, len(text)):], JSONSpace+",:"))
}

// jsonAt is the value at a path of a JSON document, or the nearest around it.
func (d jsonDocument) jsonAt(tokens []string) (n JSONNode, whole bool) {
	n = JSONNode{key: -1, Value: valueStart(d.Text, 0), End: len(bytes.TrimRight(d.Text, JSONSpace))}
	for _, token := range tokens {
		n.Children = d.members(n)
		c := n.Child(token)
		if c == nil {
			return n, false
		}
		n = *c
	}
	return n, true
}

// jsonSpan is where the value at a path stands, or its name.
func (d jsonDocument) jsonSpan(tokens []string, key bool) Span {
	n, whole := d.jsonAt(tokens)
	if key && whole && n.key >= 0 {
		return Span{n.key, endOfQuoted(d.Text, n.key)}
	}
	return Span{n.Value, n.End}
}

func (d jsonDocument) literalJSON(tokens []string, key bool) (l Literal, ok bool) {
	n, whole := d.jsonAt(tokens)
	if last := len(tokens) - 1; !whole && last >= 0 && tokens[last] == typeURL {
		n, whole = d.jsonAt(append(tokens[:last:last], "@type"))
	}
	if !whole {
		return Literal{}, false
	}
	l.Span = Span{n.Value, n.End}
	if key {
		l.Span = Span{n.key, endOfQuoted(d.Text, max(n.key, 0))}
	}
	ok = l.From >= 0 && json.Unmarshal(d.Text[l.From:l.To], &l.Means) == nil
	return l, ok
}
