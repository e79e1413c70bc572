package load

import (
	"os"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	sigsyaml "sigs.k8s.io/yaml"

	"xdspub/diag"
)

// Bootstrap reads an Envoy bootstrap, YAML or JSON, as strictly as Envoy does.
// An error means that the file can't be read; what is wrong in it is in the list.
func Bootstrap(path string) (*bootstrapv3.Bootstrap, diag.List, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	s := &source{name: path, format: formatYAML, data: data} // JSON is YAML too
	d := decoder{file: &file{source: s}}
	if i := invalidUTF8(data); i >= 0 {
		d.report(s.finding(codeInvalidUTF8, s.at(i), "not valid UTF-8", "save the file as UTF-8"))
		return nil, d.file.diagnostics, nil
	}
	b := &bootstrapv3.Bootstrap{}
	docs := s.split()
	if len(docs) != 1 {
		d.report(s.finding(codeUnknownDocument, diag.Position{File: path, Line: 1, Column: 1}, "a bootstrap is one document", ""))
		return nil, d.file.diagnostics, nil
	}
	if docs[0].expandsTooFar() {
		d.report(s.finding(codeTooLarge, docs[0].firstAlias(), "the aliases of this document expand too far", ""))
		return nil, d.file.diagnostics, nil
	}
	json, err := sigsyaml.YAMLToJSONStrict(docs[0].text)
	if err != nil {
		d.yamlError(docs[0], err)
		return nil, d.file.diagnostics, nil
	}
	if _, text, err := splitType(json); err == nil {
		json = text
	}
	if !d.message(value{doc: docs[0], text: json}, b) {
		return nil, d.file.diagnostics, nil
	}
	return b, d.file.diagnostics, nil
}
