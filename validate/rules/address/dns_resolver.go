package address

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var dnsResolver = &validate.Rule{
	Code: "dns-resolver",
	Doc: `A DNS resolver is not an IP address.

Envoy asks DNS servers by IP address and port only: a pipe or an internal listener
is refused ("DNS resolver … is not an IP address"). Of a cluster it looks at the
first of typed_dns_resolver_config, dns_resolution_config and dns_resolvers, and
at none where the cluster's type does not look names up.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.Address"},
	Node: func(p *validate.Pass, n *xds.Node) {
		address := n.Message.(*corev3.Address)
		if !slices.Contains(resolverAddresses, n.Field()) || address.GetAddress() == nil || address.GetSocketAddress() != nil || !facts.AsksResolver(p.Envoy, n) {
			return
		}
		p.Report(validate.Finding{
			Path:    n.Path(),
			Message: "a DNS resolver that is not an IP address",
			Help:    "give its socket_address",
		})
	},
}
