package variant

import (
	"fmt"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds/params"
)

var variantConstraints = &validate.Rule{
	Code:       "variant-constraints",
	Severity:   diag.Warning,
	OfVariants: true,
	Doc: `The constraints of a variant match every client, or none.

Examples: a key with two values at once, or a key that exists or is absent. A variant for no client
is never sent; write a variant for all clients without constraints.`,
	Checks: []diag.Check{
		{Name: "always-match", Summary: "The constraints match every client."},
		{Name: "never-match", Summary: "The constraints match no client."},
	},
	Resource: func(p *validate.LookupPass) {
		c := p.Resource.For
		if c.None() {
			return
		}
		f := validate.Finding{Constraints: true}
		what := "the constraints" // the constraints of a folder give one finding for all of its resources
		if p.Resource.HasOwnConstraints() {
			what += " of " + p.Resource.Key.String()
		}
		space := params.NewSpace(c)
		switch set := space.Of(c); {
		case space.Err() != nil: // reported by variant-overlap
			return
		case set == params.All:
			f.Check, f.Message, f.Help = "always-match", fmt.Sprintf("%s match every client: %s", what, c), "remove the constraints"
		case c.Equal(params.Or()):
			f.Check, f.Message = "never-match", what+" match no client, whatever it sends"
			f.Help = "remove this variant, or write constraints: an empty or_constraints and an empty not_constraints are for nobody"
		case set == params.None:
			f.Check, f.Message, f.Help = "never-match", fmt.Sprintf("%s match no client: %s", what, c), "remove this variant, or change its constraints"
		default:
			return
		}
		p.Report(f)
	},
}
