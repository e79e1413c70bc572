package validate

import (
	"fmt"

	"xdspub/xds"
)

var nameMissing = &Rule{
	Code: "name-missing",
	Doc: `A resource has no name.

Envoy subscribes by name and updates a resource by its name. A listener without
one gets a random UUID and can never be updated in place; a cluster without one
is refused; the other types can't be asked for.`,
	Snapshot: func(p *Pass) {
		for _, r := range p.Snapshot.All() {
			if r.Name == "" {
				p.Report(Finding{
					Resource: r,
					Path:     xds.Path(r.Type.Name),
					Message:  fmt.Sprintf("%s has no name", r.Type.Noun),
					Help:     fmt.Sprintf("set the field %s", r.Type.Name),
				})
			}
		}
	},
}

// named are the resources of type t that have a name: a missing one is reported
// once, by its own rule.
func named(p *Pass, t *xds.Type) []*xds.Resource {
	list := p.Snapshot.Of(t)
	for len(list) > 0 && list[0].Name == "" {
		list = list[1:]
	}
	return list
}
