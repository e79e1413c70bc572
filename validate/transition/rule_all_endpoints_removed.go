package transition

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/diag"
	"xdspub/xds"
)

var allEndpointsRemoved = &Rule{
	Code:   "all-endpoints-removed",
	Guards: true,
	Doc: `A change removes all endpoints of a cluster.

Envoy accepts the change, and answers each request to the cluster with 503. The rule does not report
a cluster that the change removes together with its endpoints. xdspub approve lets one such change
through, and --allow-removal all of them.`,
	Run: func(p *Pass) error {
		emptied, err := p.emptied()
		if err != nil || len(emptied) == 0 {
			return err
		}
		names, keys := make([]string, len(emptied)), make([]xds.Key, len(emptied))
		for i, r := range emptied {
			names[i], keys[i] = r.Name, r.Key
		}
		p.refuse(keys, Finding{
			Resource: emptied[0], Path: xds.Path(emptied[0].Type.Name),
			Message: fmt.Sprintf("the change removes all endpoints of %s: %s; Envoy would answer each request with 503",
				diag.Count(len(names), "cluster"), named(names)),
		})
		return nil
	},
}

// emptied returns the new resources without endpoints whose clusters have published endpoints: endpoint assignments,
// and clusters with an own assignment.
func (p *Pass) emptied() (list []*xds.Resource, err error) {
	known := make(map[*xds.Resource]bool)
	report := func(r *xds.Resource, had bool) {
		if had && !known[r] {
			known[r] = true
			list = append(list, r)
		}
	}
	for _, r := range p.New.Of(xds.Endpoints) {
		if p.hasEndpoints(r) {
			continue
		}
		was, err := p.Old.Read(xds.Endpoints, r.Name)
		if err != nil {
			return nil, err
		}
		if was == nil {
			continue // the cluster tells
		}
		had, err := p.had(was)
		if err != nil {
			return nil, err
		}
		report(r, had)
	}
	for _, c := range p.New.Of(xds.Cluster) {
		place := p.placeOfEndpoints(c)
		if place == nil || known[place] || p.hasEndpoints(place) {
			continue
		}
		was, err := p.Old.Read(xds.Cluster, c.Name)
		if err != nil {
			return nil, err
		}
		if was == nil {
			continue
		}
		had, err := p.ran(was)
		if err != nil {
			return nil, err
		}
		report(place, had)
	}
	return list, nil
}

// placeOfEndpoints returns the new resource that lists the endpoints of a cluster: its endpoint assignment, or the
// cluster itself. placeOfEndpoints returns nil if a cluster of the type has no list of endpoints, or if the Snapshot
// does not have the assignment.
func (p *Pass) placeOfEndpoints(c *xds.Resource) *xds.Resource {
	if c.HasEndpoints() {
		return c
	}
	if of := asked(c, xds.Endpoints); len(of) > 0 {
		return p.New.Lookup(xds.Endpoints, of[0].Name)
	}
	m := c.Message().(*clusterv3.Cluster)
	if m.GetClusterType() != nil || m.GetType() == clusterv3.Cluster_ORIGINAL_DST {
		return nil
	}
	return c
}

// hasEndpoints reports whether a new resource lists endpoints, or subscribes to endpoints that the new Snapshot has.
func (p *Pass) hasEndpoints(r *xds.Resource) bool {
	if r.HasEndpoints() || !r.AsksFor(xds.LocalityEndpoints) {
		return r.HasEndpoints()
	}
	return slices.ContainsFunc(p.New.Of(xds.LocalityEndpoints), inCollectionsOf(r))
}

// inCollectionsOf returns a function that reports whether a resource is in a collection to which r subscribes.
func inCollectionsOf(r *xds.Resource) func(*xds.Resource) bool {
	collections := make(map[string]bool)
	for _, k := range asked(r, xds.LocalityEndpoints) {
		collections[k.Name] = true
	}
	return func(r *xds.Resource) bool { return collections[r.Type.Group(r.Name)] }
}

// ran reports whether a published cluster has published endpoints.
func (p *Pass) ran(c *xds.Resource) (bool, error) {
	of := asked(c, xds.Endpoints)
	if c.HasEndpoints() || len(of) == 0 {
		return c.HasEndpoints(), nil
	}
	was, err := p.Old.Read(xds.Endpoints, of[0].Name)
	if err != nil || was == nil {
		return false, err
	}
	return p.had(was)
}

// had is hasEndpoints for a published endpoint assignment.
func (p *Pass) had(assignment *xds.Resource) (bool, error) {
	if assignment.HasEndpoints() || !assignment.AsksFor(xds.LocalityEndpoints) {
		return assignment.HasEndpoints(), nil
	}
	published, err := p.Old.Of(xds.LocalityEndpoints)
	return slices.ContainsFunc(published, inCollectionsOf(assignment)), err
}
