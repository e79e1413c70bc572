package load

import (
	"os"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/diag"
)

// Bootstrap reads an Envoy bootstrap, YAML or JSON, as strictly as Envoy does.
// An error means that the file can't be read; what is wrong in it is in the list.
func Bootstrap(path string) (*bootstrapv3.Bootstrap, diag.List, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	s := newSource(path, formatYAML, data) // JSON is YAML too
	d := decoder{file: &file{source: s}}
	if d.invalidUTF8() {
		return nil, d.file.diagnostics, nil
	}
	b := &bootstrapv3.Bootstrap{}
	docs := s.split()
	if len(docs) != 1 {
		d.report(s.finding(codeUnknownDocument, diag.Position{File: path, Line: 1, Column: 1}, "a bootstrap is one document", ""))
		return nil, d.file.diagnostics, nil
	}
	json, findings := docs[0].toJSON()
	if len(findings) > 0 {
		return nil, findings, nil
	}
	if _, text, err := splitType(json); err == nil {
		json = text
	}
	if !d.message(value{doc: docs[0], text: json}, b) {
		return nil, d.file.diagnostics, nil
	}
	return b, d.file.diagnostics, nil
}
