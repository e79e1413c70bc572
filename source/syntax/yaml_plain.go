package syntax

import (
	"bytes"
	"slices"
	"sync"
)

// plainJSON converts a plain YAML document to JSON in the form of sigs.k8s.io/yaml. Most documents are plain:
// ASCII, block style with mappings and lists, short flow style, unambiguous scalars on one line. plainJSON
// takes half the time of a parser. ok is false for every other document, even a faulty one, which a parser
// then judges. A fuzz test compares both.
func plainJSON(text []byte) (json []byte, ok bool) {
	p := plains.Get().(*plain)
	defer func() {
		p.text, p.line = nil, nil
		plains.Put(p)
	}()
	*p = plain{text: text, nodes: p.nodes[:0], entries: p.entries[:0], open: p.open[:0]}
	if len(text) > maxPlainText || !p.isPlainText() || !p.next() || p.done {
		return nil, false
	}
	root, ok := p.block(p.indent, 0)
	if !ok || !p.done {
		return nil, false
	}
	return p.appendJSON(make([]byte, 0, len(text)+len(text)/2), root), true
}

// plains are used parsers for reuse, because their nodes take more memory than the text.
var plains = sync.Pool{New: func() any { return new(plain) }}

// plain parses a plain document line by line.
type plain struct {
	text []byte
	pos  int // behind the line
	// The line that comes next: its content, without indent, comment and spaces behind,
	// and the column where that begins. A "- " that was taken off counts as indent.
	line   []byte
	indent int
	done   bool // there is no further line

	nodes   []plainNode
	entries []plainEntry // of mappings and lists that are read
	open    []plainEntry // entries of unfinished nodes, the innermost last
}

// plainNode is a scalar, or the entries of a mapping or list. plainNode and plainEntry have no pointers, so
// that the garbage collector need not scan them.
type plainNode struct {
	kind     byte  // 's' a JSON scalar, '"' a text, '{', '[', 'n' an absent value (null)
	from, to int32 // of a scalar in the text, without quotes; of the others in entries
}

type plainEntry struct {
	key  plainPart // of a mapping
	node int32
}

// plainPart is a part of the text.
type plainPart struct{ from, to int32 }

// part returns the place of s, which is a part of the text.
func (p *plain) part(s []byte) plainPart {
	from := int32(cap(p.text) - cap(s)) // both end where the array ends
	return plainPart{from, from + int32(len(s))}
}

func (p *plain) in(at plainPart) []byte { return p.text[at.from:at.to] }

const (
	// maxPlain bounds how deeply values nest.
	maxPlain = 64
	// maxPlainText bounds a text, whose places are int32.
	maxPlainText = 1 << 30
)

// isPlainText reports whether the document has printable ASCII and line breaks only.
func (p *plain) isPlainText() bool {
	for _, c := range p.text {
		if c < ' ' && c != '\n' || c > '~' {
			return false
		}
	}
	return true
}

// next goes to the next line that holds something.
func (p *plain) next() bool {
	for p.pos < len(p.text) {
		line := p.text[p.pos:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		start := p.pos
		p.pos += len(line) + 1
		content := withoutIndent(line)
		if len(content) == 0 || content[0] == '#' {
			continue
		}
		if len(content) == len(line) && (bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("...")) || line[0] == '%') {
			if start == 0 && string(bytes.TrimRight(line, " ")) == "---" {
				continue
			}
			return false
		}
		p.indent, p.line = len(line)-len(content), withoutComment(content)
		return true
	}
	p.done, p.line, p.indent = true, nil, -1
	return true
}

// withoutIndent is a line without the spaces that it begins with.
func withoutIndent(line []byte) []byte {
	for len(line) > 0 && line[0] == ' ' {
		line = line[1:]
	}
	return line
}

// withoutComment cuts a comment off a line, if the line has no quotes: in them # is text.
// Behind quotes it is found later.
func withoutComment(content []byte) []byte {
	if bytes.IndexByte(content, '"') < 0 && bytes.IndexByte(content, '\'') < 0 {
		if i := bytes.Index(content, []byte(" #")); i >= 0 {
			content = content[:i]
		}
	}
	return bytes.TrimRight(content, " ")
}

func (p *plain) scalar(kind byte, s []byte) int32 {
	at := p.part(s)
	return p.add(plainNode{kind, at.from, at.to})
}

func (p *plain) add(n plainNode) int32 {
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

// block parses the mapping or list whose first line is the next one, in column indent.
func (p *plain) block(indent, depth int) (int32, bool) {
	if depth > maxPlain {
		return 0, false
	}
	if isItem(p.line) {
		return p.list(indent, depth)
	}
	return p.mapping(indent, depth)
}

func (p *plain) list(indent, depth int) (int32, bool) {
	first := len(p.open)
	for !p.done && p.indent == indent && isItem(p.line) {
		rest := withoutIndent(p.line[1:])
		var value int32
		ok := false
		switch {
		case len(rest) == 0:
			value, ok = p.below(indent, depth, false)
		case isItem(rest) || keyEnd(rest) >= 0 && rest[0] != '{' && rest[0] != '[':
			p.indent += len(p.line) - len(rest)
			p.line = rest
			value, ok = p.block(p.indent, depth+1)
		default:
			value, ok = p.inline(rest, indent, depth)
		}
		if !ok {
			return 0, false
		}
		p.open = append(p.open, plainEntry{node: value})
	}
	if !p.done && p.indent > indent {
		return 0, false
	}
	return p.finish('[', first)
}

func (p *plain) mapping(indent, depth int) (int32, bool) {
	first := len(p.open)
	for !p.done && p.indent == indent && !isItem(p.line) {
		key, rest, ok := cutKey(p.line)
		if !ok {
			return 0, false
		}
		var value int32
		if len(rest) == 0 {
			value, ok = p.below(indent, depth, true)
		} else {
			value, ok = p.inline(rest, indent, depth)
		}
		if !ok {
			return 0, false
		}
		p.open = append(p.open, plainEntry{p.part(key), value})
	}
	if !p.done && p.indent > indent {
		return 0, false
	}
	return p.finish('{', first)
}

// finish finishes a mapping or list whose entries are open[first:], and sorts a mapping. ok is false for a
// mapping with a doubled key.
func (p *plain) finish(kind byte, first int) (int32, bool) {
	entries := p.open[first:]
	if kind == '{' {
		slices.SortFunc(entries, func(a, b plainEntry) int { return bytes.Compare(p.in(a.key), p.in(b.key)) })
		for i := 1; i < len(entries); i++ {
			if bytes.Equal(p.in(entries[i].key), p.in(entries[i-1].key)) {
				return 0, false
			}
		}
	}
	from := len(p.entries)
	p.entries, p.open = append(p.entries, entries...), p.open[:first]
	return p.add(plainNode{kind: kind, from: int32(from), to: int32(len(p.entries))}), true
}

// below parses what stands on the lines below a key, or a lone "-", in column indent. A
// list may stand in the column of its key.
func (p *plain) below(indent, depth int, key bool) (int32, bool) {
	if !p.next() {
		return 0, false
	}
	if !p.done && (p.indent > indent || p.indent == indent && key && isItem(p.line)) {
		return p.block(p.indent, depth+1)
	}
	return p.add(plainNode{kind: 'n'}), true
}

// inline parses a value that stands on the line of its key, or behind its "-", in column
// indent. The next line must not go on with it.
func (p *plain) inline(text []byte, indent, depth int) (int32, bool) {
	value, rest, ok := p.flow(text, depth, false)
	if !ok || len(rest) > 0 && (rest[0] != '#' || text[len(text)-len(rest)-1] != ' ') || !p.next() {
		return 0, false
	}
	if !p.done && p.indent > indent {
		return 0, false
	}
	return value, true
}

// flow parses a value in flow style, or a scalar. rest is what stands behind it, without
// spaces; a comment behind spaces begins with #.
func (p *plain) flow(text []byte, depth int, within bool) (value int32, rest []byte, ok bool) {
	if depth > maxPlain || len(text) == 0 {
		return 0, nil, false
	}
	switch text[0] {
	case '{', '[':
		return p.flowBlock(text[0], text[1:], depth)
	case '"', '\'':
		s, rest, ok := quotedText(text)
		if !ok {
			return 0, nil, false
		}
		return p.scalar('"', s), withoutIndent(rest), true
	}
	end := len(text)
	if within {
		if end = bytes.IndexFunc(text, endsScalar); end < 0 {
			return 0, nil, false
		}
	}
	scalar := bytes.TrimRight(text[:end], " ")
	kind, ok := plainScalar(scalar)
	if !ok {
		return 0, nil, false
	}
	return p.scalar(kind, scalar), text[end:], true
}

// endsScalar reports whether a character ends a scalar without quotes in flow style.
func endsScalar(c rune) bool { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}' }

// flowBlock parses the mapping or list whose bracket, kind, was read.
func (p *plain) flowBlock(kind byte, text []byte, depth int) (value int32, rest []byte, ok bool) {
	first := len(p.open)
	for text = withoutIndent(text); ; {
		if len(text) == 0 {
			return 0, nil, false
		}
		if text[0] == closing(kind) {
			value, ok = p.finish(kind, first)
			return value, withoutIndent(text[1:]), ok
		}
		var entry plainEntry
		if kind == '{' {
			var key []byte
			if key, text, ok = cutKey(text); !ok {
				return 0, nil, false
			}
			entry.key = p.part(key)
		}
		if entry.node, rest, ok = p.flow(text, depth+1, true); !ok || len(rest) == 0 {
			return 0, nil, false
		}
		p.open = append(p.open, entry)
		switch rest[0] {
		case ',':
			text = withoutIndent(rest[1:])
		case closing(kind):
			text = rest
		default:
			return 0, nil, false
		}
	}
}

// cutKey cuts the key off that a text begins with, and what stands between it and its value.
func cutKey(text []byte) (key, rest []byte, ok bool) {
	end := keyEnd(text)
	if end < 0 {
		return nil, nil, false
	}
	key, ok = plainKey(text[:end])
	return key, withoutIndent(text[end+1:]), ok
}

// keyEnd is where the colon behind a key stands, -1 where the line does not begin with a
// key of the plain kind.
func keyEnd(line []byte) int {
	if line[0] == '"' || line[0] == '\'' {
		s, rest, ok := quotedText(line)
		if !ok || len(s) > longestKey || len(rest) == 0 || rest[0] != ':' || len(rest) > 1 && rest[1] != ' ' {
			return -1
		}
		return len(line) - len(rest)
	}
	for i, c := range line {
		switch {
		case c == ':':
			if i == 0 || i > longestKey || i+1 < len(line) && line[i+1] != ' ' {
				return -1
			}
			return i
		case !isWord(c) && c != '.' && c != '/' && c != '-':
			return -1
		}
	}
	return -1
}

// longestKey is below what a parser takes for a key on one line.
const longestKey = 512

func isWord(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// plainKey is the text of a key.
func plainKey(text []byte) (key []byte, ok bool) {
	if text[0] == '"' || text[0] == '\'' {
		key, _, ok = quotedText(text)
		return key, ok
	}
	return text, isPlainWord(text)
}

// quotedText splits a text that begins with a quote into the quoted text and the rest.
func quotedText(text []byte) (s, rest []byte, ok bool) {
	end := bytes.IndexByte(text[1:], text[0])
	if end < 0 {
		return nil, nil, false
	}
	s, rest = text[1:1+end], text[2+end:]
	if text[0] == '"' && bytes.IndexByte(s, '\\') >= 0 || text[0] == '\'' && len(rest) > 0 && rest[0] == '\'' {
		return nil, nil, false
	}
	return s, rest, true
}

// plainScalar is the kind of a scalar without quotes.
func plainScalar(text []byte) (kind byte, ok bool) {
	switch string(text) {
	case "":
		return 0, false
	case "true", "false", "null":
		return 's', true
	}
	switch {
	case isPlainWord(text), isPlainNumeric(text):
		return '"', true
	case isPlainNumber(text):
		return 's', true
	}
	return 0, false
}

// isPlainWord reports whether a scalar is text to every parser: it begins with a letter, a
// slash or a _, and is no word that is read as something else.
func isPlainWord(text []byte) bool {
	if c := text[0]; !isWord(c) && c != '/' || '0' <= c && c <= '9' {
		return false
	}
	for i, c := range text {
		switch {
		case isWord(c), c == '.', c == '/', c == '-', c == '+', c == '(', c == ')', c == '$', c == '^', c == '=', c == '~',
			c == ';', c == '@', c == '<', c == '>', c == '%':
		case c == ':':
			if i+1 == len(text) || text[i+1] == ' ' {
				return false
			}
		case c == ' ':
			if i+1 < len(text) && (text[i+1] == '#' || text[i+1] == ':') {
				return false
			}
		default:
			return false
		}
	}
	return !slices.ContainsFunc(otherWords, func(word []byte) bool { return len(word) == len(text) && bytes.EqualFold(word, text) })
}

// otherWords are words, in any case, that some parser does not read as text.
var otherWords = bytes.Fields([]byte("y n yes no on off true false null nan inf"))

// isPlainNumeric reports whether a scalar of digits and dots is text nevertheless: an address, or a duration
// in seconds.
func isPlainNumeric(text []byte) bool {
	dots, last := 0, len(text)-1
	for i, c := range text {
		switch {
		case '0' <= c && c <= '9':
		case c == '.' && i > 0 && text[i-1] != '.':
			dots++
		case c == 's' && i == last && i > 0 && text[i-1] != '.':
			return dots <= 1
		default:
			return false
		}
	}
	return dots == 3 && text[last] != '.'
}

// isPlainNumber reports whether a scalar is a number in JSON's canonical form.
func isPlainNumber(text []byte) bool {
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || len(text) > 15 || digits[0] == '0' && len(text) > 1 {
		return false
	}
	return !bytes.ContainsFunc(digits, func(c rune) bool { return c < '0' || c > '9' })
}

const hexDigits = "0123456789abcdef"

// appendString appends a text as encoding/json writes it.
func appendString(json, s []byte) []byte {
	json = append(json, '"')
	for _, c := range s {
		switch c {
		case '"', '\\':
			json = append(json, '\\', c)
		case '<', '>', '&':
			json = append(json, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			json = append(json, c)
		}
	}
	return append(json, '"')
}

func (p *plain) appendJSON(json []byte, at int32) []byte {
	n := &p.nodes[at]
	switch n.kind {
	case 'n':
		return append(json, "null"...)
	case 's':
		return append(json, p.text[n.from:n.to]...)
	case '"':
		return appendString(json, p.text[n.from:n.to])
	}
	json = append(json, n.kind)
	for i, e := range p.entries[n.from:n.to] {
		if i > 0 {
			json = append(json, ',')
		}
		if n.kind == '{' {
			json = append(appendString(json, p.in(e.key)), ':')
		}
		json = p.appendJSON(json, e.node)
	}
	return append(json, closing(n.kind))
}
