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
	return []diag.Related{{Position: r.Origin.Position(path), Message: message}}
}
