package decode

import (
	"bytes"

	"xdspub/source/syntax"
)

// jsonSource decodes a JSON file.
func jsonSource(d *decoder) {
	s := d.file.Source
	if s.byEnvoy && s.Marked {
		d.report(s.Finding(codeReadOtherwise, s.Point(0), "Envoy does not read JSON with a byte order mark", "save the file without one"))
	}
	if len(bytes.TrimLeft(s.Data(), syntax.JSONSpace)) == 0 {
		return
	}
	doc := s.documents()[0]
	text := doc.Text
	if faults := syntax.NotJSON(doc.Document); len(faults) > 0 {
		loose, ok := syntax.LooseJSON(text)
		if !s.byEnvoy || !ok {
			d.report(faults...)
			d.unreadable()
			return
		}
		d.report(leniently(faults)...)
		text = loose
	}
	d.document(doc, text)
}
