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

Each entry of transport_socket_matches needs a transport_socket. A transport_socket_matcher
selects entries by name, so two entries must not share one ("Duplicate transport socket
name"). Without a transport_socket_matcher the names are used for statistics only.`,
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
					Help:    "add a transport_socket; envoy.transport_sockets.raw_buffer is plain TCP",
				})
			}
			earlier, doubled := first[match.GetName()]
			switch {
			case doubled && c.GetTransportSocketMatcher() != nil:
				p.Report(validate.Finding{
					Path:    path.Field("name"),
					Message: fmt.Sprintf("two transport socket matches have the name %q", match.GetName()),
					Help:    "give each a unique name: transport_socket_matcher selects by name",
					Related: facts.Related(p.Resource, earlier, "the first one"),
				})
			case !doubled:
				first[match.GetName()] = path.Field("name")
			}
		}
	},
}
