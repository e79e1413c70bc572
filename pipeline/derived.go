package pipeline

import (
	"xdspub/render"
	"xdspub/xds"
)

// derived is what follows from the resources of a published file. It is computed again only
// once the file holds others.
type derived struct {
	resources []*xds.Resource
	// watches are the path subscriptions that Envoy holds for them.
	watches []string
	// named are the files that they subscribe to.
	named map[string]bool
}

// derive returns what follows from the published clusters, or the published listeners.
func (p *Pipeline) derive(t *xds.Type, resources []*xds.Resource) *derived {
	if d := p.derived[t]; d != nil && sameSlice(d.resources, resources) {
		return d
	}
	d := &derived{resources: resources, watches: render.Watches(resources)}
	if t == xds.Cluster {
		d.named = p.named(resources, nil)
	} else {
		d.named = p.named(nil, resources)
	}
	p.derived[t] = d
	return d
}

// sameSlice reports whether two slices are one.
func sameSlice(a, b []*xds.Resource) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
