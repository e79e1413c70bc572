package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var transportSocketMatch = &validate.Rule{
	Code: "transport-socket-match",
	Doc: `A transport socket match is incomplete, or has a duplicate name.

Each of transport_socket_matches needs its transport_socket. A
transport_socket_matcher chooses them by name, so that two must not have the same
("Duplicate transport socket name"); without one the names are only for statistics.`,
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Cluster"},
	Node: func(p *validate.Pass, n *xds.Node) {
		c := n.Message.(*clusterv3.Cluster)
		first := make(map[string]xds.Path)
		for i, match := range c.GetTransportSocketMatches() {
			path := n.Path().Field("transport_socket_matches").Index(i)
			if match.GetTransportSocket() == nil {
				p.Report(validate.Finding{
					Path:    path,
					Message: fmt.Sprintf("transport socket match %q has no transport_socket", match.GetName()),
					Help:    "give it one; envoy.transport_sockets.raw_buffer is plain TCP",
				})
			}
			earlier, doubled := first[match.GetName()]
			switch {
			case doubled && c.GetTransportSocketMatcher() != nil:
				p.Report(validate.Finding{
					Path:    path.Field("name"),
					Message: fmt.Sprintf("two transport sockets are called %q", match.GetName()),
					Help:    "give each a name of its own: transport_socket_matcher chooses by it",
					Related: facts.Related(p.Resource, earlier, "the first one"),
				})
			case !doubled:
				first[match.GetName()] = path.Field("name")
			}
		}
	},
}
