package validate

import (
	"xdspub/diag"
	"xdspub/xds"
)

// place is a field of a resource.
type place struct {
	*xds.Resource
	path xds.Path
}

// related is what a finding says of a place in another resource.
func related(r *xds.Resource, path xds.Path, message string) []diag.Related {
	return []diag.Related{{Position: r.Origin.Position(path), Message: message}}
}
