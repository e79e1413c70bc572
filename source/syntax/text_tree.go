package syntax

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
)

// TextNode is one field of a text proto, or one element of its list, and where it
// stands. prototext keeps no places, and formatters know lines only.
type TextNode struct {
	// Name is the field's, "[type.googleapis.com/…]" of the payload of an Any, and
	// empty in a list.
	Name string
	// Key, value and end are offsets: of the name, of the value, and behind it.
	Key, Value, End int
	// Message tells a message from a scalar; list that the children are elements.
	Message, List bool
	Children      []TextNode // in the order of the text
	// values indexes the values of each field in a large message, so that findings in ten thousand resources
	// don't each scan all of them.
	values map[string][]*TextNode
}

// large is the number of children from which a message gets an index.
const large = 64

// TextTree is a whole document.
type TextTree struct {
	TextNode
	// Whole reports whether the document was parsed to its end.
	Whole bool
	// TooDeep is the offset of the first level above maxDepth, or -1.
	TooDeep int
}

// IsType reports whether a node is the payload of an Any.
func (n *TextNode) IsType() bool { return strings.HasPrefix(n.Name, "[") }

// URL returns the type of the payload of an Any.
func (n *TextNode) URL() string { return strings.Trim(n.Name, "[]") }

// shown is the part of the text that a person would point at: the value of a scalar, the
// name of a message.
func (n *TextNode) shown(text []byte, key bool) Span {
	if n.Key >= 0 && (key || n.Message || n.List) {
		return n.NameSpan(text)
	}
	return Span{n.Value, n.End}
}

// NameSpan is where the name of the field stands.
func (n *TextNode) NameSpan(text []byte) Span {
	if n.IsType() { // it may have white space in it
		return Span{n.Key, n.Key + bytes.IndexByte(text[n.Key:], ']') + 1}
	}
	return Span{n.Key, n.Key + len(n.Name)}
}

// Named are the values of a field, through lists, in the order of the text.
func (n *TextNode) Named(name string) []*TextNode {
	if n.values != nil {
		return n.values[name]
	}
	var found []*TextNode
	for i := range n.Children {
		if c := &n.Children[i]; c.Name == name {
			found = c.AppendValues(found)
		}
	}
	return found
}

// AppendValues appends what a field holds.
func (n *TextNode) AppendValues(to []*TextNode) []*TextNode {
	if !n.List {
		return append(to, n)
	}
	for i := range n.Children {
		to = append(to, &n.Children[i])
	}
	return to
}

// index prepares named in large messages.
func (n *TextNode) index() {
	if len(n.Children) >= large && !n.List {
		n.values = make(map[string][]*TextNode)
		for i := range n.Children {
			c := &n.Children[i]
			n.values[c.Name] = c.AppendValues(n.values[c.Name])
		}
	}
	for i := range n.Children {
		n.Children[i].index()
	}
}

// Start is where the field, or the element of a list, begins.
func (n *TextNode) Start() int {
	if n.Key >= 0 {
		return n.Key
	}
	return n.Value
}

// IndexOf is the place of a node among the values of a field.
func IndexOf(values []*TextNode, n *TextNode) int {
	return sort.Search(len(values), func(i int) bool { return values[i].Value >= n.Value })
}

// Find is the node at a path, or the nearest one around it. text is the document.
func (n *TextNode) Find(text []byte, tokens []string) (at *TextNode, whole bool) {
	for i := 0; i < len(tokens); i++ {
		for len(n.Children) == 1 && n.Children[0].IsType() {
			n = &n.Children[0]
		}
		values := n.Named(tokens[i])
		if len(values) == 0 {
			return n, false
		}
		n = values[0]
		if i+1 == len(tokens) {
			return n, len(values) == 1
		}
		index, err := strconv.Atoi(tokens[i+1])
		if err == nil && index >= 0 && index < len(values) && !values[index].IsEntry() {
			n = values[index] // of a list: no key has to be looked for
			i++
		} else if entry := entryOf(text, values, tokens[i+1]); entry != nil {
			n = entry
			i++
		} else if err == nil {
			if index < 0 || index >= len(values) {
				return n, false
			}
			n = values[index]
			i++
		}
	}
	return n, true
}

// entryOf is the value of a map's entry: each is a message of key and value.
func entryOf(text []byte, values []*TextNode, key string) *TextNode {
	for _, v := range values {
		if !v.IsEntry() {
			continue
		}
		if k := v.Named("key")[0]; Unquoted(text[k.Value:k.End]) == key {
			return v.Named("value")[0]
		}
	}
	return nil
}

// IsEntry reports whether a message looks like an entry of a map.
func (n *TextNode) IsEntry() bool {
	return len(n.Children) == 2 && len(n.Named("key")) == 1 && len(n.Named("value")) == 1
}

// LeadingTo are the nodes around an offset, from the outside in.
func (n *TextNode) LeadingTo(offset int) []*TextNode {
	var chain []*TextNode
	for {
		i := sort.Search(len(n.Children), func(i int) bool { return offset < n.Children[i].End })
		if i == len(n.Children) || offset < n.Children[i].Start() {
			return chain
		}
		n = &n.Children[i]
		chain = append(chain, n)
	}
}

// ParseText is the tree of a text proto, as far as the text is one.
func ParseText(text []byte) *TextTree {
	p := textParser{text: text}
	t := &TextTree{TextNode: TextNode{Key: -1, Message: true}, TooDeep: -1}
	t.Whole = p.fields(&t.TextNode, 0) && p.at == len(text)
	t.End = p.at
	if len(t.Children) > 0 {
		t.Value = t.Children[0].Key
	}
	if p.tooDeep {
		t.TooDeep = p.at
	}
	t.index()
	return t
}

type textParser struct {
	text    []byte
	at      int
	tooDeep bool
}

// peek skips white space and comments, and returns the next byte, 0 at the end.
func (p *textParser) peek() byte {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r', '\n', '\v', '\f':
			p.at++
		case '#':
			end := bytes.IndexByte(p.text[p.at:], '\n')
			if end < 0 {
				end = len(p.text) - p.at
			}
			p.at += end
		default:
			return c
		}
	}
	return 0
}

// fields reads the fields of a message up to its end.
func (p *textParser) fields(n *TextNode, depth int) bool {
	for {
		switch c := p.peek(); {
		case c == 0 || c == '}' || c == '>':
			return true
		case c == '[':
			end := bytes.IndexByte(p.text[p.at:], ']')
			if end < 0 {
				return false
			}
			name := strings.Join(strings.Fields(string(p.text[p.at:p.at+end+1])), "")
			n.Children = append(n.Children, TextNode{Name: name, Key: p.at})
			p.at += end + 1
		default:
			start := p.at
			if p.word(); p.at == start {
				return false
			}
			n.Children = append(n.Children, TextNode{Name: string(p.text[start:p.at]), Key: start})
		}
		field := &n.Children[len(n.Children)-1]
		field.End = p.at
		if p.peek() == ':' {
			p.at++
			p.peek()
		}
		field.Value = p.at
		ok := p.value(field, depth)
		if field.End = p.at; !ok {
			return false
		}
		if c := p.peek(); c == ',' || c == ';' {
			p.at++
		}
	}
}

// value reads a scalar, a message or a list into n.
func (p *textParser) value(n *TextNode, depth int) bool {
	if depth > MaxDepth {
		p.tooDeep = true
		return false
	}
	switch c := p.peek(); c {
	case '{', '<':
		n.Message = true
		p.at++
		if !p.fields(n, depth+1) || p.peek() != closing(c) {
			return false
		}
		p.at++
		return true
	case '[':
		n.List = true
		p.at++
		for p.peek() != ']' {
			element := TextNode{Key: -1, Value: p.at}
			ok := p.value(&element, depth+1)
			element.End = p.at
			n.Children = append(n.Children, element)
			if !ok {
				return false
			}
			if c := p.peek(); c == ',' {
				p.at++
			} else if c != ']' {
				return false
			}
		}
		p.at++
		return true
	case '"', '\'':
		for end := p.at; ; end = p.at {
			if c := p.peek(); c != '"' && c != '\'' {
				p.at = end // white space behind it is not the scalar's
				return true
			}
			if !p.literal() {
				return false
			}
		}
	case '-':
		p.at++
		p.peek()
		fallthrough
	default:
		start := p.at
		p.word()
		return p.at > start
	}
}

// word reads a name or a number.
func (p *textParser) word() {
	for p.at < len(p.text) {
		c := p.text[p.at]
		exponent := p.at > 0 && (p.text[p.at-1] == 'e' || p.text[p.at-1] == 'E') && (c == '+' || c == '-')
		if c != '_' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && !exponent {
			return
		}
		p.at++
	}
}

// literal reads one quoted string.
func (p *textParser) literal() bool {
	quote := p.text[p.at]
	for i := p.at + 1; i < len(p.text) && p.text[i] != '\n'; i++ {
		switch p.text[i] {
		case '\\':
			i++
		case quote:
			p.at = i + 1
			return true
		}
	}
	return false
}
