// Package variant holds the rules about variants of a resource: which clients each of them is for.
package variant

import "xdspub/validate/facts"

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("variant", nil,
	variantConstraints,
	variantGap,
	variantKeys,
	variantOverlap,
)
