package variant

import (
	"fmt"

	"xdspub/validate"
	"xdspub/xds/params"
)

var variantOverlap = &validate.Rule{
	Code:       "variant-overlap",
	OfVariants: true,
	Doc: `Two variants of a resource are for the same client.

The client's variant is undefined. "Control planes must not accept a set of resources that violates
this requirement" (xRFC TP2, Variants With Overlapping Constraint Values). A resource without
constraints selects every client, which leaves no client for a variant. To serve clients that do not
send a new key yet, give their variant the constraint: not (key exists).`,
	Resource: func(p *validate.LookupPass) {
		namesakes := p.Namesakes()
		if !p.IsFirst() || !varies(namesakes) {
			return
		}
		space, sets := spaceOf(namesakes)
		before := params.None // the clients of the earlier variants
		for i := range namesakes {
			if space.And(before, sets[i]) != params.None {
				reportOverlap(p, space, sets, i)
			}
			before = space.Or(before, sets[i])
		}
		tooComplex(p, space)
	},
}

// reportOverlap reports the variant with index of, which shares a client with an earlier variant. The note shows
// the first such variant.
func reportOverlap(p *validate.LookupPass, space *params.Space, sets []params.Set, of int) {
	namesakes := p.Namesakes()
	for i, first := range namesakes[:of] {
		if example, both := space.Example(space.And(sets[i], sets[of])); both {
			r := namesakes[of]
			p.Report(validate.Finding{
				Constraints: true, Resource: r, Message: fmt.Sprintf("two variants of %s are for a client with "+
					"%s: %s, and %s", r.Key, example, first.For, r.For),
				Help: "change the constraints of one, so that no client matches both", Related: other(first, "the other variant"),
			})
			return
		}
	}
}
