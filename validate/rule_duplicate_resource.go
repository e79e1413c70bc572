package validate

import (
	"fmt"

	"xdspub/xds"
)

var duplicateResource = &Rule{
	Code: "duplicate-resource",
	Doc: `Two resources of one type have the same name.

Envoy keeps the first of two clusters or listeners and rejects the update
("duplicate cluster a found"); a file of endpoints, routes or a secret must hold
exactly one resource, and is refused as a whole.`,
	Snapshot: func(p *Pass) {
		for _, t := range xds.Types {
			firsts := make(map[delivered]*xds.Resource)
			for _, r := range named(p, t) {
				key := delivered{r.Name, r.Via}
				first := firsts[key]
				if first == nil {
					firsts[key] = r
					continue
				}
				p.Report(Finding{
					Resource: r,
					Path:     xds.Path(t.Name),
					Message:  fmt.Sprintf("%s is defined twice", r.Key),
					Help:     "remove or rename one of them",
					Related:  related(first, xds.Path(t.Name), "first defined here"),
				})
			}
		}
	},
}

// delivered is a resource's name, and what delivers it: Envoy takes a cluster of
// the name of a static one for that, and EDS, RDS and SDS files each have their own.
type delivered struct{ name, via string }
