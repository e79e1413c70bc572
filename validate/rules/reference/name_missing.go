package reference

import (
	"fmt"

	"xdspub/validate"
	"xdspub/xds"
)

var nameMissing = &validate.Rule{
	Code: "name-missing",
	Doc: `A resource has no name.

Envoy subscribes to resources and updates them by name. In a source tree every resource needs
a name. Of the files that a bootstrap refers to, Envoy rejects clusters, endpoints and runtime
layers without a name.

A static listener needs no name. To an LDS listener without one Envoy gives a random name at
each update: it replaces the listener and drains its connections although nothing changed (a
warning). It rejects two of them in one file ("duplicate listener  found"). A static secret
without a name is a warning too: nothing can refer to it.`,
	Resource: func(p *validate.LookupPass) {
		r := p.Resource
		if r.Name != "" || r.Type == xds.Bootstrap {
			return
		}
		f := validate.Finding{
			Path:    xds.Path(r.Type.Name),
			Message: fmt.Sprintf("the %s has no name", r.Type.Noun),
			Help:    fmt.Sprintf("set the field %s", r.Type.Name),
		}
		if r.Type.Name == "" {
			f.Help = fmt.Sprintf("put it into a wrapper of type envoy.service.discovery.v3.Resource with the name "+
				"xdstp://AUTHORITY/%s/GROUP/NAME", r.Type.Message)
		}
		if p.Snapshot.FromBootstrap() {
			switch r.Type {
			case xds.Listener:
				if r.DeliveredBy == xds.StaticResources {
					return // a static listener needs no name
				}
				f.Warning = true
				f.Message += ": Envoy replaces it and drains its connections at each update"
			case xds.Secret:
				f.Warning = true
				f.Message += ": nothing can refer to it"
			case xds.RouteConfiguration:
				return // Envoy uses the content of an RDS file for any name
			}
		}
		p.Report(f)
	},
}
