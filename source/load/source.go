package load

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"go.yaml.in/yaml/v3"

	"xdspub/diag"
)

// sourceText is the text of one file.
type sourceText struct {
	name   string
	format format
	marked bool // the text has a byte order mark
	reader Reader
	holder holder
}

// Reader is who a text is for, as far as findings about the text speak of it.
type Reader interface {
	// ByEnvoy reports whether Envoy itself reads the file, by its own rules.
	ByEnvoy() bool
	// OnlyJSON reports whether another program reads the file, and no format but JSON.
	OnlyJSON() bool
	// Removal says what to do with a file that holds nothing for the reader.
	Removal() string
	// IsField reports whether a name is that of a field.
	IsField(name string) bool
	// MayBeSecret reports whether the value of a key may be secret.
	MayBeSecret(key string) bool
	// HoldsSecrets reports whether a text names a message that is secret as a whole.
	HoldsSecrets(text []byte) bool
}

// init makes a sourceText of the bytes of a file.
func (s *sourceText) init(name string, f format, data []byte, r Reader) {
	if f != formatBinary {
		data, s.marked = bytes.CutPrefix(data, []byte("\ufeff"))
	}
	s.name, s.format, s.reader = name, f, r
	s.holder.held.Store(&content{data: data})
}

// content is the text of a source, without its byte order mark, and what was made of it.
type content struct {
	data      []byte
	documents []*textDocument // that resources were read from
	asked     lazy[sourceViews]
}

// sourceViews are made when a finding first asks for them. Most sources have none.
type sourceViews struct {
	places    func() places
	text      func() string
	sensitive func() bool
}

// lazy is a value that is made when it is first asked for. Without one it is small.
type lazy[T any] struct{ made atomic.Pointer[T] }

// get returns the value that make made first. What it makes is cheap: it may be made twice.
func (l *lazy[T]) get(make func() *T) *T {
	if l.made.Load() == nil {
		l.made.CompareAndSwap(nil, make())
	}
	return l.made.Load()
}

func (s *sourceText) views() *sourceViews {
	c := s.content()
	return c.asked.get(func() *sourceViews {
		return &sourceViews{
			places:    sync.OnceValue(func() places { return placesOf(c.data) }),
			text:      sync.OnceValue(func() string { return string(c.data) }),
			sensitive: sync.OnceValue(func() bool { return s.sensitiveText(c.data) }),
		}
	})
}

func (s *sourceText) data() []byte    { return s.content().data }
func (s *sourceText) places() places  { return s.views().places() }
func (s *sourceText) text() string    { return s.views().text() }
func (s *sourceText) sensitive() bool { return s.views().sensitive() }

// textDocument is one document of a source: a whole JSON file, or one part of a
// multi-document YAML file.
type textDocument struct {
	source *sourceText
	text   []byte
	offset int // of text in the source
	index  int // of the document in the source
	asked  lazy[documentViews]
}

// documentViews are made when they are first asked for. Most documents have none.
type documentViews struct {
	yaml func() *yaml.Node
	// beside is yaml without the elements of lists.
	beside func() *yaml.Node
	tree   func() *textTree
	lines  func() []int // where YAML sees lines of text begin
	odd    func() bool  // may hold numbers that Envoy takes for text
	lists  sync.Map     // long YAML lists that are parsed in pieces, by their paths
	keys   sync.Map     // of long YAML mappings: from the node to a func that makes its index
	long   sync.Map     // long JSON values: from the offset to a func that makes its children
}

func (s *sourceText) document(text []byte, offset int) *textDocument {
	return &textDocument{source: s, text: text, offset: offset}
}

// documents cuts the text into documents, and keeps them.
func (s *sourceText) documents() []*textDocument {
	c := s.content()
	if s.format == formatYAML {
		s.split(c)
	} else {
		s.whole(c)
	}
	return c.documents
}

// kept is one of the documents that the text was cut into.
func (s *sourceText) kept(index int) *textDocument { return s.content().documents[index] }

// withoutTabs writes spaces for tabs that Envoy's parser reads over.
func (s *sourceText) withoutTabs() { s.content().data = withoutTabs(s.data()) }

// whole is the content of the source as its only document.
func (s *sourceText) whole(c *content) *textDocument {
	d := s.document(c.data, 0)
	c.documents = []*textDocument{d}
	return d
}

func (d *textDocument) views() *documentViews {
	return d.asked.get(func() *documentViews {
		return &documentViews{
			yaml:   sync.OnceValue(func() *yaml.Node { return parseYAML(d.text) }),
			beside: sync.OnceValue(func() *yaml.Node { return d.parseBeside() }),
			tree:   sync.OnceValue(func() *textTree { return parseText(d.text) }),
			odd:    sync.OnceValue(func() bool { return holdsOddNumber(d.text) }),
			lines:  sync.OnceValue(func() []int { return yamlLines(d.text) }),
		}
	})
}

func (d *textDocument) yaml() *yaml.Node { return d.views().yaml() }
func (d *textDocument) tree() *textTree  { return d.views().tree() }
func (d *textDocument) lines() []int     { return d.views().lines() }
func (d *textDocument) odd() bool        { return d.views().odd() }

// line is line n of the source, from 1.
func (s *sourceText) line(n int) (string, bool) {
	starts := s.places().lines
	if n < 1 || n > len(starts) {
		return "", false
	}
	text := s.text()[starts[n-1]:]
	if n < len(starts) {
		text = s.text()[starts[n-1] : starts[n]-1]
	}
	return strings.TrimSuffix(text, "\r"), true
}

// longLine is the length from which on a line is not searched for keys again.
const longLine = 4 << 10

// shown is line n of the source, if nothing in it may be secret. A finding can
// stand beside a key that is not its own: flow style and minified JSON put
// several resources on one line.
func (s *sourceText) shown(n int) (string, bool) {
	text, ok := s.line(n)
	if ok && s.sensitive() && (len(text) > longLine || s.sensitiveText([]byte(text))) {
		return "", false
	}
	return text, ok
}

// at is the position of a byte offset into the source.
func (s *sourceText) at(offset int) diag.Position {
	p, data := s.places(), s.data()
	offset = min(max(offset, 0), len(data))
	line := sort.SearchInts(p.lines, offset+1) - 1
	return diag.Position{
		File:   s.name,
		Line:   line + 1,
		Column: p.runesTo(data, offset) - p.runesTo(data, p.lines[line]) + 1,
	}
}

// finding is an error at a place that no resource is known for.
func (s *sourceText) finding(code diag.Code, at diag.Range, message, help string) diag.Diagnostic {
	return diag.Diagnostic{Code: code.Name, Severity: code.Severity, Position: at.Position, End: at.End, Message: message, Help: help, Sensitive: s.sensitive()}
}

// sensitiveText reports whether a text has a key whose value may be secret. Where
// the text can't be parsed nobody can tell which lines belong to that key, so
// none is printed.
func (s *sourceText) sensitiveText(text []byte) bool {
	if s.reader.HoldsSecrets(text) {
		return true
	}
	for {
		i := bytes.IndexByte(text, ':')
		if i < 0 {
			return false
		}
		key := bytes.TrimRight(text[:i], " \t\r\n\"'")
		key = key[bytes.LastIndexFunc(key, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })+1:]
		if s.reader.MayBeSecret(string(key)) {
			return true
		}
		text = text[i+1:]
	}
}

// keyIn is a key for a message. Beside secrets, one that is no name of the API may
// be a value that lost its quotes.
func (s *sourceText) keyIn(name string) string {
	if s.sensitive() && !s.reader.IsField(name) {
		return "a key"
	}
	return fmt.Sprintf("key %q", name)
}
