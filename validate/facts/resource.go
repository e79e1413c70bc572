// Package facts holds facts about Envoy 1.40.0 that rules of several families share: how Envoy reads a
// listener, a cluster or a chain of filters, and which names and types Envoy has. Facts of a single family
// stand with the rules of the family.
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

// Related returns a note for a finding about a place in another resource.
func Related(r *xds.Resource, path xds.Path, message string) []diag.Related {
	return []diag.Related{{Position: r.At(path).Position, Message: message}}
}

// Named returns the resources of a list that have a name. The list must be sorted by name. Rules that compare names
// use Named, because two resources without a name do not share a name.
func Named(list []*xds.Resource) []*xds.Resource {
	for len(list) > 0 && list[0].Name == "" {
		list = list[1:]
	}
	return list
}
