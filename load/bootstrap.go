package load

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/diag"
)

// Bootstrap reads an Envoy bootstrap, by its suffix JSON, text or binary proto,
// else YAML, as strictly as Envoy does. An error means that the file can't be
// read; what is wrong in it is in the list, and then there is no Bootstrap.
func Bootstrap(path string) (*bootstrapv3.Bootstrap, diag.List, error) {
	format := formatOf(path)
	if format == formatOther {
		format = formatYAML
	}
	s, err := readSource(path, format)
	if err != nil {
		return nil, nil, err
	}
	d := decoder{file: &file{source: s}}
	b := &bootstrapv3.Bootstrap{}
	if format != formatBinary && d.invalidUTF8() || !d.bootstrapSource(b) {
		return nil, d.file.diagnostics, nil
	}
	return b, d.file.diagnostics, nil
}

// bootstrapSource decodes a file that is a Bootstrap and nothing else.
func (d *decoder) bootstrapSource(b *bootstrapv3.Bootstrap) bool {
	s := d.file.source
	doc := s.document(s.data, 0)
	var json []byte
	switch s.format {
	case formatBinary:
		err := protoOptions.Unmarshal(s.data, b)
		if err != nil {
			d.report(s.finding(codeSyntax, doc.position(nil, false), "not a binary Bootstrap", ""))
		}
		return err == nil
	case formatText:
		return d.textInto(doc, b)
	case formatJSON:
		if !d.isJSON(doc) {
			return false
		}
		json = doc.text
	default:
		docs := s.split()
		if len(docs) != 1 {
			d.report(s.finding(codeUnknownDocument, diag.Position{File: s.name, Line: 1, Column: 1}, "a bootstrap is one document", ""))
			return false
		}
		doc = docs[0]
		var findings diag.List
		if json, findings = doc.toJSON(); len(findings) > 0 {
			d.file.diagnostics = findings
			return false
		}
	}
	if _, text, err := splitType(json); err == nil {
		json = text
	}
	return d.message(value{doc: doc, text: json}, b)
}
