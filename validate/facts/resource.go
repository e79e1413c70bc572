// Package facts knows what rules of several families know about Envoy 1.40.0: how it reads a
// listener, a cluster or a chain of filters, and which names and types it has. What one
// family knows alone stands with its rules.
package facts

import (
	"xdspub/diag"
	"xdspub/xds"
)

// Place is a field of a resource.
type Place struct {
	*xds.Resource
	Path xds.Path
}

// Related is what a finding says of a place in another resource.
func Related(r *xds.Resource, path xds.Path, message string) []diag.Related {
	return []diag.Related{{Position: r.Origin.Range(path).Position, Message: message}}
}

// Named are those of a sorted list that have a name: no name is nobody's, and two
// resources without one are not the same.
func Named(list []*xds.Resource) []*xds.Resource {
	for len(list) > 0 && list[0].Name == "" {
		list = list[1:]
	}
	return list
}
