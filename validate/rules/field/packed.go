package field

import (
	"xdspub/xds"
)

// isPacked reports whether the node is the content of an Any, of a TypedStruct, or of a Struct that Envoy reads as
// another message.
func isPacked(n *xds.Node) bool {
	switch n.Parent.Name() {
	case "google.protobuf.Any", "xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct":
		return true
	case "google.protobuf.Struct":
		return n.Parent.OptionsType() != ""
	}
	return false
}
