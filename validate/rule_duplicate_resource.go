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
			for _, r := range named(p, t) {
				first := p.Snapshot.Lookup(t, r.Name)
				if first == r {
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
