package reference

import (
	"fmt"

	"xdspub/validate"
	"xdspub/xds"
)

var nameMissing = &validate.Rule{
	Code: "name-missing",
	Doc: `A resource has no name.

Envoy subscribes by name and updates a resource by its name. A source tree is
published by name: each of its resources needs one. Of what a bootstrap leads to, Envoy
refuses a cluster, endpoints or a runtime layer without a name.

A static listener needs none. One that comes by LDS is a warning: Envoy gives it a
random name at each update, and so replaces it, and drains its connections, though
nothing in it changed. Two of them in one file are refused ("duplicate listener  found").
A static secret without a name is a warning too: nothing can ask for it.`,
	Resource: func(p *validate.LookupPass) {
		r := p.Resource
		if r.Name != "" || r.Type == xds.Bootstrap {
			return
		}
		f := validate.Finding{
			Path:    xds.Path(r.Type.Name),
			Message: fmt.Sprintf("%s has no name", r.Type.Noun),
			Help:    fmt.Sprintf("set the field %s", r.Type.Name),
		}
		if p.Snapshot.FromBootstrap() {
			switch r.Type {
			case xds.Listener:
				if r.DeliveredBy == xds.StaticResources {
					return // it stays as long as the Envoy
				}
				f.Warning = true
				f.Message += ": Envoy replaces it, and drains its connections, at each update"
			case xds.Secret:
				f.Warning = true
				f.Message += ": nothing can ask for it"
			case xds.RouteConfiguration:
				return // it is what its file holds, whatever name is asked for
			}
		}
		p.Report(f)
	},
}
