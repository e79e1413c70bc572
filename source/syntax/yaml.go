package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"xdspub/diag"
)

// ToJSON returns the document as JSON, or findings with the reasons why JSON can't have the document.
func (d YAMLDocument) ToJSON() ([]byte, diag.List) {
	json, findings := d.parsed()
	if len(findings) == 0 && d.mayEndEarly() {
		if at, ok := d.secondRoot(); ok {
			if m := d.ForeignText(); m != nil {
				return nil, diag.List{m.Finding(d.Document)}
			}
			return nil, diag.List{d.source.Finding(CodeSyntax, at,
				"the document ended before this line", "indent it like the lines above, or put --- between two documents")}
		}
	}
	return json, findings
}

// parsed is ToJSON for a document whose root ends at the end of the text.
func (d YAMLDocument) parsed() ([]byte, diag.List) {
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

// mayEndEarly reports whether the root of the document could be followed by more
// that the parser never looks at: a root that is in flow style or indented is
// complete before the text is.
func (d YAMLDocument) mayEndEarly() bool {
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
func (d YAMLDocument) secondRoot() (diag.Range, bool) {
	dec := yaml.NewDecoder(bytes.NewReader(d.Text))
	var first, second yaml.Node
	if dec.Decode(&first) != nil {
		return diag.Range{}, false
	}
	err := dec.Decode(&second) // a second document would need ---, which split would have found
	if err == nil || errors.Is(err, io.EOF) {
		return diag.Range{}, false
	}
	return d.lineRange(parserLine(err)), true
}

// lineRange returns the range of the content of line n. For a line behind the end, lineRange returns the last
// line, where something is missing.
func (d YAMLDocument) lineRange(n int) diag.Range { return d.Span(d.lineSpan(n)) }

func (d YAMLDocument) lineSpan(n int) Span {
	starts := d.lines()
	for n = min(n, len(starts)); n > 1 && len(bytes.TrimSpace(d.Text[starts[n-1]:])) == 0; n-- {
	}
	start := starts[max(n, 1)-1]
	line := d.Text[start:]
	line = bytes.TrimRight(line[:YAMLLine(line)], " \t\r\n\u0085\u2028\u2029")
	return Span{start + len(line) - len(bytes.TrimLeft(line, " \t")), start + len(line)}
}

// Ignores reports whether a key of the document has the tag !ignore. Envoy drops such a key with its value.
func (d YAMLDocument) Ignores() bool {
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

// Merges reports whether some mapping of the document has a merge key.
func (d YAMLDocument) Merges() bool {
	if !bytes.Contains(d.Text, []byte("<<")) || d.YAML() == nil {
		return false
	}
	found := false
	d.EachMapping(func(n *yaml.Node) { found = found || len(mergedInto(n)) > 0 })
	return found
}

// EachMapping calls f for every mapping that is written in the document.
func (d YAMLDocument) EachMapping(f func(*yaml.Node)) {
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

// EachScalar calls f for every scalar that is written in the document.
func (d YAMLDocument) EachScalar(f func(*yaml.Node)) {
	var look func(*yaml.Node)
	look = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			f(n)
		}
		for _, c := range n.Content {
			look(c)
		}
	}
	look(d.YAML())
}

// ReadByEnvoy returns, as JSON, Envoy's view of a YAML document that says more than JSON can: without ignored
// keys, with the last of equal keys, and with text for scalars that are no numbers to Envoy. ok is false if
// that view is unknown.
func (d YAMLDocument) ReadByEnvoy() ([]byte, bool) {
	root := d.YAML()
	if root == nil || d.expandsTooFar() {
		return nil, false
	}
	ok := true
	var write func(n *yaml.Node) jsontext.Value
	write = func(n *yaml.Node) jsontext.Value {
		switch n.Kind {
		case yaml.AliasNode:
			return write(n.Alias)
		case yaml.SequenceNode:
			out := []byte{'['}
			for i, c := range n.Content {
				if i > 0 {
					out = append(out, ',')
				}
				out = append(out, write(c)...)
			}
			return append(out, ']')
		case yaml.MappingNode:
			var members []Entry
			for i := 0; i+1 < len(n.Content); i += 2 {
				if isIgnored(n.Content[i]) {
					continue
				}
				ok = ok && n.Content[i].Kind == yaml.ScalarNode && !IsMerge(n.Content[i])
				name := keyText(n.Content[i])
				members = slices.DeleteFunc(members, func(m Entry) bool { return m.Name == name })
				members = append(members, Entry{name, write(n.Content[i+1])})
			}
			return WriteObject(members)
		}
		return scalar(n)
	}
	text := write(root)
	return text, ok
}
