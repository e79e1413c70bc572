package decode

import (
	"encoding/json"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/source/syntax"
	"xdspub/xds"
)

// long decodes a document with long lists of resources in pieces. It returns false, and reports nothing, if
// the document has to be parsed as a whole.
func long(d *decoder, doc *document) bool {
	if !doc.AsYAML().MayBeLong() {
		return false
	}
	if !doc.source.byEnvoy {
		if l := doc.AsYAML().RootList(); l != nil {
			return l.IsLong() && longRoot(d, doc, l)
		}
	}
	var lists syntax.Lists
	if !doc.source.isBootstrap {
		lists = doc.AsYAML().ListBehind("resources")
	}
	if lists.AreLong() {
		return longResponse(d, doc, lists)
	}
	if lists != nil || doc.source.byEnvoy && !doc.source.isBootstrap {
		return false
	}
	lists = doc.AsYAML().ListsBelow("static_resources", staticNames())
	return lists.AreLong() && longBootstrap(d, doc, lists)
}

func longRoot(d *decoder, doc *document, l *syntax.List) bool {
	parts, ok := pieces(d, value{doc: doc}, l, (*decoder).element)
	if !ok {
		return false
	}
	d.any = true
	d.takeOver(parts)
	return true
}

func longResponse(d *decoder, doc *document, lists syntax.Lists) bool {
	v := value{doc: doc}
	members, ok := doc.AsYAML().Around(lists)
	if !ok || !isNull(members, "resources") || has(members, "@type") {
		return false
	}
	parts, ok := pieces(d, v.field("resources", nil), lists["resources"], (*decoder).element)
	if !ok {
		return false
	}
	d.any = true
	var envelope discoveryv3.DiscoveryResponse
	if _, ok := d.message(v.at(v.path, without(members, "resources")), &envelope); ok {
		d.envelope(&envelope)
	}
	d.takeOver(parts)
	return true
}

func longBootstrap(d *decoder, doc *document, lists syntax.Lists) bool {
	v := value{doc: doc}
	members, ok := doc.AsYAML().Around(lists)
	if !ok || has(members, "@type") || has(members, "resources") || has(members, "staticResources") {
		return false
	}
	static, ok := syntax.ObjectOf(members["static_resources"])
	if !ok {
		return false
	}
	decoded := make(map[string][]*File)
	for _, s := range staticResources {
		l := lists[s.name]
		if l == nil {
			continue
		}
		in := v.field("static_resources", nil).field(s.name, nil)
		if !isNull(static, s.name) {
			return false
		}
		if decoded[s.name], ok = pieces(d, in, l, func(one *decoder, item value) { one.static(item, s.of) }); !ok {
			return false
		}
	}
	d.any = true
	d.bootstrap(v, members, decoded)
	return true
}

// isNull reports whether a member is present without a value.
func isNull(members map[string]json.RawMessage, name string) bool {
	return string(members[name]) == "null"
}

// pieces decodes the elements of the list at v. ok is false if a piece can't be parsed alone.
func pieces(d *decoder, v value, l *syntax.List, element func(one *decoder, item value)) (parts []*File, ok bool) {
	v.doc.AsYAML().Cut(steps(v.path), l)
	whole := make([]bool, l.Pieces())
	parts = d.inParts(l.Pieces(), func(one *decoder, p int) {
		if whole[p] = one.ended(); whole[p] {
			return
		}
		first, items, ok := v.doc.AsYAML().Piece(l, p)
		if !ok {
			return
		}
		whole[p] = true
		for i, item := range items {
			if one.ended() {
				return
			}
			element(one, v.at(v.path.Index(first+i), item))
		}
	})
	if slices.Contains(whole[:len(parts)], false) {
		v.doc.AsYAML().Join(l)
		return nil, false
	}
	return parts, true
}

// staticList is a list of a Bootstrap's static resources.
type staticList struct {
	name string
	of   *xds.Type
}

// staticResources are all of these, in the order of the message.
var staticResources = staticLists()

func staticLists() (all []staticList) {
	for _, t := range slices.Backward(xds.Types) {
		if t.Static != "" {
			all = append(all, staticList{string(t.Static), t})
		}
	}
	return all
}

// staticNames are the names of staticResources.
func staticNames() (names []string) {
	for _, s := range staticResources {
		names = append(names, s.name)
	}
	return names
}
