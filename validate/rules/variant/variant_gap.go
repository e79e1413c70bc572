package variant

import (
	"fmt"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds/params"
)

var variantGap = &validate.Rule{
	Code:       "variant-gap",
	Severity:   diag.Warning,
	OfVariants: true,
	Doc: `Some clients get no variant of a resource.

"Failure to do this will result in the server acting as if the requested resource does not exist"
(xRFC TP2, Matching Behavior and Best Practices). Clients that send a value that no variant names, or
not the key at all, count as well: the message shows one. Ignore the finding if no client is like that.`,
	Resource: func(p *validate.LookupPass) {
		namesakes := p.Namesakes()
		if !p.IsFirst() || !varies(namesakes) {
			return
		}
		space, sets := spaceOf(namesakes)
		if example, gap := space.Example(space.Minus(params.All, space.Or(sets...))); gap {
			p.Report(validate.Finding{
				Constraints: true, Message: fmt.Sprintf("no variant of %s is for a client with %s", p.Resource.Key, example),
				Help: "add a variant for it, or widen the constraints of one",
			})
		}
	},
}
