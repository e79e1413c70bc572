package transition

import (
	"fmt"

	"xdspub/diag"
	"xdspub/xds"
)

var manyRemoved = &Rule{
	Code:   "many-removed",
	Guards: true,
	Doc: `A change removes many resources of a type.

Envoy accepts the change, and requests for the removed resources fail. If more than 10 resources of
a type are published, a change may remove --max-removal percent of them at most, by default 50.
xdspub approve lets one such change through, and --allow-removal all of them.`,
	Run: func(p *Pass) error {
		for _, t := range xds.Types {
			removal, err := p.Old.Removed(t, p.New)
			if err != nil {
				return err
			}
			if !p.guard.exceeds(len(removal.Names), removal.Published) {
				continue
			}
			keys := make([]xds.Key, len(removal.Names))
			for i, name := range removal.Names {
				keys[i] = xds.Key{Type: t, Name: name}
			}
			p.refuse(keys, Finding{
				Message: fmt.Sprintf("the change removes %d of %s, more than %d%% (--max-removal): %s", len(removal.Names),
					diag.Count(removal.Published, t.Noun), p.guard.MaxRemoval, named(removal.Names)),
			})
		}
		return nil
	},
}
