package load

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
	// longList is how many elements are worth it.
	longList = 128
	// piece is how many elements are parsed at a time.
	piece = 64
)

// yamlList is a list in block style, cut into its elements.
type yamlList struct {
	// starts are the offsets of the elements in the document, and where the last ends.
	starts []int
	path   []string // of the list, once the document is cut

	mu     sync.Mutex
	recent [recentElements]element
}

// recentElements is how many elements are kept that were looked into: findings are mostly made
// in their order, on several goroutines.
const recentElements = 8

// element is one of a list as a document; nil before it is looked into.
type element struct {
	i   int
	doc *textDocument
}

// elementWith is the element of a long list that holds the value at a path, as a list of one,
// and the path in that. A finding must not have the whole text parsed.
func (d *textDocument) elementWith(tokens []string) (part *textDocument, rest []string, ok bool) {
	d.views().lists.Range(func(list, _ any) bool {
		l := list.(*yamlList)
		in := l.path
		if len(tokens) <= len(in) || !slices.Equal(tokens[:len(in)], in) {
			return true
		}
		i, err := strconv.Atoi(tokens[len(in)])
		if ok = err == nil && i >= 0 && i < l.len(); ok {
			rest = append([]string{"0"}, tokens[len(in)+1:]...)
			part = l.element(d, i)
		}
		return false
	})
	return part, rest, ok
}

// element is the i-th element of the list as a document.
func (l *yamlList) element(d *textDocument, i int) *textDocument {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &l.recent[i%recentElements]
	if e.doc == nil || e.i != i {
		from, to := l.starts[i], l.starts[i+1]
		*e = element{i, d.source.document(d.text[from:to], d.offset+from)}
	}
	return e.doc
}

// parseBeside is the tree of a document in which each long list has an empty element alone:
// all else stands where it stood.
func (d *textDocument) parseBeside() *yaml.Node {
	var text []byte
	d.views().lists.Range(func(list, _ any) bool {
		if text == nil {
			text = bytes.Clone(d.text)
		}
		l := list.(*yamlList)
		from := l.starts[0] + bytes.IndexByte(text[l.starts[0]:], '-') + 1
		for rest := text[from:l.starts[l.len()]]; len(rest) > 0; {
			size := yamlLine(rest)
			content := bytes.TrimRight(rest[:size], "\r\n\u0085\u2028\u2029")
			copy(content, bytes.Repeat([]byte{' '}, len(content)))
			rest = rest[size:]
		}
		return true
	})
	if text == nil {
		return d.yaml()
	}
	return parseYAML(text)
}

// yamlLists are the lists that were cut out of a document, by their keys.
type yamlLists map[string]*yamlList

// connected reports whether a text may have what one element of a list can share with
// another, an anchor or a directive, or what takes a parser to tell elements apart.
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

// keyLine is the offset behind the first line that holds nothing but a key at the
// left margin, -1 where there is none.
func (d *textDocument) keyLine(key string) int {
	for pos := 0; ; {
		at := bytes.Index(d.text[pos:], []byte(key+":"))
		if at < 0 {
			return -1
		}
		at += pos
		end := at + yamlLine(d.text[at:])
		if (at == 0 || d.text[at-1] == '\n') && isKey(d.text[at:end], key) {
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

// listIn finds the elements of a list from pos on, where the line behind its key
// begins, which stands in column margin. It is false where that takes a parser, or
// there are no elements in block style; otherwise the line at end is behind the list.
func (d *textDocument) listIn(pos, margin int) (l *yamlList, end int, ok bool) {
	l = &yamlList{}
	indent := -1
	for pos < len(d.text) {
		size := yamlLine(d.text[pos:])
		depth, content := indented(d.text[pos : pos+size])
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

// indented is how deep a line is indented, and what stands there; nothing of a line
// that is empty or a comment.
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

// rootList is the list that a document is, if it is one.
func (d *textDocument) rootList() *yamlList {
	for pos := 0; pos < len(d.text); {
		size := yamlLine(d.text[pos:])
		line := d.text[pos : pos+size]
		rest, _ := bytes.CutPrefix(line, []byte("---"))
		if _, content := indented(rest); len(content) > 0 {
			l, end, ok := d.listIn(pos, 0)
			if !ok || end < len(d.text) {
				return nil
			}
			return l
		}
		pos += size
	}
	return nil
}

// listBehind is the list behind a key of the document, if it has one.
func (d *textDocument) listBehind(key string) yamlLists {
	pos := d.keyLine(key)
	if pos < 0 {
		return nil
	}
	l, _, ok := d.listIn(pos, 0)
	if !ok {
		return nil
	}
	return yamlLists{key: l}
}

// listsBelow are lists in the mapping behind a key of the document, by their names.
func (d *textDocument) listsBelow(key string, names []string) yamlLists {
	pos := d.keyLine(key)
	if pos < 0 {
		return nil
	}
	lists := yamlLists{}
	margin := -1
	for pos < len(d.text) {
		size := yamlLine(d.text[pos:])
		depth, content := indented(d.text[pos : pos+size])
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

// long reports whether the lists are worth to be parsed in pieces.
func (lists yamlLists) long() bool {
	n := 0
	for _, l := range lists {
		n += l.len()
	}
	return n >= longList
}

// isLong reports whether the list by itself is worth it.
func (l *yamlList) isLong() bool { return l.len() >= longList }

func (l *yamlList) len() int { return len(l.starts) - 1 }

// without is the document without the elements of lists.
func (d *textDocument) without(lists yamlLists) []byte {
	var cuts [][2]int
	for _, l := range lists {
		cuts = append(cuts, [2]int{l.starts[0], l.starts[l.len()]})
	}
	slices.SortFunc(cuts, func(a, b [2]int) int { return a[0] - b[0] })
	var rest []byte
	pos := 0
	for _, cut := range cuts {
		rest = append(rest, d.text[pos:cut[0]]...)
		pos = cut[1]
	}
	return append(rest, d.text[pos:]...)
}

// mayBeLong reports whether the document may have a long list that can be cut into pieces.
func (d *textDocument) mayBeLong() bool {
	return bytes.Count(d.text, []byte("-")) >= longList && !connected(d.text)
}

// around is what stands around lists.
func (d *textDocument) around(lists yamlLists) (members map[string]json.RawMessage, ok bool) {
	text, findings := d.source.document(d.without(lists), 0).toJSON()
	if len(findings) > 0 {
		return nil, false
	}
	return objectOf(text)
}

// cut has places in the list at a path found in its elements.
func (d *textDocument) cut(path []string, l *yamlList) {
	l.path = path
	d.views().lists.Store(l, nil)
}

// join takes cut back.
func (d *textDocument) join(l *yamlList) { d.views().lists.Delete(l) }

// pieces counts the pieces of a list.
func (l *yamlList) pieces() int { return (l.len() + piece - 1) / piece }

// piece parses one of the pieces of a list: its first element, and all elements. It is not ok where the piece has to be
// parsed together with the others.
func (d *textDocument) piece(l *yamlList, n int) (first int, items []json.RawMessage, ok bool) {
	from, to := n*piece, min((n+1)*piece, l.len())
	text, findings := d.source.document(d.text[l.starts[from]:l.starts[to]], 0).parsed()
	if len(findings) > 0 {
		return from, nil, false
	}
	items, _ = listOf(text)
	return from, items, len(items) == to-from
}
