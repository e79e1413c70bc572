package load

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"xdspub/diag"
)

// yamlSource decodes each document of a YAML file.
func (d *decoder) yamlSource() {
	for _, doc := range d.file.source.split() {
		if doc.expandsTooFar() {
			d.report(d.file.source.finding(codeTooLarge, doc.firstAlias(),
				fmt.Sprintf("the aliases of this document expand to more than %d bytes", maxBytes), "write the values out, or alias less deeply"))
			continue
		}
		json, err := sigsyaml.YAMLToJSONStrict(doc.text)
		if err != nil {
			d.yamlError(doc, err)
			continue
		}
		if string(json) != "null" {
			d.document(doc, json)
		}
	}
}

// split cuts a YAML file into documents. A line that begins with --- always
// starts one: inside a scalar the marker is not allowed. sigs.k8s.io/yaml and
// Envoy read only the first document of a file.
func (s *source) split() []*document {
	var docs []*document
	data := bytes.TrimPrefix(s.data, []byte("\ufeff"))
	start, startLine, content, line := 0, 0, false, 0
	for pos := 0; pos < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		text := data[pos:end]
		switch {
		case isMarker(text, "---") && content:
			docs = append(docs, s.document(data[start:pos], startLine))
			start, startLine, content = pos, line, true
		case isMarker(text, "...") && content:
			docs = append(docs, s.document(data[start:end], startLine))
			start, startLine, content = end, line+1, false
		case isMarker(text, "---"):
			content = true // directives and comments above belong to it
		default:
			trimmed := bytes.TrimSpace(text)
			content = content || len(trimmed) > 0 && trimmed[0] != '#' && text[0] != '%'
		}
		pos = end
	}
	if content {
		docs = append(docs, s.document(data[start:], startLine))
	}
	return docs
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\n')
}

var (
	yamlLine  = regexp.MustCompile(`line (\d+): `)
	yamlNoise = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:line \d+: )?`)
)

// yamlError reports why a document is no YAML. Doubled keys are looked up in the
// tree, which knows both places; for the rest the parser knows a line.
func (d *decoder) yamlError(doc *document, err error) {
	if doubled := doc.doubledKeys(); len(doubled) > 0 {
		for _, f := range doubled {
			d.report(f)
		}
		return
	}
	p := diag.Position{File: doc.source.name, Line: doc.line + 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		p = doc.source.lineStart(doc.line + n)
	}
	d.report(doc.source.finding(codeSyntax, p, "not valid YAML: "+yamlNoise.ReplaceAllString(err.Error(), ""), ""))
}

func (d *document) parseTree() *yaml.Node {
	var n yaml.Node
	if yaml.Unmarshal(d.text, &n) != nil || len(n.Content) == 0 {
		return nil
	}
	return n.Content[0]
}

func (d *document) nodePosition(n *yaml.Node) diag.Position {
	return diag.Position{File: d.source.name, Line: d.line + n.Line, Column: n.Column}
}

func (d *document) positionYAML(tokens []string, key bool) diag.Position {
	at := d.tree()
	if at == nil {
		return diag.Position{File: d.source.name, Line: d.line + 1, Column: 1}
	}
	for i, token := range tokens {
		k, v := child(at, token)
		if v == nil {
			break
		}
		if at = v; key && i == len(tokens)-1 && k != nil {
			at = k
		}
	}
	return d.nodePosition(at)
}

// child is the key and value of a node's entry, through aliases and merge keys.
func child(n *yaml.Node, token string) (key, value *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Content) {
			return nil, n.Content[i]
		}
	case yaml.MappingNode:
		var merged []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if sameField(k.Value, token) {
				return k, v
			}
			if k.Tag == "!!merge" {
				merged = append(merged, v)
			}
		}
		for _, m := range merged {
			if m.Kind == yaml.SequenceNode {
				merged = append(merged, m.Content...)
				continue
			}
			if k, v := child(m, token); v != nil {
				return k, v
			}
		}
	}
	return nil, nil
}

// sameField compares a key of the source with a proto name: protojson takes
// snake_case and lowerCamelCase.
func sameField(key, name string) bool {
	return key == name || strings.EqualFold(strings.ReplaceAll(key, "_", ""), strings.ReplaceAll(name, "_", ""))
}

// doubledKeys finds keys that stand twice in one mapping.
func (d *document) doubledKeys() diag.List {
	var list diag.List
	var look func(*yaml.Node)
	look = func(n *yaml.Node) {
		if n.Kind == yaml.MappingNode {
			first := make(map[string]*yaml.Node)
			for i := 0; i+1 < len(n.Content); i += 2 {
				k := n.Content[i]
				if earlier, ok := first[k.Value]; ok && k.Kind == yaml.ScalarNode {
					f := d.source.finding(codeDuplicateKey, d.nodePosition(k), fmt.Sprintf("key %q stands twice in one mapping", k.Value),
						"Envoy would silently take one of them; keep one")
					f.Related = []diag.Related{{Position: d.nodePosition(earlier), Message: "first here"}}
					list = append(list, f)
				} else if k.Kind == yaml.ScalarNode {
					first[k.Value] = k
				}
			}
		}
		for _, c := range n.Content {
			look(c)
		}
	}
	if n := d.tree(); n != nil {
		look(n)
	}
	return list
}

// expandsTooFar tells whether the document's aliases stand for more than
// maxBytes. Only a document that can hold an alias at all is looked at.
func (d *document) expandsTooFar() bool {
	if bytes.IndexByte(d.text, '&') < 0 || bytes.IndexByte(d.text, '*') < 0 || d.tree() == nil {
		return false
	}
	sizes := make(map[*yaml.Node]int)
	var size func(*yaml.Node) int
	size = func(n *yaml.Node) int {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if known, ok := sizes[n]; ok {
			return known
		}
		sizes[n] = maxBytes + 1 // met again below itself, it has no end
		total := len(n.Value) + 1
		for _, c := range n.Content {
			total = min(total+size(c), maxBytes+1)
		}
		sizes[n] = total
		return total
	}
	return size(d.tree()) > maxBytes
}

// firstAlias is the position of the first alias of the document.
func (d *document) firstAlias() diag.Position {
	var look func(*yaml.Node) *yaml.Node
	look = func(n *yaml.Node) *yaml.Node {
		if n.Kind == yaml.AliasNode {
			return n
		}
		for _, c := range n.Content {
			if found := look(c); found != nil {
				return found
			}
		}
		return nil
	}
	if n := look(d.tree()); n != nil {
		return d.nodePosition(n)
	}
	return d.nodePosition(d.tree())
}
