package syntax

import (
	"bytes"
	"fmt"
	"regexp"
)

// A YAML parser names, in its own words, the place where it gave up, which is mostly behind the mistake. The
// search for the mistake goes through the lines as a person does: lines that should line up, text behind a
// key, an unclosed quote. Only a text that the parser has refused is searched.
type yamlSearch struct {
	doc    *Document
	text   []byte
	starts []int // of lines, and the end of the text
	line   int   // the next line to read, from 0
	open   []yamlBlock
	// steps counts how often the text indents by how many spaces; nil before it is asked for.
	steps map[int]int
	// lost means that the search does not know a part of the text.
	lost bool
}

// yamlBlock is a list or a mapping that the search is in.
type yamlBlock struct {
	column int // of its dashes or keys, from 0
	isList bool
	last   Span // its last key or dash
	// empty says that nothing stands behind the last key or dash: a value may follow on the
	// lines below.
	empty bool
	// entries counts its keys or dashes.
	entries int
	// before is the key above the last one, if no value follows the key.
	before Span
	// inner is the column of the keys in a list before the last key, if the last key stands in the column of
	// the list's dashes; otherwise 0.
	inner int
}

// yamlMistake returns the first mistake in the text up to a line, counted from 1, or nil.
func yamlMistake(d YAMLDocument, before int) *mistake {
	s := yamlSearch{doc: d.Document, text: d.Text, starts: d.lines()}
	for s.line < min(before, len(s.starts)-1) && !s.lost {
		if m := s.entry(); m != nil {
			return m
		}
	}
	return nil
}

// bounds are the first byte of a line and the one behind its last, without the line break.
func (s *yamlSearch) bounds(line int) (start, end int) {
	start = s.starts[line]
	return start, start + len(bytes.TrimRight(s.text[start:s.starts[line+1]], "\r\n\u0085\u2028\u2029"))
}

// entry reads the next line, and those that its value goes on.
func (s *yamlSearch) entry() *mistake {
	start, end := s.bounds(s.line)
	s.line++
	line := s.text[start:end]
	if len(line) > 0 && line[0] == '%' && len(s.open) == 0 {
		return nil // a directive
	}
	at := start
	if isMarker(line, "---") {
		at += len("---")
	}
	content := bytes.TrimLeft(s.text[at:end], " ")
	at = end - len(content)
	switch {
	case len(bytes.TrimSpace(content)) == 0 || content[0] == '#':
		return nil
	case isMarker(line, "..."):
		s.lost = true
		return nil
	}
	if m := badIndent(content, at); m != nil {
		return m
	}
	for first := true; isItem(content); first = false {
		column := at - start
		if m := s.enter(yamlBlock{column: column, isList: true, last: Span{at, at + 1}}, first); m != nil {
			return m
		}
		content = bytes.TrimLeft(content[1:], " ")
		if at = end - len(content); len(content) == 0 || content[0] == '#' {
			s.top().empty = true
			return nil
		}
		if !isItem(content) {
			return s.content(at, end, at-start, false)
		}
	}
	return s.content(at, end, at-start, true)
}

// badIndent returns the mistake of a line whose indent has other characters than spaces.
func badIndent(content []byte, at int) *mistake {
	if content[0] == '\t' {
		end := len(content) - len(bytes.TrimLeft(content, "\t "))
		return &mistake{At: Span{at, at + end}, Message: "the line is indented with a tab", Help: "indent with spaces: YAML allows no tab there"}
	}
	for _, odd := range []string{"\u00a0", "\u3000", "\u2003", "\u2002", "\u2009", "\u200b", "\ufeff"} {
		if bytes.HasPrefix(content, []byte(odd)) {
			return copied(Span{at, at + len(odd)}, fmt.Sprintf("the line begins with a character that looks like a space but "+
				"is not one: %U", []rune(odd)[0]), "type the spaces again")
		}
	}
	return nil
}

func (s *yamlSearch) top() *yamlBlock {
	if len(s.open) == 0 {
		return nil
	}
	return &s.open[len(s.open)-1]
}

// content reads what stands on a line behind its dashes: a key and its value, or a value.
// isFirst says that there were no dashes.
func (s *yamlSearch) content(at, end, column int, isFirst bool) *mistake {
	if m := s.badStart(at, end); m != nil {
		return m
	}
	key, value, isKey := s.key(at, end)
	if !isKey {
		return s.withoutKey(at, end, column, isFirst)
	}
	if m := s.enter(yamlBlock{column: column, last: key}, isFirst); m != nil {
		return m
	}
	return s.value(value, end)
}

// key returns the place of a line's key, and the offset of its value.
func (s *yamlSearch) key(at, end int) (key Span, value int, ok bool) {
	from := at + propertiesOf(s.text[at:end])
	if from >= end {
		return Span{}, 0, false
	}
	colon := -1
	switch rest := s.text[from:end]; rest[0] {
	case '"', '\'':
		closed := endOfQuoted(rest, 0)
		if next := bytes.TrimLeft(rest[closed:], " "); closesQuote(rest, closed) && len(next) > 0 && next[0] == ':' {
			colon = end - len(next)
		}
	case '{', '[', '|', '>', '?':
		s.lost = s.lost || rest[0] == '?' && (len(rest) == 1 || rest[1] == ' ')
	default:
		if i := colonIn(rest); i >= 0 {
			colon = from + i
		}
	}
	if colon < 0 {
		return Span{}, 0, false
	}
	return Span{from, from + len(bytes.TrimRight(s.text[from:colon], " "))}, colon + 1, true
}

// colonIn returns the offset of the colon behind a key without quotes, or -1.
func colonIn(text []byte) int {
	for i, c := range text {
		switch {
		case c == '#' && i > 0 && (text[i-1] == ' ' || text[i-1] == '\t'):
			return -1
		case c == ':' && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t'):
			return i
		}
	}
	return -1
}

// closesQuote reports whether a quoted text that ends at an offset has its closing quote.
func closesQuote(text []byte, end int) bool {
	return end > 1 && text[end-1] == text[0] && endOfQuoted(text[:end], 0) == end
}

// enter goes to the block that an entry belongs to. Behind a dash on the same line it is a new
// one; a first entry must line up with what stands above.
func (s *yamlSearch) enter(b yamlBlock, isFirst bool) *mistake {
	if !isFirst {
		s.open = append(s.open, b)
		s.top().entries = 1
		return nil
	}
	var left *yamlBlock // the outermost block that ends above this line
	for top := s.top(); top != nil && top.column > b.column; top = s.top() {
		block := *top
		left = &block
		s.open = s.open[:len(s.open)-1]
	}
	top := s.top()
	switch {
	case top != nil && top.column == b.column:
		return s.beside(b, left)
	case top == nil && left == nil:
	case top == nil:
		return s.misaligned(b, *left, nil)
	case left != nil:
		return s.misaligned(b, *left, top)
	case !top.empty:
		return s.tooDeep(b)
	default:
		top.empty = false
	}
	b.entries = 1
	s.open = append(s.open, b)
	return nil
}

// beside takes an entry up that stands in the column of the block around it.
func (s *yamlSearch) beside(b yamlBlock, left *yamlBlock) *mistake {
	top := s.top()
	switch {
	case top.isList == b.isList:
		top.before = Span{}
		if top.empty {
			top.before = top.last
		}
		top.last, top.empty, top.inner = b.last, false, b.inner
		top.entries++
		return nil
	case b.isList && top.empty: // a list may stand in the column of its key
		top.empty = false
		b.entries = 1
		s.open = append(s.open, b)
		return nil
	case b.isList && top.before != Span{}:
		return s.between(*top)
	case b.isList:
		return &mistake{At: b.last, Message: fmt.Sprintf("a list entry is among keys: %s above has its value already", s.named(top.last)),
			Help: "remove the dash, or put it below the key whose list it belongs to", other: s.standsAt(*top)}
	case len(s.open) > 1 && s.open[len(s.open)-2].column == b.column: // the key behind such a list
		s.open = s.open[:len(s.open)-1]
		if left != nil {
			b.inner = left.column
		}
		return s.beside(b, nil)
	}
	m := s.withoutDash(b.last)
	m.other = s.standsAt(*top)
	return m
}

// withoutDash is the mistake of a key in the column of a list's dashes.
func (s *yamlSearch) withoutDash(key Span) *mistake {
	if text := s.text[key.From:key.To]; len(text) > 1 && text[0] == '-' {
		return &mistake{At: key, Message: "a space is missing after the dash", Help: `begin the list entry with "- "`}
	}
	return &mistake{At: key, Message: fmt.Sprintf("%s is in the column of the dashes, and has no dash", s.named(key)),
		Help: `put "- " in front of it if it begins an entry of the list; indent it if it belongs to the entry above`}
}

// misaligned is the mistake of a line that lines up with nothing above it: further out than one
// block, and further in than the next, which may be nil.
func (s *yamlSearch) misaligned(b yamlBlock, inner yamlBlock, outer *yamlBlock) *mistake {
	if outer != nil && s.isOdd(inner, outer.column, b.column) {
		return s.oddIndent(inner, b)
	}
	at := b.last
	message := fmt.Sprintf("%s lines up with nothing above it: it begins in column %d, %s "+
		"in column %d", s.named(at), b.column+1, s.named(inner.last), inner.column+1)
	if outer != nil {
		message += fmt.Sprintf(", %s in column %d", s.named(outer.last), outer.column+1)
	}
	return &mistake{At: at, Message: message, Help: fmt.Sprintf("indent it by %d spaces to put "+
		"it beside %s", inner.column, s.named(inner.last)), other: s.standsAt(inner)}
}

// tooDeep returns the mistake of an indented line below a line that already has a value.
func (s *yamlSearch) tooDeep(b yamlBlock) *mistake {
	top := *s.top()
	if top.inner == b.column && b.column > 0 && !b.isList {
		return s.withoutDash(top.last)
	}
	if top.before != (Span{}) {
		return s.between(top)
	}
	if n := len(s.open); n > 1 && s.isOdd(top, s.open[n-2].column, b.column) {
		return s.oddIndent(top, b)
	}
	m := &mistake{At: b.last, other: s.standsAt(top)}
	m.Message = fmt.Sprintf("%s is indented too far: %s above has its value already", s.named(b.last), s.named(top.last))
	m.Help = fmt.Sprintf("begin it in column %d, as the line above", top.column+1)
	if top.isList {
		m.Message = fmt.Sprintf("%s is indented below a list entry that has its value already", s.named(b.last))
	}
	return m
}

// between returns the mistake of a key between another key and the lines of that key.
func (s *yamlSearch) between(b yamlBlock) *mistake {
	return &mistake{At: b.last, Message: fmt.Sprintf("%s is between %s and its value", s.named(b.last), s.named(b.before)),
		Help: "swap the two lines, or indent this one", other: &otherPlace{b.before, s.named(b.before) + " is here"}}
}

// isOdd reports whether a block consists of one line with an unusual indent, while the line below has the
// usual indent.
func (s *yamlSearch) isOdd(b yamlBlock, outer, column int) bool {
	step := s.step()
	return b.entries == 1 && !b.isList && b.column-outer != step && column-outer == step
}

// step is by how many spaces the text mostly indents.
func (s *yamlSearch) step() int {
	if s.steps == nil {
		s.steps = map[int]int{2: 2} // what nearly everybody indents by
		before := 0
		for _, start := range s.starts[:len(s.starts)-1] {
			depth, content := indented(s.text[start:min(start+maxIndent, len(s.text))])
			if content == nil {
				continue
			}
			if depth > before {
				s.steps[depth-before]++
			}
			before = depth
		}
	}
	step := 2
	for n, times := range s.steps {
		if best := s.steps[step]; times > best || times == best && n < step {
			step = n
		}
	}
	return step
}

// maxIndent is how far a line is looked at for its indent.
const maxIndent = 256

// oddIndent is the mistake of a line that is indented otherwise than its neighbour below.
func (s *yamlSearch) oddIndent(odd, b yamlBlock) *mistake {
	return &mistake{At: odd.last, Message: fmt.Sprintf("%s begins in column %d, and its neighbour %s "+
		"in column %d", s.named(odd.last), odd.column+1, s.named(b.last), b.column+1),
		Help: fmt.Sprintf("indent it by %d spaces, as its neighbour", b.column), other: s.standsAt(b)}
}

// named is what a message calls a key or a dash.
func (s *yamlSearch) named(at Span) string {
	text := string(bytes.Trim(s.text[at.From:at.To], `"'`))
	if text == "-" {
		return "the dash"
	}
	if s.doc.source.keyIn(text) == "a key" {
		return "the key"
	}
	return fmt.Sprintf("%q", Shorten(text))
}

func (s *yamlSearch) standsAt(b yamlBlock) *otherPlace {
	return &otherPlace{b.last, fmt.Sprintf("%s begins in column %d", s.named(b.last), b.column+1)}
}

var (
	noSpace   = regexp.MustCompile(`^["']?@?[A-Za-z_][\w.-]*["']?:[^\s:/]`)
	semicolon = regexp.MustCompile(`^["']?@?[A-Za-z_][\w.-]*["']?;`)
	equals    = regexp.MustCompile(`^["']?@?[A-Za-z_][\w.-]*["']?\s*=`)
	oneWord   = regexp.MustCompile(`^["']?@?[A-Za-z_][\w.-]*["']?\s*(?:#.*)?$`)
	twoWords  = regexp.MustCompile(`^["']?@?[A-Za-z_][\w.-]*["']?[ \t]+\S`)
)

// withoutKey reads a line, or what stands behind a dash, that has no key.
func (s *yamlSearch) withoutKey(at, end, column int, isFirst bool) *mistake {
	if !isFirst {
		return s.value(at, end)
	}
	for top := s.top(); top != nil && top.column > column; top = s.top() {
		s.open = s.open[:len(s.open)-1]
	}
	top := s.top()
	if top == nil || top.empty && top.column < column {
		if top != nil {
			top.empty = false
		}
		return s.value(at, end)
	}
	m := &mistake{At: Span{at, end}}
	switch line := s.text[at:end]; {
	case line[0] == '}' || line[0] == ']':
		return closesNothing(at, line[0])
	case len(line) > 1 && line[0] == '-' && line[1] != '-':
		m.Message, m.Help = "a space is missing after the dash", `begin the list entry with "- "`
	case noSpace.Match(line):
		m.Message, m.Help = "a space is missing after the colon", `write "key: value"`
	case bytes.ContainsRune(line, '：'):
		m.Message, m.Help = "： is not a YAML colon", `write "key: value", with the colon of a plain keyboard`
	case semicolon.Match(line):
		m.Message, m.Help = "this line has a ; where YAML has a colon", `write "key: value"`
	case equals.Match(line):
		m.Message, m.Help = "this line has an = where YAML has a colon", `write "key: value"`
	case oneWord.Match(line):
		m.Message, m.Help = "this line has a key without a colon", `write "key: value", or "key:" if the value is below`
	case twoWords.Match(line):
		m.Message, m.Help = "a colon is missing after the key", `write "key: value"`
	default:
		m.Message, m.Help = "this line has neither a key nor a dash", `write "key: value", or "- " in front of an entry of a list`
	}
	return m
}
