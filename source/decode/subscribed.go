package decode

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/source/syntax"
)

// subscribedDocument decodes a file that Envoy reads. Anything but a DiscoveryResponse is a finding.
func subscribedDocument(d *decoder, v value) {
	members, ok := syntax.ObjectOf(v.text)
	if f := v.foreignDocument(members); f != nil && !has(members, "resources") {
		d.lose(v.notXDS(*f))
		return
	}
	bare := typeOf(members)
	switch {
	case !ok || jsontext.Value(v.text).Kind() == 'n':
		d.lose(v.finding(codeNoResponse, fmt.Sprintf("the file holds %s: Envoy rejects the whole file", syntax.KindOfJSON(v.text)), responseHelp))
	case !has(members, "resources") && !has(members, "@type") && bare != nil:
		d.lose(v.finding(codeNoResponse, "the file holds a bare "+bare.Noun+", and Envoy reads a response "+
			"without resources: "+d.file.Source.of.WithoutAny(), responseHelp))
	case has(members, "@type") && !has(members, "resources"):
		d.lose(v.field("@type", nil).finding(codeNoResponse,
			"the file holds a bare resource, and Envoy reads a response without resources: "+d.file.Source.of.WithoutAny(), responseHelp))
	default:
		if has(members, "@type") {
			d.report(v.field("@type", nil).finding(codeUnknownField,
				`unknown field "@type": a DiscoveryResponse has none, and Envoy then ignores all other unknown fields`, "remove the line"))
		}
		d.response(v, members)
	}
}
