// Package decode turns the text of a file into messages of Envoy's API, and remembers where each field stands. It is
// stricter than Envoy: where Envoy would drop a value, or read a value otherwise than its author meant, the package
// reports an error with a place. It reads no file of a source tree by itself: Files does.
//
//	file := decode.NewSource("web.yaml", syntax.YAML, text, decode.SourceOptions{}).Decode(nil)
package decode

import (
	"encoding/json"
	"fmt"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// document takes the resources out of one document, of any kind that the source
// tree can hold. text is its JSON form.
func (d *decoder) document(doc *document, text []byte) {
	d.any = true
	v := value{doc: doc, text: text}
	switch s := doc.source; {
	case s.isBootstrap:
		bootstrapDocument(d, v)
		return
	case s.byEnvoy:
		subscribedDocument(d, v)
		return
	}
	switch jsontext.Value(text).Kind() {
	case '[':
		d.list(v)
	case '{':
		d.object(v)
	default:
		d.lose(noObject(v))
	}
}

const documentHelp = `a document is a resource ("@type": …), a list of resources, a DiscoveryResponse (resources: […]) ` +
	`or a Bootstrap (static_resources: …). To skip this file, list it under ignore: in xdspub.yaml`

// noObject returns the finding about a document that is a text, a number or empty.
func noObject(v value) diag.Diagnostic {
	if m := v.doc.ForeignText(); m != nil {
		return m.Finding(v.doc.Document)
	}
	return v.finding(syntax.CodeUnknownDocument, fmt.Sprintf("the document is %s, not an xDS resource", syntax.KindOfJSON(v.text)), documentHelp)
}

func (d *decoder) object(v value) {
	members, _ := syntax.ObjectOf(v.text)
	name := protoreflect.FullName("")
	typed := has(members, "@type")
	if typed {
		if mt, err := v.doc.source.resolver().FindMessageByURL(urlIn(members)); err == nil {
			name = mt.Descriptor().FullName()
		}
	}
	if !typed {
		if f := v.foreignDocument(members); f != nil {
			d.foreign(v, v.notXDS(*f), f.key)
			return
		}
	}
	switch {
	case name == "envoy.service.discovery.v3.DiscoveryResponse", !typed && has(members, "resources"):
		d.response(v, members)
	case name == "envoy.config.bootstrap.v3.Bootstrap", !typed && isBootstrap(members):
		d.bootstrap(v, members, nil)
	case typed:
		d.elements([]value{v}) // reports an unknown type, too
	default:
		help, ok := typeMissing(members)
		if !ok {
			help = documentHelp
		}
		f := v.finding(syntax.CodeUnknownDocument, "the document is not an xDS resource: it has no @type, resources or static_resources", help)
		v.meantType(&f, "", members)
		d.foreign(v, f, ok || typeOf(members) != nil)
	}
}

// foreign reports a document that is of another program, as far as can be seen: no resource is
// missing for it, such as in a git work tree with all kinds of files. ours says that it holds
// something of Envoy's nevertheless.
func (d *decoder) foreign(v value, f diag.Diagnostic, ours bool) {
	if ours || envoyText.Match(v.text) {
		d.lose(f)
		return
	}
	d.report(f)
}

// isBootstrap reports whether an object without @type has a field of a Bootstrap.
func isBootstrap(members map[string]json.RawMessage) bool {
	for name := range members {
		if isBootstrapField(name) {
			return true
		}
	}
	return false
}

// list takes over a list of resources.
func (d *decoder) list(v value) {
	items, ok := syntax.ListOf(v.text)
	if !ok {
		f := v.finding(syntax.CodeInvalidValue, "a list of resources is wanted here", "")
		if v.doc.source.byEnvoy && jsontext.Value(v.text).Kind() == '{' {
			d.report(leniently(diag.List{f})[0])
			d.elements([]value{v})
			return
		}
		d.lose(f)
		return
	}
	values := make([]value, len(items))
	for i, item := range items {
		values[i] = v.at(v.path.Index(i), item)
	}
	d.elements(values)
}

// response takes over the resources of a DiscoveryResponse; the rest of it is
// only checked: version, nonce and order are made when it is published.
func (d *decoder) response(v value, members map[string]json.RawMessage) {
	resources := members["resources"]
	rest := without(members, "resources", "@type")
	var around discoveryv3.DiscoveryResponse
	if _, ok := d.message(v.at(v.path, rest), &around); ok {
		d.envelope(&around)
	}
	d.file.SaysNone = string(resources) == "[]"
	if resources != nil && string(resources) != "null" {
		d.list(v.field("resources", resources))
	}
}

// bootstrap takes the static resources of a Bootstrap as resources of the tree, so that users can move a
// static configuration into a tree. The rest of the Bootstrap is only checked, because it stays in Envoy's own
// bootstrap. members lacks the lists in decoded.
func (d *decoder) bootstrap(v value, members map[string]json.RawMessage, decoded map[string][]*File) {
	v.doc.isBootstrap = true
	key := "static_resources"
	if !has(members, key) && has(members, "staticResources") {
		key = "staticResources"
	}
	static := members[key]
	if key == "static_resources" && has(members, "staticResources") {
		static, key = nil, "" // the message is refused: one field in two spellings
	}
	rest := &bootstrapv3.Bootstrap{}
	if lost, ok := d.message(v.at(v.path, without(members, key, "@type")), rest); ok {
		keepBootstrap(d, v, rest, lost)
	}
	if static == nil || string(static) == "null" {
		return
	}
	in := v.field(key, static)
	lists, ok := syntax.ObjectOf(static)
	if !ok {
		d.lose(in.finding(syntax.CodeInvalidValue, "static_resources is an object of lists", ""))
		return
	}
	d.message(v.at(in.path, without(lists, "listeners", "clusters", "secrets")), &bootstrapv3.Bootstrap_StaticResources{})
	for _, s := range staticResources {
		if parts, ok := decoded[s.name]; ok {
			d.takeOver(parts)
			continue
		}
		raw := lists[s.name]
		if raw == nil || string(raw) == "null" {
			continue
		}
		at := in.field(s.name, raw)
		items, ok := syntax.ListOf(raw)
		if !ok {
			f := at.finding(syntax.CodeInvalidValue, fmt.Sprintf("%s is a list", s.name), "")
			if !v.doc.source.byEnvoy || jsontext.Value(raw).Kind() != '{' {
				d.lose(f)
				continue
			}
			d.report(leniently(diag.List{f})[0])
			items = []json.RawMessage{raw}
		}
		d.each(len(items), func(one *decoder, i int) { one.static(v.at(at.path.Index(i), items[i]), s.of) })
	}
}

// static takes over a static resource.
func (d *decoder) static(v value, t *xds.Type) {
	if d.isObject(v) {
		d.resource(v, t, nil)
	}
}

// elements decodes resources that name their type.
func (d *decoder) elements(values []value) {
	d.each(len(values), func(one *decoder, i int) { one.element(values[i]) })
}
