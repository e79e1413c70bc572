package variant

import (
	"fmt"
	"slices"
	"strings"

	"xdspub/validate"
)

var variantKeys = &validate.Rule{
	Code:       "variant-keys",
	OfVariants: true,
	Doc: `Variants of a resource name different keys.

"Whenever there are multiple variants of a resource, all variants must list the same set of keys"
(xRFC TP2, Matching Behavior and Best Practices): a cache may then leave out what a client says beyond
these keys. Where a variant does not care about a key, let it say both: the key exists, or not.`,
	Resource: func(p *validate.LookupPass) {
		first := p.Namesakes()[0]
		if first == p.Resource || first.For.None() || p.Resource.For.None() { // otherwise reported by variant-overlap
			return
		}
		was, is := first.For.Keys(), p.Resource.For.Keys()
		if !slices.Equal(was, is) {
			p.Report(validate.Finding{
				Constraints: true, Message: fmt.Sprintf("a variant of %s names %s, another %s", p.Resource.Key, keys(is), keys(was)),
				Help: "name the same keys in all variants", Related: other(first, "the other variant"),
			})
		}
	},
}

func keys(list []string) string {
	if len(list) == 0 {
		return "no key"
	}
	return "the keys " + strings.Join(list, ", ")
}
