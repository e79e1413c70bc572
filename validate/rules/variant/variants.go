package variant

import (
	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
	"xdspub/xds/params"
)

// spaceOf returns the space of parameters that the constraints of variants distinguish, and the clients of each
// variant as a set in this space.
func spaceOf(variants []*xds.Resource) (space *params.Space, sets []params.Set) {
	var all []params.Constraints
	for _, r := range variants {
		all = append(all, r.For)
	}
	space = params.NewSpace(all...)
	for _, c := range all {
		sets = append(sets, space.Of(c))
	}
	return space, sets
}

// varies reports whether the namesakes include a resource with constraints.
func varies(namesakes []*xds.Resource) bool {
	for _, r := range namesakes {
		if !r.For.None() {
			return true
		}
	}
	return false
}

// other returns a note that points at the constraints of another variant.
func other(r *xds.Resource, message string) []diag.Related {
	return []diag.Related{{Position: r.ConstraintsAt().Position, Message: message}}
}

// tooComplex reports variants whose constraints are too complex to compute their clients.
func tooComplex(p *validate.LookupPass, space *params.Space) {
	if space.Err() == nil {
		return
	}
	p.Report(validate.Finding{Constraints: true, Error: true, Message: "nobody can say which clients the " +
		"variants of " + p.Resource.Key.String() + " are for: " + space.Err().Error(), Help: "use fewer keys in one resource"})
}
