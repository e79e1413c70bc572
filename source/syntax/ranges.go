package syntax

import (
	"slices"

	"xdspub/diag"
)

// RangeOf returns the range of the value at a path or, if key is set, of its key. If the source lacks the
// path, RangeOf returns the nearest value around.
func (d *Document) RangeOf(tokens []string, key bool) diag.Range {
	switch d.source.Format {
	case JSON:
		return d.Span(d.asJSON().jsonSpan(tokens, key))
	case TextProto:
		n, _ := d.Tree().Find(d.Text, tokens)
		return d.Span(n.shown(d.Text, key))
	case Binary:
		return FileRange(d.source.Name)
	default:
		return d.AsYAML().rangeYAML(tokens, key)
	}
}

// Correct returns the edit that corrects a word in the value at a path, in the type URL of an Any at the path,
// or, if key is set, in the key. ok is false unless the path leads to text of its own with the wrong word.
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
		return d.asJSON().literalJSON(tokens, key)
	case TextProto:
		return d.literalText(tokens, key)
	case YAML:
		return d.AsYAML().literalYAML(tokens, key)
	}
	return Literal{}, false
}

// Has reports whether the document has a key or a value at a path.
func (d *Document) Has(tokens []string) bool {
	switch d.source.Format {
	case JSON:
		_, whole := d.asJSON().jsonAt(tokens)
		return whole
	case YAML:
		return d.AsYAML().YAMLAt(tokens).Whole
	}
	return false
}

// isBare matches what is text without quotes: in YAML where it does not read as another value,
// in a text proto a name.
var ()

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

// Fix adds the correction of the value at a path or, if key is set, of its key to the finding. Fix adds
// nothing without a correction, or if the right key exists, too.
func (d *Document) Fix(f *diag.Diagnostic, tokens []string, key bool, c diag.Correction) {
	if last := len(tokens) - 1; c.Right == "" || key && !SameField(c.Wrong, c.Right) && d.Has(append(tokens[:last:last], c.Right)) {
		return
	}
	if e, ok := d.Correct(tokens, key, c); ok {
		f.Correct(c, e)
	}
}
