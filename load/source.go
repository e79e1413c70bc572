package load

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"xdspub/diag"
	"xdspub/xds"
)

// source is the text of one file.
type source struct {
	name   string
	format format
	data   []byte
}

// document is one document of a source: a whole JSON file, or one part of a
// multi-document YAML file.
type document struct {
	source *source
	text   []byte
	// line is the number of the document's first line in the file, from 0.
	line int

	tree func() *yaml.Node // of a YAML document, parsed when first asked for
}

func (s *source) document(text []byte, line int) *document {
	d := &document{source: s, text: text, line: line}
	d.tree = sync.OnceValue(d.parseTree)
	return d
}

// origin is where a resource stands: the value at base in a document.
type origin struct {
	document *document
	base     xds.Path
}

// Position implements xds.Origin.
func (o origin) Position(path xds.Path) diag.Position {
	return o.document.position(steps(o.base.Join(path)), false)
}

// steps are the names and indexes of a path as text, as a JSON pointer has them.
func steps(path xds.Path) []string {
	var tokens []string
	for s := range path.Steps() {
		if s.Name == "" && !s.Key {
			tokens = append(tokens, fmt.Sprint(s.Index))
		} else {
			tokens = append(tokens, s.Name)
		}
	}
	return tokens
}

// position finds the value at a path, or where key is set its key. A path that
// the source does not have gives the nearest value around it.
func (d *document) position(tokens []string, key bool) diag.Position {
	if d.source.format == formatJSON {
		return d.positionJSON(tokens, key)
	}
	return d.positionYAML(tokens, key)
}

// line is line n of the source, from 1.
func (s *source) line(n int) (string, bool) {
	if n < 1 {
		return "", false
	}
	rest := s.data
	for range n - 1 {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return "", false
		}
		rest = rest[i+1:]
	}
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	return string(bytes.TrimSuffix(rest, []byte("\r"))), true
}

// at is the position of a byte offset into the source.
func (s *source) at(offset int) diag.Position {
	before := s.data[:min(max(offset, 0), len(s.data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return diag.Position{
		File:   s.name,
		Line:   bytes.Count(before, []byte("\n")) + 1,
		Column: utf8.RuneCount(before[start:]) + 1,
	}
}

// lineStart is the position of the first character of line n that is no space.
func (s *source) lineStart(n int) diag.Position {
	text, ok := s.line(n)
	if !ok {
		return s.at(len(s.data))
	}
	column := 1
	for _, r := range text {
		if r != ' ' && r != '\t' {
			break
		}
		column++
	}
	return diag.Position{File: s.name, Line: n, Column: column}
}

// finding is an error at a position that no resource is known for.
func (s *source) finding(code diag.Code, p diag.Position, message, help string) diag.Diagnostic {
	return diag.Diagnostic{Code: code.Name, Severity: code.Severity, Position: p, Message: message, Help: help, Sensitive: s.sensitive()}
}

// sensitiveText finds a key of some sensitive field. Where the text can't be
// parsed nobody can tell which lines belong to it, so none is printed.
var sensitiveText = regexp.MustCompile(`(?m)["']?\b([A-Za-z_]+)["']?\s*:`)

func (s *source) sensitive() bool {
	for _, m := range sensitiveText.FindAllSubmatch(s.data, -1) {
		if xds.SensitiveFieldName(string(m[1])) {
			return true
		}
	}
	return false
}

// decode reads all that the source holds.
func (s *source) decode() *file {
	f := &file{source: s}
	report := func(d diag.Diagnostic) { f.diagnostics = append(f.diagnostics, d) }
	switch s.format {
	case formatOther:
		if looksLikeXDS.Match(s.data[:min(len(s.data), 4096)]) {
			report(s.finding(codeIgnoredFile, diag.Position{File: s.name},
				"the file looks like xDS resources, but its suffix says otherwise, so it is not read",
				"rename it to .yaml or .json, or name it in ignore: of xdspub.yaml"))
		}
		return f
	case formatLater:
		report(s.finding(codeUnsupportedFormat, diag.Position{File: s.name},
			"text and binary protobuf files can't be read by this version", "write the resources as YAML or JSON"))
		return f
	}
	if i := invalidUTF8(s.data); i >= 0 {
		report(s.finding(codeInvalidUTF8, s.at(i), fmt.Sprintf("byte 0x%02x is not valid UTF-8", s.data[i]), "save the file as UTF-8"))
		return f
	}
	d := decoder{file: f}
	if s.format == formatJSON {
		d.jsonSource()
	} else {
		d.yamlSource()
	}
	if !d.any && len(f.diagnostics) == 0 {
		report(s.finding(codeEmptyFile, diag.Position{File: s.name, Line: 1, Column: 1}, "the file holds no document",
			"write a resource into it, or delete it"))
	}
	return f
}

var looksLikeXDS = regexp.MustCompile(`(?m)^\s*(?:- )?["']?@type["']?\s*:\s*["']?type\.googleapis\.com/envoy\.`)

// invalidUTF8 is the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	i := 0
	for i < len(data) {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		i += size
	}
	return i
}
