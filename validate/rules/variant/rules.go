// Package variant holds the rules about variants of a resource: which clients each of them is for.
package variant

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
	variantConstraints,
	variantGap,
	variantKeys,
	variantOverlap,
}
