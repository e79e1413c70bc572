package cluster

import (
	"cmp"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var cleartextUpstream = &validate.Rule{
	Code:     "cleartext-upstream",
	Severity: diag.Warning,
	OptIn:    true,
	Doc: `A cluster without TLS connects to port 443 or 8443 (off by default).

Envoy sends plain HTTP to such an endpoint. Most servers on these ports answer with 400, or
close the connection. Add a transport_socket with an UpstreamTlsContext. If the server really
expects plain text on that port, set a transport_socket of type raw_buffer to say so.
--enable cleartext-upstream turns the rule on.`,
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Cluster"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		c := n.Message.(*clusterv3.Cluster)
		if c.GetTransportSocket() != nil || len(c.GetTransportSocketMatches()) > 0 || c.GetTransportSocketMatcher() != nil {
			return
		}
		if at, port := httpsEndpoint(p.Snapshot, facts.Place{Resource: p.Resource, Path: n.Path().Field("load_assignment")}, c.GetLoadAssignment()); port != 0 {
			p.Report(validate.Finding{
				Path: at.Path, Message: fmt.Sprintf("the endpoint has port %d, and the cluster does not use TLS", port), Help: helpTLS,
			})
			return
		}
		if c.GetType() != clusterv3.Cluster_EDS {
			return
		}
		assignment := p.Snapshot.Lookup(xds.Endpoints, cmp.Or(c.GetEdsClusterConfig().GetServiceName(), c.GetName()))
		if assignment == nil {
			return
		}
		if at, port := httpsEndpoint(p.Snapshot, facts.Place{Resource: assignment}, assignment.Message().(*endpointv3.ClusterLoadAssignment)); port != 0 {
			p.Report(validate.Finding{
				Path: n.Path().Field("name"), Message: fmt.Sprintf("the endpoint has port %d, and the cluster does not use TLS", port), Help: helpTLS,
				Related: facts.Related(at.Resource, at.Path, "this endpoint"),
			})
		}
	},
}

const helpTLS = "add a transport_socket with an UpstreamTlsContext to the cluster; if you mean plain text, one of type raw_buffer"

// httpsEndpoint returns the first endpoint of an assignment with port 443 or 8443: the place of its port, and the
// port. It returns port 0 for an assignment without such an endpoint.
func httpsEndpoint(v validate.View, of facts.Place, a *endpointv3.ClusterLoadAssignment) (at facts.Place, port uint32) {
	endpoints, _ := endpointsOf(v, of, a)
	for _, e := range endpoints {
		switch port := e.GetEndpoint().GetAddress().GetSocketAddress().GetPortValue(); port {
		case 443, 8443:
			return e.At("endpoint.address.socket_address.port_value"), port
		}
	}
	return facts.Place{}, 0
}
