package reference

import (
	"fmt"

	"xdspub/validate"
	"xdspub/xds"
)

var shadowedByBootstrap = &validate.Rule{
	Code:     "shadowed-by-bootstrap",
	Profiles: validate.Envoy,
	Doc: `A cluster or listener has the name of a static one in the bootstrap.

Envoy ignores the resource, counts update_success, and keeps the static one: no change to the
resource ever takes effect.`,
	Resource: func(p *validate.LookupPass) {
		r := p.Resource
		if r.Type != xds.Cluster && r.Type != xds.Listener || r.Name == "" || r.DeliveredBy == xds.StaticResources {
			return
		}
		if p.BootstrapFacts.Has(r.Type, r.Name) {
			p.Report(validate.Finding{
				Path:    xds.Path(r.Type.Name),
				Message: fmt.Sprintf("%s is static in the bootstrap: Envoy ignores this one", r.Key),
				Help:    "rename it, or remove the one in the bootstrap",
			})
		}
	},
}
