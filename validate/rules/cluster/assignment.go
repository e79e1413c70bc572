package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

func endpointCount(a *endpointv3.ClusterLoadAssignment) (count int) {
	for _, locality := range a.GetEndpoints() {
		count += len(locality.GetLbEndpoints())
	}
	return count
}

// endpointsOf returns the endpoints of an assignment that stands at a place. all is false if a locality gets its
// endpoints from elsewhere, so the list lacks them.
func endpointsOf(v validate.View, at facts.Place, a *endpointv3.ClusterLoadAssignment) (list []facts.Endpoint, all bool) {
	all = true
	for i, l := range a.GetEndpoints() {
		all = all && !facts.AsksElsewhere(l)
		list = append(list, facts.EndpointsOf(v, facts.Place{Resource: at.Resource, Path: at.Path.Field("endpoints").Index(i)}, l)...)
	}
	return list, all
}

// assignmentOf returns the endpoint assignment that a cluster uses, with the resource and the path that hold it:
// the load_assignment of the cluster, or an assignment of this Snapshot. The latter counts even if the cluster
// subscribes to a file of its own. The resource is nil if there is no assignment, or if Envoy does not use
// load_assignment.
func assignmentOf(p *validate.LookupPass, n *xds.Node, c *clusterv3.Cluster) (*xds.Resource, xds.Path, *endpointv3.ClusterLoadAssignment) {
	if s, ok := n.Subscription(); ok {
		if r := p.Snapshot.Lookup(s.Target, s.Name); r != nil {
			return r, "", r.Message().(*endpointv3.ClusterLoadAssignment)
		}
		return nil, "", nil
	}
	if !p.Envoy.ClusterKindOf(c).Inline {
		return nil, "", nil
	}
	return p.Resource, n.Path().Field("load_assignment"), c.GetLoadAssignment()
}
