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
			return // said at its parent
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

// isShallow is a fast check for most nodes: a node adds at most two levels to the nodes around the node.
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

// depth is how deeply something is nested: in messages below the nearest that is
// unpacked by itself, and in braces and brackets of a file.
type depth struct{ messages, json int }

func (d depth) with(e depth) depth { return depth{d.messages + e.messages, d.json + e.json} }

func (d depth) deep() bool { return d.messages > maxDepth || d.json > maxDepth }

// depthOf is how deeply a node stands. A resource is an object in the list of an
// object.
func depthOf(n *xds.Node) depth {
	if n.Parent == nil {
		return depth{json: 3}
	}
	d := depthOf(n.Parent)
	switch {
	case n.Parent.Name() == "google.protobuf.Any":
		d.messages = 0
		if strings.HasPrefix(string(n.Name()), "google.protobuf.") {
			d.json++ // in "value"
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

// structDepth is what stands in a Struct: an entry and a value for each level.
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
