package validate

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// enclosing returns the nearest message of that name around the node, or nil.
func enclosing(n *xds.Node, message protoreflect.FullName) *xds.Node {
	for n = n.Parent; n != nil; n = n.Parent {
		if n.Name() == message {
			return n
		}
	}
	return nil
}

// inside tells whether the node is, or stands in, a message of one of those
// names, or what one of those fields holds.
func inside(n *xds.Node, names ...protoreflect.FullName) bool {
	for ; n != nil; n = n.Parent {
		if slices.Contains(names, n.Name()) || slices.Contains(names, n.Field()) {
			return true
		}
	}
	return false
}
