package field

import (
	"fmt"
	"strings"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var nestedTooDeeply = &validate.Rule{
	Code: "nested-too-deeply",
	Doc: `Messages are nested more deeply than Envoy can read.

Envoy unpacks 100 levels of messages below a resource or a typed_config ("Unable to unpack
as …"). In a Struct each object counts as three levels and each list as two. In a JSON or
YAML file, braces and brackets may be nested 100 deep in total; Envoy does not read a file
with more.`,
	Node: func(p *validate.Pass, n *xds.Node) {
		if isShallow(n) {
			return
		}
		at := depthOf(n)
		if at.deep() && n.Parent != nil && depthOf(n.Parent).deep() {
			return // the finding about the parent is enough
		}
		switch m := n.Message.(type) {
		case *structpb.Struct:
			at = at.with(structDepth(m))
		case *xdstypev3.TypedStruct:
			at = at.with(depth{messages: 1}.with(structDepth(m.GetValue())))
		case *udpatypev1.TypedStruct:
			at = at.with(depth{messages: 1}.with(structDepth(m.GetValue())))
		}
		isUnpacked := !facts.Inside(n, "envoy.config.core.v3.Metadata.typed_filter_metadata")
		switch {
		case at.messages > maxDepth && isUnpacked:
			p.Report(validate.Finding{
				Path:    n.Path(),
				Message: fmt.Sprintf("messages are nested %d deep here", at.messages),
				Help:    fmt.Sprintf("nest less: Envoy unpacks %d levels below a resource or a typed_config", maxDepth),
			})
		case at.json > maxDepth:
			p.Report(validate.Finding{
				Path:    n.Path(),
				Message: fmt.Sprintf("braces and brackets are nested %d deep here", at.json),
				Help:    fmt.Sprintf("nest less: Envoy reads JSON and YAML files that are nested up to %d deep", maxDepth),
			})
		}
	},
}

const maxDepth = 100

// isShallow reports whether the node is certainly not nested too deeply. It is a fast check: each message around
// the node adds at most two levels. It returns false for a Struct, whose content may be deep.
func isShallow(n *xds.Node) bool {
	switch n.Message.(type) {
	case *structpb.Struct, *xdstypev3.TypedStruct, *udpatypev1.TypedStruct:
		return false
	}
	around := 0
	for ; n.Parent != nil; n = n.Parent {
		around++
	}
	return 2*around < maxDepth-3
}

// depth is the depth of a node. messages counts the nested messages since the last message that Envoy unpacks by
// itself. json counts the braces and brackets around the node in a file.
type depth struct{ messages, json int }

func (d depth) with(e depth) depth { return depth{d.messages + e.messages, d.json + e.json} }

func (d depth) deep() bool { return d.messages > maxDepth || d.json > maxDepth }

// depthOf returns the depth of a node. A resource has three braces and brackets around it: it is an object in a
// list in an object.
func depthOf(n *xds.Node) depth {
	if n.Parent == nil {
		return depth{json: 3}
	}
	d := depthOf(n.Parent)
	switch {
	case n.Parent.Name() == "google.protobuf.Any":
		d.messages = 0
		if strings.HasPrefix(string(n.Name()), "google.protobuf.") {
			d.json++ // for the field "value" of the Any
		}
		return d
	case isPacked(n):
		return depth{json: d.json + 1}
	case n.InMap():
		return d.with(depth{2, 2})
	case n.InList():
		return d.with(depth{1, 2})
	default:
		return d.with(depth{1, 1})
	}
}

// structDepth returns the depth of the content of a Struct. Each level of a Struct is two messages: an entry and a
// value.
func structDepth(s *structpb.Struct) (deepest depth) {
	for _, v := range s.GetFields() {
		deepest = deeper(deepest, depth{messages: 2}.with(valueDepth(v)))
	}
	return deepest
}

func valueDepth(v *structpb.Value) (deepest depth) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return depth{1, 1}.with(structDepth(k.StructValue))
	case *structpb.Value_ListValue:
		for _, element := range k.ListValue.GetValues() {
			deepest = deeper(deepest, depth{messages: 1}.with(valueDepth(element)))
		}
		return depth{1, 1}.with(deepest)
	default:
		return depth{}
	}
}

func deeper(a, b depth) depth { return depth{max(a.messages, b.messages), max(a.json, b.json)} }
