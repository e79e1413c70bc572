package load

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
)

// textNode is one field of a text proto, or one element of its list, and where it
// stands. prototext keeps no places, and formatters know lines only.
type textNode struct {
	// name is the field's, "[type.googleapis.com/…]" of the payload of an Any, and
	// empty in a list.
	name string
	// key, value and end are offsets: of the name, of the value, and behind it.
	key, value, end int
	// message tells a message from a scalar; list that the children are elements.
	message, list bool
	children      []textNode // in the order of the text
	// values are those of each field, in a message that is large: a finding in each
	// of ten thousand resources must not look through all of them.
	values map[string][]*textNode
}

// large is how many children make a message that is worth an index.
const large = 64

// textTree is a whole document.
type textTree struct {
	textNode
	// whole tells that the document was understood to its end.
	whole bool
	// tooDeep is the offset where it is nested over maxDepth, or -1.
	tooDeep int
}

func (n *textNode) isType() bool { return strings.HasPrefix(n.name, "[") }

func (n *textNode) url() string { return strings.Trim(n.name, "[]") }

// shown is the part of the text that a person would point at: the value of a scalar, the
// name of a message.
func (n *textNode) shown(text []byte, key bool) span {
	if n.key >= 0 && (key || n.message || n.list) {
		return n.nameSpan(text)
	}
	return span{n.value, n.end}
}

// nameSpan is where the name of the field stands.
func (n *textNode) nameSpan(text []byte) span {
	if n.isType() { // it may have white space in it
		return span{n.key, n.key + bytes.IndexByte(text[n.key:], ']') + 1}
	}
	return span{n.key, n.key + len(n.name)}
}

// named are the values of a field, through lists, in the order of the text.
func (n *textNode) named(name string) []*textNode {
	if n.values != nil {
		return n.values[name]
	}
	var found []*textNode
	for i := range n.children {
		if c := &n.children[i]; c.name == name {
			found = c.appendValues(found)
		}
	}
	return found
}

// appendValues appends what a field holds.
func (n *textNode) appendValues(to []*textNode) []*textNode {
	if !n.list {
		return append(to, n)
	}
	for i := range n.children {
		to = append(to, &n.children[i])
	}
	return to
}

// index prepares named in large messages.
func (n *textNode) index() {
	if len(n.children) >= large && !n.list {
		n.values = make(map[string][]*textNode)
		for i := range n.children {
			c := &n.children[i]
			n.values[c.name] = c.appendValues(n.values[c.name])
		}
	}
	for i := range n.children {
		n.children[i].index()
	}
}

// start is where the field, or the element of a list, begins.
func (n *textNode) start() int {
	if n.key >= 0 {
		return n.key
	}
	return n.value
}

// indexOf is the place of a node among the values of a field.
func indexOf(values []*textNode, n *textNode) int {
	return sort.Search(len(values), func(i int) bool { return values[i].value >= n.value })
}

// find is the node at a path, or the nearest one around it. text is the document.
func (n *textNode) find(text []byte, tokens []string) (at *textNode, whole bool) {
	for i := 0; i < len(tokens); i++ {
		for len(n.children) == 1 && n.children[0].isType() {
			n = &n.children[0]
		}
		values := n.named(tokens[i])
		if len(values) == 0 {
			return n, false
		}
		n = values[0]
		if i+1 == len(tokens) {
			return n, len(values) == 1
		}
		index, err := strconv.Atoi(tokens[i+1])
		if err == nil && index >= 0 && index < len(values) && !values[index].isEntry() {
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
func entryOf(text []byte, values []*textNode, key string) *textNode {
	for _, v := range values {
		if !v.isEntry() {
			continue
		}
		if k := v.named("key")[0]; unquoted(text[k.value:k.end]) == key {
			return v.named("value")[0]
		}
	}
	return nil
}

// isEntry reports whether a message looks like an entry of a map.
func (n *textNode) isEntry() bool {
	return len(n.children) == 2 && len(n.named("key")) == 1 && len(n.named("value")) == 1
}

// leadingTo are the nodes around an offset, from the outside in.
func (n *textNode) leadingTo(offset int) []*textNode {
	var chain []*textNode
	for {
		i := sort.Search(len(n.children), func(i int) bool { return offset < n.children[i].end })
		if i == len(n.children) || offset < n.children[i].start() {
			return chain
		}
		n = &n.children[i]
		chain = append(chain, n)
	}
}

// parseText is the tree of a text proto, as far as the text is one.
func parseText(text []byte) *textTree {
	p := textParser{text: text}
	t := &textTree{textNode: textNode{key: -1, message: true}, tooDeep: -1}
	t.whole = p.fields(&t.textNode, 0) && p.at == len(text)
	t.end = p.at
	if len(t.children) > 0 {
		t.value = t.children[0].key
	}
	if p.tooDeep {
		t.tooDeep = p.at
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
func (p *textParser) fields(n *textNode, depth int) bool {
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
			n.children = append(n.children, textNode{name: name, key: p.at})
			p.at += end + 1
		default:
			start := p.at
			if p.word(); p.at == start {
				return false
			}
			n.children = append(n.children, textNode{name: string(p.text[start:p.at]), key: start})
		}
		field := &n.children[len(n.children)-1]
		field.end = p.at
		if p.peek() == ':' {
			p.at++
			p.peek()
		}
		field.value = p.at
		ok := p.value(field, depth)
		if field.end = p.at; !ok {
			return false
		}
		if c := p.peek(); c == ',' || c == ';' {
			p.at++
		}
	}
}

// value reads a scalar, a message or a list into n.
func (p *textParser) value(n *textNode, depth int) bool {
	if depth > maxDepth {
		p.tooDeep = true
		return false
	}
	switch c := p.peek(); c {
	case '{', '<':
		n.message = true
		p.at++
		if !p.fields(n, depth+1) || p.peek() != closing(c) {
			return false
		}
		p.at++
		return true
	case '[':
		n.list = true
		p.at++
		for p.peek() != ']' {
			element := textNode{key: -1, value: p.at}
			ok := p.value(&element, depth+1)
			element.end = p.at
			n.children = append(n.children, element)
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
