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

// endpointsOf returns the endpoints of the assignment at a place. It does not know all of them if a locality asks
// another server.
func endpointsOf(v validate.View, at facts.Place, a *endpointv3.ClusterLoadAssignment) (list []facts.Endpoint, all bool) {
	all = true
	for i, l := range a.GetEndpoints() {
		all = all && !facts.AsksElsewhere(l)
		list = append(list, facts.EndpointsOf(v, facts.Place{Resource: at.Resource, Path: at.Path.Field("endpoints").Index(i)}, l)...)
	}
	return list, all
}

// assignmentOf returns the endpoints of a cluster, and the resource and path that hold them: the cluster
// itself, or an assignment of this Snapshot, even if the cluster subscribes to it by a file of its own. The
// resource is nil if the Snapshot has no such assignment.
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
