package load

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

// span is a part of a document: the offsets of its first byte and behind its last one.
type span struct{ from, to int }

// rangeOf finds the value at a path, or where key is set its key. A path that
// the source does not have gives the nearest value around it.
func (d *textDocument) rangeOf(tokens []string, key bool) diag.Range {
	switch d.source.format {
	case formatJSON:
		return d.span(d.jsonSpan(tokens, key))
	case formatText:
		n, _ := d.tree().find(d.text, tokens)
		return d.span(n.shown(d.text, key))
	case formatBinary:
		return fileRange(d.source.name)
	default:
		return d.rangeYAML(tokens, key)
	}
}

// fileRange is that of a finding about a whole file.
func fileRange(name string) diag.Range { return diag.PointAt(diag.Position{File: name}) }

// point is the empty range at a byte offset into the document's text, span that of a part.
func (d *textDocument) point(offset int) diag.Range { return d.span(span{offset, offset}) }
func (d *textDocument) span(s span) diag.Range      { return d.source.span(d.offset+s.from, d.offset+s.to) }

// point is the empty range at a byte offset into the source, span that of a part.
func (s *sourceText) point(offset int) diag.Range { return s.span(offset, offset) }
func (s *sourceText) span(from, to int) diag.Range {
	start := s.at(from)
	if to <= from {
		return diag.PointAt(start)
	}
	end := s.at(to)
	return diag.Range{Position: start, End: diag.End{EndLine: end.Line, EndColumn: end.Column}}
}

// literal is a key or a scalar as it is written.
type literal struct {
	span
	means string // the text that it stands for
}

// correct is the edit that corrects a word in the value at a path, in the type URL of an Any
// there, or where key is set in the key. It is not ok where the path does not lead to text of its own that has the wrong word.
func (d *textDocument) correct(tokens []string, key bool, c diag.Correction) (e diag.Edit, ok bool) {
	l, ok := d.literalAt(tokens, key)
	if !ok && !key {
		l, ok = d.literalAt(append(slices.Clip(tokens), typeURL), false)
	}
	if !ok {
		return diag.Edit{}, false
	}
	return d.edit(l, c)
}

// literalAt is the key or the scalar at a path, which leads to it alone.
func (d *textDocument) literalAt(tokens []string, key bool) (literal, bool) {
	switch d.source.format {
	case formatJSON:
		return d.literalJSON(tokens, key)
	case formatText:
		return d.literalText(tokens, key)
	case formatYAML:
		return d.literalYAML(tokens, key)
	}
	return literal{}, false
}

// has reports whether the document has a key or a value at a path.
func (d *textDocument) has(tokens []string) bool {
	switch d.source.format {
	case formatJSON:
		_, whole := d.jsonAt(tokens)
		return whole
	case formatYAML:
		return d.yamlAt(tokens).whole
	}
	return false
}

// typeURL is the field of an Any that JSON and YAML call "@type".
const typeURL = "type_url"

// edit corrects a word in a literal: all of it, or a part that needs no quotes.
func (d *textDocument) edit(l literal, c diag.Correction) (e diag.Edit, ok bool) {
	raw := string(d.text[l.from:l.to])
	if l.means == c.Wrong {
		text, ok := d.source.spelled(raw, c.Right)
		return diag.Edit{Range: d.span(l.span), Text: text}, ok
	}
	if strings.Count(raw, c.Wrong) != 1 || !isSimple.MatchString(c.Wrong) || !isSimple.MatchString(c.Right) {
		return diag.Edit{}, false
	}
	at := l.from + strings.Index(raw, c.Wrong)
	return diag.Edit{Range: d.span(span{at, at + len(c.Wrong)}), Text: c.Right}, true
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
func (s *sourceText) spelled(instead, text string) (literal string, ok bool) {
	quote := byte(0)
	if instead != "" && (instead[0] == '"' || instead[0] == '\'') {
		quote = instead[0]
	}
	switch {
	case s.format == formatText && quote == 0:
		return text, isTextName.MatchString(text)
	case s.format == formatText:
		return strconv.Quote(text), true
	case s.format == formatYAML && quote == 0 && isBare.MatchString(text) && !yamlBoolean.MatchString(text) && !yamlNull.MatchString(text):
		return text, true
	case s.format == formatYAML && quote == '\'' && isSimple.MatchString(text):
		return "'" + text + "'", true
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	return string(quoted), err == nil
}

// jsonAt is the value at a path of a JSON document, or the nearest around it.
func (d *textDocument) jsonAt(tokens []string) (n jsonNode, whole bool) {
	n = jsonNode{key: -1, value: valueStart(d.text, 0), end: len(bytes.TrimRight(d.text, jsonSpace))}
	for _, token := range tokens {
		n.children = d.members(n)
		c := n.child(token)
		if c == nil {
			return n, false
		}
		n = *c
	}
	return n, true
}

// jsonSpan is where the value at a path stands, or its name.
func (d *textDocument) jsonSpan(tokens []string, key bool) span {
	n, whole := d.jsonAt(tokens)
	if key && whole && n.key >= 0 {
		return span{n.key, endOfQuoted(d.text, n.key)}
	}
	return span{n.value, n.end}
}

func (d *textDocument) literalJSON(tokens []string, key bool) (l literal, ok bool) {
	n, whole := d.jsonAt(tokens)
	if last := len(tokens) - 1; !whole && last >= 0 && tokens[last] == typeURL {
		n, whole = d.jsonAt(append(tokens[:last:last], "@type"))
	}
	if !whole {
		return literal{}, false
	}
	l.span = span{n.value, n.end}
	if key {
		l.span = span{n.key, endOfQuoted(d.text, max(n.key, 0))}
	}
	ok = l.from >= 0 && json.Unmarshal(d.text[l.from:l.to], &l.means) == nil
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

func (d *textDocument) literalText(tokens []string, key bool) (l literal, ok bool) {
	n, whole := d.tree().find(d.text, tokens)
	switch last := len(tokens) - 1; {
	case !whole && last >= 0 && tokens[last] == typeURL:
		parent, whole := d.tree().find(d.text, tokens[:last])
		if !whole || len(parent.children) != 1 || !parent.children[0].isType() {
			return literal{}, false
		}
		return parent.children[0].nameLiteral(d.text), true
	case !whole:
		return literal{}, false
	case key:
		return n.nameLiteral(d.text), n.key >= 0
	}
	raw := d.text[n.value:n.end]
	return literal{span{n.value, n.end}, unquoted(raw)}, !n.message && !n.list
}

// nameLiteral is the name of a field, or that in the brackets of an Any.
func (n *textNode) nameLiteral(text []byte) literal {
	at := n.nameSpan(text)
	if n.isType() {
		return literal{span{at.from + 1, at.to - 1}, n.url()}
	}
	return literal{at, n.name}
}
