package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"xdspub/diag"
)

// withoutTabs writes spaces for the tabs on lines that hold nothing, or a comment: Envoy's
// parser reads over such lines, unless a scalar could go on there.
func withoutTabs(text []byte) []byte {
	if bytes.IndexByte(text, '\t') < 0 {
		return text
	}
	out := bytes.Clone(text)
	scalar := false // the line above ends with a scalar without quotes
	for pos, end := 0, 0; pos < len(out); pos = end {
		end = pos + YAMLLine(out[pos:])
		line := out[pos:end]
		content := bytes.TrimSpace(line)
		if len(content) > 0 && content[0] != '#' {
			scalar = bytes.IndexByte([]byte(`:{}[],"'`), content[len(content)-1]) < 0 && !bytes.Contains(content, []byte(" #")) && !isMarker(line, "---")
			continue
		}
		if !scalar {
			indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
			copy(indent, bytes.ReplaceAll(indent, []byte{'\t'}, []byte{' '}))
		}
	}
	return out
}

// ToJSON is the document as JSON, or the reasons why it is none.
func (d *Document) ToJSON() ([]byte, diag.List) {
	json, findings := d.parsed()
	if len(findings) == 0 && d.mayEndEarly() {
		if at, ok := d.secondRoot(); ok {
			if m := d.ForeignText(); m != nil {
				return nil, diag.List{m.Finding(d)}
			}
			return nil, diag.List{d.source.Finding(CodeSyntax, at,
				"the document ended before this line", "indent it like the lines above, or put --- between two documents")}
		}
	}
	return json, findings
}

// parsed is toJSON for a document whose root is known to end where its text does.
func (d *Document) parsed() ([]byte, diag.List) {
	if json, ok := plainJSON(d.Text); ok {
		return json, nil
	}
	if d.expandsTooFar() {
		return nil, diag.List{d.tooManyAliases(fmt.Sprintf("to more than %d bytes", MaxBytes))}
	}
	json, err := sigsyaml.YAMLToJSONStrict(d.Text)
	if err != nil && d.Merges() {
		// Strict takes a key beside a merge key for a duplicate of the merged one.
		if doubled := d.doubledKeys(); len(doubled) > 0 {
			return nil, doubled
		}
		json, err = sigsyaml.YAMLToJSON(d.Text)
	}
	if err != nil {
		return nil, d.yamlError(err)
	}
	return json, nil
}

// split cuts a YAML file into documents. A line that begins with --- always
// starts one: inside a scalar the marker is not allowed. sigs.k8s.io/yaml and
// Envoy read only the first document of a file.
func (s *Text) split(c *content) []*Document {
	data := c.data
	var docs []*Document
	start, content := 0, false
	cut := func(end int) {
		if content {
			docs = append(docs, s.document(withoutVersion(data[start:end]), start))
		}
		start, content = end, false
	}
	for pos, end := 0, 0; pos < len(data); pos = end {
		end = pos + YAMLLine(data[pos:])
		line := data[pos:end]
		switch {
		case isMarker(line, "---"):
			if content { // else directives and comments above belong to it
				cut(pos)
			}
			content = true
		case isMarker(line, "..."):
			cut(end)
		default:
			trimmed := bytes.TrimSpace(line)
			content = content || len(trimmed) > 0 && trimmed[0] != '#' && line[0] != '%'
		}
	}
	cut(len(data))
	for i, d := range docs {
		d.Index = i
	}
	c.documents = docs
	return docs
}

// withoutVersion makes a comment of a %YAML directive: the parser refuses any but
// version 1.1, Envoy's takes them all and reads them alike.
func withoutVersion(text []byte) []byte {
	for at, size := 0, 0; at < len(text); at += size {
		size = YAMLLine(text[at:])
		line := bytes.TrimSpace(text[at : at+size])
		switch {
		case bytes.HasPrefix(text[at:], []byte("%YAML ")):
			text = bytes.Clone(text)
			text[at] = '#'
		case len(line) > 0 && line[0] != '#' && line[0] != '%':
			return text // directives stand in front of all else
		}
	}
	return text
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	if !ok || len(rest) == 0 {
		return ok
	}
	switch r, _ := utf8.DecodeRune(rest); r {
	case ' ', '\t', '\n', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// mayEndEarly reports whether the root of the document could be followed by more
// that the parser never looks at: a root that is in flow style or indented is
// complete before the text is.
func (d *Document) mayEndEarly() bool {
	for rest := d.Text; len(rest) > 0; {
		n := YAMLLine(rest)
		line := rest[:n]
		rest = rest[n:]
		if isMarker(line, "---") {
			line = line[3:]
		}
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) == 0 || trimmed[0] == '#' || line[0] == '%' {
			continue
		}
		return line[0] == ' ' || line[0] == '\t' || bytes.IndexByte([]byte("{[!&"), trimmed[0]) >= 0
	}
	return false
}

// secondRoot is the place of what follows the root of the document.
func (d *Document) secondRoot() (diag.Range, bool) {
	dec := yaml.NewDecoder(bytes.NewReader(d.Text))
	var first, second yaml.Node
	if dec.Decode(&first) != nil {
		return diag.Range{}, false
	}
	err := dec.Decode(&second) // wants a --- there, which split would have found
	if err == nil || errors.Is(err, io.EOF) {
		return diag.Range{}, false
	}
	return d.lineRange(parserLine(err)), true
}

// ParseYAML returns the root of a YAML document, nil if the text can't be parsed or is empty.
func ParseYAML(text []byte) *yaml.Node {
	var n yaml.Node
	if yaml.Unmarshal(text, &n) != nil || len(n.Content) == 0 {
		return nil
	}
	return n.Content[0]
}

// lineRange is what stands on line n of the document. Behind the last line it is that line:
// there something is missing.
func (d *Document) lineRange(n int) diag.Range { return d.Span(d.lineSpan(n)) }

func (d *Document) lineSpan(n int) Span {
	starts := d.lines()
	for n = min(n, len(starts)); n > 1 && len(bytes.TrimSpace(d.Text[starts[n-1]:])) == 0; n-- {
	}
	start := starts[max(n, 1)-1]
	line := d.Text[start:]
	line = bytes.TrimRight(line[:YAMLLine(line)], " \t\r\n\u0085\u2028\u2029")
	return Span{start + len(line) - len(bytes.TrimLeft(line, " \t")), start + len(line)}
}

// Ignores reports whether some key of the document has the tag !ignore: Envoy drops it, with
// all that stands there.
func (d *Document) Ignores() bool {
	if !bytes.Contains(d.Text, []byte("ignore")) || d.YAML() == nil {
		return false
	}
	found := false
	d.EachMapping(func(n *yaml.Node) {
		for i := 0; i < len(n.Content); i += 2 {
			found = found || isIgnored(n.Content[i])
		}
	})
	return found
}

func isIgnored(key *yaml.Node) bool { return key.Tag == "!ignore" }

// IsMerge reports whether a key of YAML is a merge key.
func IsMerge(key *yaml.Node) bool { return key.Tag == "!!merge" }

// Merges reports whether some mapping of the document has a merge key.
func (d *Document) Merges() bool {
	if !bytes.Contains(d.Text, []byte("<<")) || d.YAML() == nil {
		return false
	}
	found := false
	d.EachMapping(func(n *yaml.Node) { found = found || len(mergedInto(n)) > 0 })
	return found
}

// EachMapping calls f for every mapping that is written in the document.
func (d *Document) EachMapping(f func(*yaml.Node)) {
	var look func(*yaml.Node)
	look = func(n *yaml.Node) {
		if n.Kind == yaml.MappingNode {
			f(n)
		}
		for _, c := range n.Content {
			look(c)
		}
	}
	if n := d.YAML(); n != nil {
		look(n)
	}
}
