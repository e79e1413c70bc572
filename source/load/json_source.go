package load

import "bytes"

// jsonSource decodes a JSON file.
func (d *decoder) jsonSource() {
	s := d.file.source
	if s.byEnvoy && s.marked {
		d.report(s.finding(codeReadOtherwise, s.point(0), "Envoy does not read JSON with a byte order mark", "save the file without one"))
	}
	if len(bytes.TrimLeft(s.data(), jsonSpace)) == 0 {
		return
	}
	doc := s.documents()[0]
	text := doc.text
	if faults := notJSON(doc.textDocument); len(faults) > 0 {
		loose, ok := looseJSON(text)
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
