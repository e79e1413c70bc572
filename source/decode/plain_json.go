package decode

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// PlainJSON is a JSON document of another program that holds no resources, such as a client of
// gRPC: what findings about it need.
type PlainJSON struct{ document *document }

// ParseJSON makes a PlainJSON of the text of a file. The findings say why another program would
// not read it as JSON: for its syntax, its encoding, or a key that an object has twice.
func ParseJSON(name string, data []byte) (*PlainJSON, diag.List) { return parseJSON(name, data, nil) }

func parseJSON(name string, data []byte, v *envoyapi.Version) (*PlainJSON, diag.List) {
	s := NewSource(name, syntax.JSON, data, SourceOptions{Envoy: v})
	s.onlyJSON = true
	j := &PlainJSON{s.documents()[0]}
	if s.Marked {
		return j, diag.List{s.Finding(syntax.CodeSyntax, s.Point(0), "JSON has no byte order mark", "save the file without one")}
	}
	d := &decoder{file: NewFile(s)}
	if invalidUTF8(d) {
		return j, d.file.Diagnostics()
	}
	return j, syntax.NotJSON(j.document.Document)
}

// Finding returns a finding about the value at a path, or where key is set about its key. A path
// that the document does not have leads to the nearest value around it.
func (j *PlainJSON) Finding(code diag.Code, path xds.Path, key bool, message, help string) diag.Diagnostic {
	d := j.document.source.Finding(code, j.document.RangeOf(steps(path), key), message, help)
	d.Path = string(path)
	return d
}

// Depth returns the depth of nested lists and objects: 0 without any, and the depth up to the mistake for a
// text that is no JSON.
func (j *PlainJSON) Depth() (most int) {
	text := jsontext.NewDecoder(bytes.NewReader(j.document.Text), jsontext.AllowDuplicateNames(true))
	for {
		if _, err := text.ReadToken(); err != nil {
			return most
		}
		most = max(most, text.StackDepth())
	}
}

// Line returns the source line at a position, as Result.Line does.
func (j *PlainJSON) Line(p diag.Position) (string, bool) {
	if p.File != j.document.source.Name {
		return "", false
	}
	return j.document.source.Shown(p.Line)
}
