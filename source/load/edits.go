package load

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"xdspub/diag"
)

var isDurationText = regexp.MustCompile(`^-?[0-9.]+s$`)

// written returns a JSON scalar in the format of the source.
func (s *sourceText) written(raw jsontext.Value) string {
	if text := jsonText(raw); s.format == formatYAML && raw.Kind() == '"' {
		if isDurationText.MatchString(text) {
			return text
		}
		if literal, ok := s.spelled("", text); ok {
			return literal
		}
	}
	return string(raw)
}

// replace returns the edit that writes a text instead of the value at a path. ok is false if another path
// leads to the same value, or if the edit would remove a comment.
func (d *textDocument) replace(tokens []string, text string) (diag.Edit, bool) {
	at, ok := d.ownValue(tokens)
	if !ok {
		return diag.Edit{}, false
	}
	if at.block {
		text = " " + text
	}
	return diag.Edit{Range: d.span(at.span), Text: text}, true
}

// listed returns the edit that makes a list of the value at a path.
func (d *textDocument) listed(tokens []string) (diag.Edit, bool) {
	at, ok := d.ownValue(tokens)
	if !ok {
		return diag.Edit{}, false
	}
	text := string(d.text[at.from:at.to])
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
		if !ok || !isText(at.scalar) {
			return diag.Edit{}, false
		}
		text = "[" + literal + "]"
	default:
		text = "[" + text + "]"
	}
	return diag.Edit{Range: d.span(at.span), Text: text}, true
}

// ownValue is the place of a value that only one path leads to. A block of YAML begins behind the
// colon above the block.
type ownValue struct {
	span
	block  bool
	scalar *yaml.Node // of YAML; else nil
}

func (d *textDocument) ownValue(tokens []string) (v ownValue, ok bool) {
	switch d.source.format {
	case formatJSON:
		n, whole := d.jsonAt(tokens)
		return ownValue{span: span{n.value, n.end}}, whole && len(tokens) > 0
	case formatYAML:
	default:
		return v, false
	}
	f := d.yamlAt(tokens)
	n := f.value
	if !f.whole || f.shared || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Kind == yaml.AliasNode {
		return v, false
	}
	v.span = f.in.nodeSpan(n)
	text := f.in.text
	switch {
	case n.Kind == yaml.ScalarNode:
		v.scalar = n
		ok = n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0
	case n.Style&yaml.FlowStyle != 0:
		ok = true
	case f.key != nil: // a block
		end := f.in.nodeSpan(f.key).to
		colon := bytes.IndexByte(text[end:], ':')
		if colon < 0 {
			return v, false
		}
		v.from, v.block = end+colon+1, true
		ok = len(bytes.TrimSpace(text[v.from:f.in.nodeSpan(n).from])) == 0 && bytes.IndexByte(text[v.from:v.to], '\n') >= 0
	}
	ok = ok && !hasComment(text[v.from:v.to])
	moved := f.in.offset - d.offset
	v.from, v.to = v.from+moved, v.to+moved
	return v, ok
}

// hasComment reports whether a part of a YAML text may hold a comment.
func hasComment(text []byte) bool { return bytes.IndexByte(text, '#') >= 0 }
