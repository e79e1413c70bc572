package reference

import (
	"fmt"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var shadowedByBootstrap = &validate.Rule{
	Code: "shadowed-by-bootstrap",
	Doc: `A cluster or listener has the name of a static one in the bootstrap.

Envoy ignores it without a word, counts update_success, and keeps the static one:
no change to it would ever take effect.`,
	ByName: true,
	Snapshot: func(p *validate.SnapshotPass) {
		for _, t := range []*xds.Type{xds.Cluster, xds.Listener} {
			for _, r := range facts.Named(p.Snapshot.Of(t)) {
				if p.BootstrapFacts.Has(t, r.Name) && r.DeliveredBy != xds.StaticResources {
					p.Report(validate.Finding{
						Resource: r,
						Path:     xds.Path(t.Name),
						Message:  fmt.Sprintf("%s stands in the bootstrap too: Envoy would ignore this one", r.Key),
						Help:     "rename it, or take it out of the bootstrap",
					})
				}
			}
		}
	},
}
