package published

import (
	"maps"
	"slices"
)

// ReadOut returns the published files that r has read and keeps.
func (r *Reader) ReadOut() []string { return slices.Sorted(maps.Keys(r.readOut)) }
