package syntax

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"xdspub/diag"
)

var isDurationText = regexp.MustCompile(`^-?[0-9.]+s$`)

// Written returns a JSON scalar in the format of the source.
func (s *Text) Written(raw jsontext.Value) string {
	if text := Unquote(raw); s.Format == YAML && raw.Kind() == '"' {
		if isDurationText.MatchString(text) {
			return text
		}
		if literal, ok := s.spelled("", text); ok {
			return literal
		}
	}
	return string(raw)
}

// Replace returns the edit that writes a JSON scalar instead of the value at a path. A text in quotes keeps its
// quotes. ok is false if another path leads to the same value, or if the edit would remove a comment.
func (d *Document) Replace(tokens []string, by jsontext.Value) (diag.Edit, bool) {
	if l, ok := d.LiteralAt(tokens, false); ok && by.Kind() == '"' && (d.Text[l.From] == '"' || d.Text[l.From] == '\'') {
		return d.Edit(l, diag.Correction{Wrong: l.Means, Right: Unquote(by)})
	}
	text := d.source.Written(by)
	at, ok := d.ownValue(tokens)
	if !ok {
		return diag.Edit{}, false
	}
	if at.block {
		text = " " + text
	}
	return diag.Edit{Range: d.Span(at.Span), Text: text}, true
}

// Listed returns the edit that makes a list of the value at a path.
func (d *Document) Listed(tokens []string) (diag.Edit, bool) {
	at, ok := d.ownValue(tokens)
	if !ok {
		return diag.Edit{}, false
	}
	text := string(d.Text[at.From:at.To])
	switch {
	case at.block:
		lines := strings.SplitAfter(text, "\n")
		begin := slices.IndexFunc(lines[1:], func(line string) bool { return strings.TrimSpace(line) != "" }) + 1
		for i := range lines[1:] {
			switch line := lines[i+1]; {
			case strings.TrimSpace(line) == "":
			case i+1 == begin:
				content := strings.TrimLeft(line, " ")
				lines[i+1] = line[:len(line)-len(content)] + "- " + content
			default:
				lines[i+1] = "  " + line
			}
		}
		text = strings.Join(lines, "")
	case at.scalar != nil && at.scalar.Style == 0 && !isSimple.MatchString(text): // it may need quotes in brackets
		literal, ok := d.source.spelled(text, at.scalar.Value)
		if !ok || !IsText(at.scalar) {
			return diag.Edit{}, false
		}
		text = "[" + literal + "]"
	default:
		text = "[" + text + "]"
	}
	return diag.Edit{Range: d.Span(at.Span), Text: text}, true
}

// ownValue is the place of a value that only one path leads to. A block of YAML begins behind the
// colon above the block.
type ownValue struct {
	Span
	block  bool
	scalar *yaml.Node // of YAML; else nil
}

func (d *Document) ownValue(tokens []string) (v ownValue, ok bool) {
	switch d.source.Format {
	case JSON:
		n, whole := d.asJSON().jsonAt(tokens)
		return ownValue{Span: Span{n.Value, n.End}}, whole && len(tokens) > 0
	case YAML:
	default:
		return v, false
	}
	f := d.AsYAML().YAMLAt(tokens)
	n := f.Value
	if !f.Whole || f.Shared || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Kind == yaml.AliasNode {
		return v, false
	}
	v.Span = f.In.nodeSpan(n)
	text := f.In.Text
	switch {
	case n.Kind == yaml.ScalarNode:
		v.scalar = n
		ok = n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0
	case n.Style&yaml.FlowStyle != 0:
		ok = true
	case f.key != nil: // a block
		end := f.In.nodeSpan(f.key).To
		colon := bytes.IndexByte(text[end:], ':')
		if colon < 0 {
			return v, false
		}
		v.From, v.block = end+colon+1, true
		ok = len(bytes.TrimSpace(text[v.From:f.In.nodeSpan(n).From])) == 0 && bytes.IndexByte(text[v.From:v.To], '\n') >= 0
	}
	ok = ok && !hasComment(text[v.From:v.To])
	moved := f.In.offset - d.offset
	v.From, v.To = v.From+moved, v.To+moved
	return v, ok
}

// hasComment reports whether a part of a YAML text may hold a comment.
func hasComment(text []byte) bool { return bytes.IndexByte(text, '#') >= 0 }

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
	begin := strings.Index(raw, c.Wrong)
	if end := begin + len(c.Wrong); begin > 0 && inWord(raw[begin-1], c.Wrong[0]) || end < len(raw) && inWord(c.Wrong[len(c.Wrong)-1], raw[end]) {
		return diag.Edit{}, false // a part of another word
	}
	at := l.From + begin
	return diag.Edit{Range: d.Span(Span{at, at + len(c.Wrong)}), Text: c.Right}, true
}

// inWord reports whether two neighbours belong to one word.
func inWord(a, b byte) bool { return isWordByte(a) && isWordByte(b) }

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-' || b == '.'
}

// isSimple matches text with the same form in quotes and without quotes, in all formats.
var isSimple = regexp.MustCompile(`^[A-Za-z0-9_.%/-]+$`)

var isBare = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

var isTextName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./]*$`)

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
