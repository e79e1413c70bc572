package published

import (
	"maps"
	"slices"
)

// ReadOut returns the files that were read back and are kept.
func (r *Reader) ReadOut() []string { return slices.Sorted(maps.Keys(r.readOut)) }
