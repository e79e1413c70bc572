package load

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/envoy/envoyapi"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// Subscribed reads a file that Envoy itself subscribes to for resources of a type: one DiscoveryResponse, in
// the format that Envoy derives from the suffix. The findings include values that Envoy's parser reads in
// another way than written. Subscribed does not read files that resources name.
//
// v is the release that reads the file; nil means the latest known release. The error is not nil if the file
// can't be read.
func Subscribed(path string, of *xds.Type, v *envoyapi.Version) (*Result, error) {
	s, err := readSource(path, syntax.EnvoyFormat(path))
	if err != nil {
		return nil, err
	}
	s.byEnvoy, s.of = true, of
	_, result := parse(s.forEnvoy(v), nil)
	return result, nil
}

// subscribedDocument is document for a file that Envoy reads, which must be a DiscoveryResponse.
func (d *decoder) subscribedDocument(v value) {
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
			"without resources: "+d.file.source.of.WithoutAny(), responseHelp))
	case has(members, "@type") && !has(members, "resources"):
		d.lose(v.field("@type", nil).finding(codeNoResponse,
			"the file holds a bare resource, and Envoy reads a response without resources: "+d.file.source.of.WithoutAny(), responseHelp))
	default:
		if has(members, "@type") {
			d.report(v.field("@type", nil).finding(codeUnknownField,
				`unknown field "@type": a DiscoveryResponse has none, and Envoy then ignores all other unknown fields`, "remove the line"))
		}
		d.response(v, members)
	}
}

const responseHelp = `write a DiscoveryResponse: {"resources": [{"@type": …}, …]}`
