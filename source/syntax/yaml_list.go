package syntax

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v3"
)

// A YAML parser's tree takes forty times the space of its text. A long list of
// resources, by itself, in a DiscoveryResponse or among the static resources of a Bootstrap, is
// therefore parsed in pieces, side by side, where its elements can be told apart
// without a parser; the result is the same. Anything unusual, an error among it, has
// the document parsed as a whole.
const (
	// longList is the number of elements from which a list is parsed in pieces.
	longList = 128
	// piece is the number of elements parsed at a time.
	piece = 64
)

// List is a list in block style, cut into its elements.
type List struct {
	// starts are the offsets of the elements in the document, and where the last ends.
	starts []int
	path   []string // of the list, once the document is cut

	mu     sync.Mutex
	recent [recentElements]element
}

// recentElements is the number of cached elements: findings mostly come in the order of elements, on several
// goroutines.
const recentElements = 8

// element is an element of a list as a document; nil before the first use.
type element struct {
	i   int
	doc *Document
}

// elementWith is the element of a long list that holds the value at a path, as a list of one,
// and the path in that. A finding must not have the whole text parsed.
func (d YAMLDocument) elementWith(tokens []string) (part *Document, rest []string, ok bool) {
	d.views().lists.Range(func(list, _ any) bool {
		l := list.(*List)
		in := l.path
		if len(tokens) <= len(in) || !slices.Equal(tokens[:len(in)], in) {
			return true
		}
		i, err := strconv.Atoi(tokens[len(in)])
		if ok = err == nil && i >= 0 && i < l.len(); ok {
			rest = append([]string{"0"}, tokens[len(in)+1:]...)
			part = l.element(d.Document, i)
		}
		return false
	})
	return part, rest, ok
}

// element is the i-th element of the list as a document.
func (l *List) element(d *Document, i int) *Document {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &l.recent[i%recentElements]
	if e.doc == nil || e.i != i {
		from, to := l.starts[i], l.starts[i+1]
		*e = element{i, d.source.document(d.Text[from:to], d.offset+from)}
	}
	return e.doc
}

// beside is the tree of parseBeside, made once.
func (d YAMLDocument) beside() *yaml.Node {
	v := d.views()
	v.beside.Do(func() { v.beside.root = d.parseBeside() })
	return v.beside.root
}

// parseBeside returns the tree of a document in which each long list has a single empty element. All other
// nodes keep their places.
func (d YAMLDocument) parseBeside() *yaml.Node {
	var text []byte
	d.views().lists.Range(func(list, _ any) bool {
		if text == nil {
			text = bytes.Clone(d.Text)
		}
		l := list.(*List)
		from := l.starts[0] + bytes.IndexByte(text[l.starts[0]:], '-') + 1
		for rest := text[from:l.starts[l.len()]]; len(rest) > 0; {
			size := YAMLLine(rest)
			content := bytes.TrimRight(rest[:size], "\r\n\u0085\u2028\u2029")
			copy(content, bytes.Repeat([]byte{' '}, len(content)))
			rest = rest[size:]
		}
		return true
	})
	if text == nil {
		return d.YAML()
	}
	return ParseYAML(text)
}

// Lists are the lists cut out of a document, by key.
type Lists map[string]*List

// connected reports whether a text may have syntax that elements of a list share, an anchor or a directive, or
// syntax that only a parser can split into elements.
func connected(text []byte) bool {
	before := byte('\n')
	for i, c := range text {
		switch c {
		case '&', '*', '!':
			if bytes.IndexByte([]byte(" \n[{,:-"), before) >= 0 && i+1 < len(text) && bytes.IndexByte([]byte(" \"'\r\n"), text[i+1]) < 0 {
				return true
			}
		case '%', '.':
			if before == '\n' {
				return true
			}
		case '\t':
			return true
		}
		before = c
	}
	return false
}

// keyLine returns the offset behind the first line with nothing but a key at the left margin, or -1.
func (d YAMLDocument) keyLine(key string) int {
	for pos := 0; ; {
		at := bytes.Index(d.Text[pos:], []byte(key+":"))
		if at < 0 {
			return -1
		}
		at += pos
		end := at + YAMLLine(d.Text[at:])
		if (at == 0 || d.Text[at-1] == '\n') && isKey(d.Text[at:end], key) {
			return end
		}
		pos = at + len(key)
	}
}

// isKey reports whether a line, its indent taken off, is a key without a value.
func isKey(content []byte, key string) bool {
	rest, ok := bytes.CutPrefix(content, []byte(key))
	if ok {
		rest, ok = bytes.CutPrefix(rest, []byte(":"))
	}
	value := bytes.TrimSpace(rest)
	return ok && (len(value) == 0 || value[0] == '#')
}

// listIn finds the elements of a list from pos on, the beginning of the line behind the list's key in column
// margin. end is the offset behind the list. ok is false if only a parser can find the elements, or if the
// list has no elements in block style.
func (d YAMLDocument) listIn(pos, margin int) (l *List, end int, ok bool) {
	l = &List{}
	indent := -1
	for pos < len(d.Text) {
		size := YAMLLine(d.Text[pos:])
		depth, content := indented(d.Text[pos : pos+size])
		switch {
		case len(content) == 0:
		case indent < 0 && depth >= margin && isElement(content):
			indent = depth
			l.starts = append(l.starts, pos)
		case indent < 0:
			return nil, 0, false
		case depth == indent && isElement(content):
			l.starts = append(l.starts, pos)
		case depth > indent:
		case depth <= margin: // the next key
			l.starts = append(l.starts, pos)
			return l, pos, true
		default:
			return nil, 0, false
		}
		pos += size
	}
	l.starts = append(l.starts, pos)
	return l, pos, indent >= 0
}

// indented returns the indent and the content of a line; no content for an empty line or a comment.
func indented(line []byte) (depth int, content []byte) {
	content = bytes.TrimLeft(line, " ")
	depth = len(line) - len(content)
	if len(bytes.TrimSpace(content)) == 0 || content[0] == '#' {
		return depth, nil
	}
	return depth, content
}

func isElement(content []byte) bool {
	return content[0] == '-' && len(content) > 1 && (content[1] == ' ' || content[1] == '\n' || content[1] == '\r')
}

// RootList returns the list at the root of a document, or nil.
func (d YAMLDocument) RootList() *List {
	for pos := 0; pos < len(d.Text); {
		size := YAMLLine(d.Text[pos:])
		line := d.Text[pos : pos+size]
		rest, _ := bytes.CutPrefix(line, []byte("---"))
		if _, content := indented(rest); len(content) > 0 {
			l, end, ok := d.listIn(pos, 0)
			if !ok || end < len(d.Text) {
				return nil
			}
			return l
		}
		pos += size
	}
	return nil
}

// ListBehind returns the list behind a key of the document, or nil.
func (d YAMLDocument) ListBehind(key string) Lists {
	pos := d.keyLine(key)
	if pos < 0 {
		return nil
	}
	l, _, ok := d.listIn(pos, 0)
	if !ok {
		return nil
	}
	return Lists{key: l}
}

// ListsBelow are lists in the mapping behind a key of the document, by their names.
func (d YAMLDocument) ListsBelow(key string, names []string) Lists {
	pos := d.keyLine(key)
	if pos < 0 {
		return nil
	}
	lists := Lists{}
	margin := -1
	for pos < len(d.Text) {
		size := YAMLLine(d.Text[pos:])
		depth, content := indented(d.Text[pos : pos+size])
		pos += size
		switch {
		case len(content) == 0:
		case depth == 0:
			return lists
		case margin < 0:
			margin = depth
			fallthrough
		case depth == margin:
			i := slices.IndexFunc(names, func(name string) bool { return isKey(content, name) })
			if i < 0 {
				continue
			}
			if l, end, ok := d.listIn(pos, margin); ok {
				lists[names[i]], pos = l, end
			}
		}
	}
	return lists
}

// AreLong reports whether the lists are worth to be parsed in pieces.
func (lists Lists) AreLong() bool {
	n := 0
	for _, l := range lists {
		n += l.len()
	}
	return n >= longList
}

// IsLong reports whether the list is long enough for pieces.
func (l *List) IsLong() bool { return l.len() >= longList }

func (l *List) len() int { return len(l.starts) - 1 }

// without returns the document without the elements of lists.
func (d YAMLDocument) without(lists Lists) []byte {
	var cuts [][2]int
	for _, l := range lists {
		cuts = append(cuts, [2]int{l.starts[0], l.starts[l.len()]})
	}
	slices.SortFunc(cuts, func(a, b [2]int) int { return a[0] - b[0] })
	var rest []byte
	pos := 0
	for _, cut := range cuts {
		rest = append(rest, d.Text[pos:cut[0]]...)
		pos = cut[1]
	}
	return append(rest, d.Text[pos:]...)
}

// MayBeLong reports whether the document may have a long list that can be cut into pieces.
func (d YAMLDocument) MayBeLong() bool {
	return bytes.Count(d.Text, []byte("-")) >= longList && !connected(d.Text)
}

// Around is what stands around lists.
func (d YAMLDocument) Around(lists Lists) (members map[string]json.RawMessage, ok bool) {
	text, findings := d.source.document(d.without(lists), 0).AsYAML().ToJSON()
	if len(findings) > 0 {
		return nil, false
	}
	return ObjectOf(text)
}

// Cut has places in the list at a path found in its elements.
func (d YAMLDocument) Cut(path []string, l *List) {
	l.path = path
	d.views().lists.Store(l, nil)
}

// Join takes cut back.
func (d YAMLDocument) Join(l *List) { d.views().lists.Delete(l) }

// Pieces counts the pieces of a list.
func (l *List) Pieces() int { return (l.len() + piece - 1) / piece }

// Piece parses a piece of a list, and returns the number of its first element, and its elements. ok is false
// if the piece can't be parsed alone.
func (d YAMLDocument) Piece(l *List, n int) (first int, items []json.RawMessage, ok bool) {
	from, to := n*piece, min((n+1)*piece, l.len())
	text, findings := d.source.document(d.Text[l.starts[from]:l.starts[to]], 0).AsYAML().parsed()
	if len(findings) > 0 {
		return from, nil, false
	}
	items, _ = ListOf(text)
	return from, items, len(items) == to-from
}
