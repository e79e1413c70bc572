package decode

import (
	"slices"

	"xdspub/diag"
	"xdspub/source/syntax"
)

// yamlSource decodes each document of a YAML file.
func yamlSource(d *decoder) {
	if s := d.file.Source; s.byEnvoy {
		s.WithoutTabs()
	}
	docs := d.file.Source.documents()
	if d.file.Source.byEnvoy {
		docs = firstDocument(d, docs)
	}
	for _, doc := range docs {
		if d.enough() {
			return
		}
		if !long(d, doc) && !tooManyAtOnce(d, doc) {
			whole(d, doc)
		}
	}
}

// whole decodes a document in one go.
func whole(d *decoder, doc *document) {
	json, findings := doc.AsYAML().ToJSON()
	readable := len(findings) == 0
	if doc.source.byEnvoy && readable && doc.AsYAML().Ignores() {
		json, readable = doc.AsYAML().ReadByEnvoy()
	}
	if doc.source.byEnvoy && !readable && !slices.ContainsFunc(findings, func(f diag.Diagnostic) bool {
		return f.Code != syntax.CodeDuplicateKey.Name && f.Code != syntax.CodeInvalidValue.Name
	}) {
		if json, readable = doc.AsYAML().ReadByEnvoy(); readable {
			findings = leniently(findings)
		}
	}
	d.report(findings...)
	if !readable {
		d.unreadable()
	} else if string(json) != "null" {
		d.document(doc, json)
	}
}
