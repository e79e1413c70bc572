package syntax

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/diag"
)

// Span is a part of a document: the offsets of its first byte and behind its last one.
type Span struct{ From, To int }

// RangeOf finds the value at a path, or where key is set its key. A path that
// the source does not have gives the nearest value around it.
func (d *Document) RangeOf(tokens []string, key bool) diag.Range {
	switch d.source.Format {
	case JSON:
		return d.Span(d.jsonSpan(tokens, key))
	case TextProto:
		n, _ := d.Tree().Find(d.Text, tokens)
		return d.Span(n.shown(d.Text, key))
	case Binary:
		return FileRange(d.source.Name)
	default:
		return d.rangeYAML(tokens, key)
	}
}

// FileRange is that of a finding about a whole file.
func FileRange(name string) diag.Range { return diag.PointAt(diag.Position{File: name}) }

// Point is the empty range at a byte offset into the document's text, span that of a part.
func (d *Document) Point(offset int) diag.Range { return d.Span(Span{offset, offset}) }

// Span returns the range of a part of the document.
func (d *Document) Span(s Span) diag.Range { return d.source.Span(d.offset+s.From, d.offset+s.To) }

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

// Literal is a key or a scalar as it is written.
type Literal struct {
	Span
	Means string // the text that it stands for
}

// Correct is the edit that corrects a word in the value at a path, in the type URL of an Any
// there, or where key is set in the key. It is not ok where the path does not lead to text of its own that has the wrong word.
func (d *Document) Correct(tokens []string, key bool, c diag.Correction) (e diag.Edit, ok bool) {
	l, ok := d.LiteralAt(tokens, key)
	if !ok && !key {
		l, ok = d.LiteralAt(append(slices.Clip(tokens), typeURL), false)
	}
	if !ok {
		return diag.Edit{}, false
	}
	return d.Edit(l, c)
}

// LiteralAt is the key or the scalar at a path, which leads to it alone.
func (d *Document) LiteralAt(tokens []string, key bool) (Literal, bool) {
	switch d.source.Format {
	case JSON:
		return d.literalJSON(tokens, key)
	case TextProto:
		return d.literalText(tokens, key)
	case YAML:
		return d.literalYAML(tokens, key)
	}
	return Literal{}, false
}

// Has reports whether the document has a key or a value at a path.
func (d *Document) Has(tokens []string) bool {
	switch d.source.Format {
	case JSON:
		_, whole := d.jsonAt(tokens)
		return whole
	case YAML:
		return d.YAMLAt(tokens).Whole
	}
	return false
}

// typeURL is the field of an Any that JSON and YAML call "@type".
const typeURL = "type_url"

// Edit corrects a word in a literal: all of it, or a part that needs no quotes.
func (d *Document) Edit(l Literal, c diag.Correction) (e diag.Edit, ok bool) {
	raw := string(d.Text[l.From:l.To])
	if l.Means == c.Wrong {
		text, ok := d.source.spelled(raw, c.Right)
		return diag.Edit{Range: d.Span(l.Span), Text: text}, ok
	}
	if strings.Count(raw, c.Wrong) != 1 || !isSimple.MatchString(c.Wrong) || !isSimple.MatchString(c.Right) {
		return diag.Edit{}, false
	}
	at := l.From + strings.Index(raw, c.Wrong)
	return diag.Edit{Range: d.Span(Span{at, at + len(c.Wrong)}), Text: c.Right}, true
}

// isSimple matches what is written alike in quotes and without them, in all formats.
var isSimple = regexp.MustCompile(`^[A-Za-z0-9_.%/-]+$`)

// isBare matches what is text without quotes: in YAML where it does not read as another value,
// in a text proto a name.
var (
	isBare     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)
	isTextName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./]*$`)
)

// spelled is a text in the format of the source, with quotes where the literal that it takes
// the place of has some.
func (s *Text) spelled(instead, text string) (literal string, ok bool) {
	quote := byte(0)
	if instead != "" && (instead[0] == '"' || instead[0] == '\'') {
		quote = instead[0]
	}
	switch {
	case s.Format == TextProto && quote == 0:
		return text, isTextName.MatchString(text)
	case s.Format == TextProto:
		return strconv.Quote(text), true
	case s.Format == YAML && quote == 0 && isBare.MatchString(text) && !yamlBoolean.MatchString(text) && !yamlNull.MatchString(text):
		return text, true
	case s.Format == YAML && quote == '\'' && isSimple.MatchString(text):
		return "'" + text + "'", true
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	return string(quoted), err == nil
}

// jsonAt is the value at a path of a JSON document, or the nearest around it.
func (d *Document) jsonAt(tokens []string) (n JSONNode, whole bool) {
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
func (d *Document) jsonSpan(tokens []string, key bool) Span {
	n, whole := d.jsonAt(tokens)
	if key && whole && n.key >= 0 {
		return Span{n.key, endOfQuoted(d.Text, n.key)}
	}
	return Span{n.Value, n.End}
}

func (d *Document) literalJSON(tokens []string, key bool) (l Literal, ok bool) {
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

// endOfQuoted is the offset behind a text in double quotes, or in single ones.
func endOfQuoted(text []byte, at int) int {
	if at >= len(text) {
		return len(text)
	}
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return len(text)
}

func (d *Document) literalText(tokens []string, key bool) (l Literal, ok bool) {
	n, whole := d.Tree().Find(d.Text, tokens)
	switch last := len(tokens) - 1; {
	case !whole && last >= 0 && tokens[last] == typeURL:
		parent, whole := d.Tree().Find(d.Text, tokens[:last])
		if !whole || len(parent.Children) != 1 || !parent.Children[0].IsType() {
			return Literal{}, false
		}
		return parent.Children[0].NameLiteral(d.Text), true
	case !whole:
		return Literal{}, false
	case key:
		return n.NameLiteral(d.Text), n.Key >= 0
	}
	raw := d.Text[n.Value:n.End]
	return Literal{Span{n.Value, n.End}, Unquoted(raw)}, !n.Message && !n.List
}

// NameLiteral is the name of a field, or that in the brackets of an Any.
func (n *TextNode) NameLiteral(text []byte) Literal {
	at := n.NameSpan(text)
	if n.IsType() {
		return Literal{Span{at.From + 1, at.To - 1}, n.URL()}
	}
	return Literal{at, n.Name}
}
