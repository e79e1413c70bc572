// Package syntax turns the text of a file (YAML, JSON or text proto) into nodes with places. If a text can't
// be parsed, package syntax finds the mistake. Package syntax knows no message; the code that reads the text
// is a Reader.
//
// sigs.k8s.io/yaml reads YAML, because its YAML 1.1 booleans are Envoy's, too. Places cost nothing until a
// finding asks for a place: only then a parser that keeps lines and columns reads the text again.
package syntax

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"xdspub/diag"
)

// Text is the text of one file.
type Text struct {
	Name   string
	Format Format
	Marked bool // the text has a byte order mark
	reader Reader
	holder holder
}

// Reader is who a text is for, as far as findings about the text speak of it.
type Reader interface {
	// ByEnvoy reports whether Envoy itself reads the file, by its own rules.
	ByEnvoy() bool
	// OnlyJSON reports whether another program reads the file, and no format but JSON.
	OnlyJSON() bool
	// Removal names the remedy for a file without content for the reader.
	Removal() string
	// IsField reports whether a name is the name of a field.
	IsField(name string) bool
	// MayBeSecret reports whether the value of a key may be secret.
	MayBeSecret(key string) bool
	// HoldsSecrets reports whether a text names a message that is secret as a whole.
	HoldsSecrets(text []byte) bool
}

// Init makes a sourceText of the bytes of a file.
func (s *Text) Init(name string, f Format, data []byte, r Reader) {
	if f != Binary {
		data, s.Marked = bytes.CutPrefix(data, []byte("\ufeff"))
	}
	s.Name, s.Format, s.reader = name, f, r
	s.holder.held.Store(&content{data: data})
}

// content is the text of a source, without its byte order mark, and what was made of it.
type content struct {
	data      []byte
	documents []*Document // that resources were read from
	asked     lazy[sourceViews]
}

// sourceViews are made when a finding first asks for them. Most sources have none.
type sourceViews struct {
	Places    func() Places
	text      func() string
	sensitive func() bool
}

// lazy computes its value on first use. An empty lazy costs one pointer.
type lazy[T any] struct{ made atomic.Pointer[T] }

// get returns the first value of make. Concurrent calls may call make twice, so make must be cheap.
func (l *lazy[T]) get(make func() *T) *T {
	if l.made.Load() == nil {
		l.made.CompareAndSwap(nil, make())
	}
	return l.made.Load()
}

func (s *Text) views() *sourceViews {
	c := s.content()
	return c.asked.get(func() *sourceViews {
		return &sourceViews{
			Places:    sync.OnceValue(func() Places { return placesOf(c.data) }),
			text:      sync.OnceValue(func() string { return string(c.data) }),
			sensitive: sync.OnceValue(func() bool { return s.sensitiveText(c.data) }),
		}
	})
}

// Data returns the text, without its byte order mark.
func (s *Text) Data() []byte { return s.content().data }

// Places returns where the lines of the text begin.
func (s *Text) Places() Places { return s.views().Places() }
func (s *Text) text() string   { return s.views().text() }

// Sensitive reports whether the text may have a secret.
func (s *Text) Sensitive() bool { return s.views().sensitive() }

// Line is line n of the source, from 1.
func (s *Text) Line(n int) (string, bool) {
	starts := s.Places().Lines
	if n < 1 || n > len(starts) {
		return "", false
	}
	text := s.text()[starts[n-1]:]
	if n < len(starts) {
		text = s.text()[starts[n-1] : starts[n]-1]
	}
	return strings.TrimSuffix(text, "\r"), true
}

// LongLine is the length from which on a line is not searched for keys again.
const LongLine = 4 << 10

// Shown returns line n of the source if the line can't hold a secret. A finding may share its line with a
// foreign key, because flow style and minified JSON put several resources on a line.
func (s *Text) Shown(n int) (string, bool) {
	text, ok := s.Line(n)
	if ok && s.Sensitive() && (len(text) > LongLine || s.sensitiveText([]byte(text))) {
		return "", false
	}
	return text, ok
}

// at is the position of a byte offset into the source.
func (s *Text) at(offset int) diag.Position {
	p, data := s.Places(), s.Data()
	offset = min(max(offset, 0), len(data))
	line := sort.SearchInts(p.Lines, offset+1) - 1
	return diag.Position{
		File:   s.Name,
		Line:   line + 1,
		Column: p.runesTo(data, offset) - p.runesTo(data, p.Lines[line]) + 1,
	}
}

// Finding is an error at a place that no resource is known for.
func (s *Text) Finding(code diag.Code, at diag.Range, message, help string) diag.Diagnostic {
	return diag.Diagnostic{Code: code.Name, Severity: code.Severity, Position: at.Position, End: at.End, Message: message, Help: help, Sensitive: s.Sensitive()}
}

// sensitiveText reports whether a text has a key whose value may be secret. In a text that can't be parsed,
// the lines of that key are unknown, so no line is printed.
func (s *Text) sensitiveText(text []byte) bool {
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

// keyIn returns a key for a message. Beside secrets, a key that is no name of the API may be a value without
// its quotes, and is not quoted.
func (s *Text) keyIn(name string) string {
	if s.Sensitive() && !s.reader.IsField(name) {
		return "a key"
	}
	return fmt.Sprintf("key %q", name)
}

// lastCounts says what Envoy does with two values of one name.
func (s *Text) lastCounts() string {
	if s.reader.ByEnvoy() {
		return "Envoy uses the last without an error"
	}
	return "Envoy would use the last without an error"
}

// Point is the empty range at a byte offset into the source, span that of a part.
func (s *Text) Point(offset int) diag.Range { return s.Span(offset, offset) }

// Span returns the range of a part of the text.
func (s *Text) Span(from, to int) diag.Range {
	start := s.at(from)
	if to <= from {
		return diag.PointAt(start)
	}
	end := s.at(to)
	return diag.Range{Position: start, End: diag.End{EndLine: end.Line, EndColumn: end.Column}}
}

// NotUTF8 returns the finding about the first byte that is not UTF-8. ok is false if all bytes are UTF-8.
func (s *Text) NotUTF8() (f diag.Diagnostic, ok bool) {
	data := s.Data()
	if utf8.Valid(data) {
		return f, false
	}
	i := 0
	for i < len(data) {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		i += size
	}
	return s.Finding(CodeInvalidUTF8, s.Point(i), fmt.Sprintf("byte 0x%02x is not valid UTF-8", data[i]), "save the file as UTF-8"), true
}
