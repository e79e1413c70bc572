package field

import (
	"xdspub/xds"
)

// isPacked reports whether the node stands in an Any, or in a struct that Envoy reads as a message.
func isPacked(n *xds.Node) bool {
	switch n.Parent.Name() {
	case "google.protobuf.Any", "xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct":
		return true
	case "google.protobuf.Struct":
		return n.Parent.OptionsType() != ""
	}
	return false
}
