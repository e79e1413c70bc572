package load

import (
	"slices"

	"xdspub/diag"
)

// yamlSource decodes each document of a YAML file.
func (d *decoder) yamlSource() {
	if s := d.file.source; s.byEnvoy {
		s.withoutTabs()
	}
	docs := d.file.source.documents()
	if d.file.source.byEnvoy {
		docs = d.firstOf(docs)
	}
	for _, doc := range docs {
		if d.enough() {
			return
		}
		if !d.long(doc) && !d.tooManyAtOnce(doc) {
			d.whole(doc)
		}
	}
}

// whole decodes a document in one go.
func (d *decoder) whole(doc *document) {
	json, findings := doc.toJSON()
	readable := len(findings) == 0
	if doc.source.byEnvoy && readable && doc.ignores() {
		json, readable = doc.readByEnvoy()
	}
	if doc.source.byEnvoy && !readable && !slices.ContainsFunc(findings, func(f diag.Diagnostic) bool {
		return f.Code != codeDuplicateKey.Name && f.Code != codeInvalidValue.Name
	}) {
		if json, readable = doc.readByEnvoy(); readable {
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
