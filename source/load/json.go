package load

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/diag"
)

// notJSON says why a text is no JSON, or which names of it are doubled.
func notJSON(doc *textDocument) diag.List {
	text := doc.text
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	err := dec.SkipValue()
	var doubled diag.List
	if errors.Is(err, jsontext.ErrDuplicateName) {
		dec = jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
		if err = dec.SkipValue(); err == nil {
			doubled = doc.doubledNames()
		}
	}
	if err != nil {
		return diag.List{jsonError(doc, err)}
	}
	if rest := bytes.TrimLeft(text[dec.InputOffset():], jsonSpace); len(rest) > 0 {
		return diag.List{doc.behindJSON(len(text) - len(rest)).finding(doc)}
	}
	return doubled
}

// doubledNames finds the names that stand twice in one object of a JSON text.
func (d *textDocument) doubledNames() (list diag.List) {
	help := "keep one: " + d.source.lastCounts()
	if d.source.reader.OnlyJSON() {
		help = "keep one"
	}
	var look func(n jsonNode)
	look = func(n jsonNode) {
		first := make(map[string]jsonNode)
		for _, c := range n.children {
			if earlier, twice := first[c.name]; twice && c.key >= 0 {
				f := d.source.finding(codeDuplicateKey, d.span(span{c.key, endOfQuoted(d.text, c.key)}), d.source.keyIn(c.name)+" is set twice in one object", help)
				f.Related = []diag.Related{{Position: d.point(earlier.key).Position, Message: "first here"}}
				list = append(list, f)
			} else {
				first[c.name] = c
			}
			look(c)
		}
	}
	look(parseJSON(d.text))
	return list
}

// lastCounts says what Envoy does with two values of one name.
func (s *sourceText) lastCounts() string {
	if s.reader.ByEnvoy() {
		return "Envoy uses the last without an error"
	}
	return "Envoy would use the last without an error"
}

const jsonSpace = " \t\r\n"

func jsonError(doc *textDocument, err error) diag.Diagnostic {
	offset, reason := len(doc.text), err.Error()
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		offset = int(syntactic.ByteOffset)
		if syntactic.Err != nil {
			reason = syntactic.Err.Error()
		}
	}
	return doc.jsonMistake(offset, reason).finding(doc)
}

// jsonNode is one value of a JSON text and where it stands.
type jsonNode struct {
	name            string // of a member of an object
	key, value, end int    // offsets of the name, of the value, and behind it; key is -1 in a list
	children        []jsonNode
}

// parseJSON is the tree of a text, as far as that is JSON.
func parseJSON(text []byte) jsonNode {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	var parse func(n *jsonNode) bool
	parse = func(n *jsonNode) bool {
		n.value = valueStart(text, int(dec.InputOffset()))
		open, err := dec.ReadToken()
		n.end = int(dec.InputOffset())
		if err != nil || open.Kind() != '{' && open.Kind() != '[' {
			return err == nil
		}
		for dec.PeekKind() > 0 && dec.PeekKind() != '}' && dec.PeekKind() != ']' {
			child := jsonNode{key: -1}
			if open.Kind() == '{' {
				child.key = valueStart(text, int(dec.InputOffset()))
				name, err := dec.ReadToken()
				if err != nil {
					return false
				}
				child.name = name.String()
			}
			ok := parse(&child)
			n.children = append(n.children, child)
			if !ok {
				return false
			}
		}
		_, err = dec.ReadToken()
		n.end = int(dec.InputOffset())
		return err == nil
	}
	root := jsonNode{key: -1}
	parse(&root)
	return root
}

// longValue is the length of a JSON value whose members are looked for once: any of them may
// have a finding.
const longValue = 4 << 10

// members are the children of a value, without what is in them. A finding must not have the
// tree of the whole text made.
func (d *textDocument) members(n jsonNode) []jsonNode {
	if n.end-n.value < longValue {
		return membersIn(d.text, n)
	}
	made, _ := d.views().long.LoadOrStore(n.value, sync.OnceValue(func() []jsonNode { return membersIn(d.text, n) }))
	return made.(func() []jsonNode)()
}

// membersIn is what members makes, as far as the text is JSON.
func membersIn(text []byte, n jsonNode) (children []jsonNode) {
	text = text[:n.end]
	dec := jsontext.NewDecoder(bytes.NewReader(text[n.value:]), jsontext.AllowDuplicateNames(true))
	offset := func() int { return n.value + int(dec.InputOffset()) }
	open, err := dec.ReadToken()
	if err != nil || open.Kind() != '{' && open.Kind() != '[' {
		return nil
	}
	for dec.PeekKind() > 0 && dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		child := jsonNode{key: -1, end: n.end}
		if open.Kind() == '{' {
			child.key = valueStart(text, offset())
			name, err := dec.ReadToken()
			if err != nil {
				return children
			}
			child.name = name.String()
		}
		child.value = valueStart(text, offset())
		if err = dec.SkipValue(); err == nil {
			child.end = offset()
		}
		children = append(children, child)
		if err != nil {
			return children
		}
	}
	return children
}

// find is the offset of the value at a path.
func (n jsonNode) find(tokens []string) int {
	for _, token := range tokens {
		c := n.child(token)
		if c == nil {
			break
		}
		n = *c
	}
	return n.value
}

func (n jsonNode) child(token string) *jsonNode {
	if len(n.children) > 0 && n.children[0].key < 0 {
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.children) {
			return &n.children[i]
		}
		return nil
	}
	for _, same := range []func(key, token string) bool{exactly, sameField} {
		for i := range slices.Backward(n.children) { // of equal names Envoy takes the last one
			if same(n.children[i].name, token) {
				return &n.children[i]
			}
		}
	}
	return nil
}

// valueStart skips what stands between two tokens.
func valueStart(text []byte, offset int) int {
	return len(text) - len(bytes.TrimLeft(text[min(offset, len(text)):], jsonSpace+",:"))
}
