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

Envoy connects to DNS servers by IP address and port. It rejects a pipe or an internal
listener ("DNS resolver … is not an IP address"). Of a cluster it checks the first of
typed_dns_resolver_config, dns_resolution_config and dns_resolvers that is set, and only if
the cluster's type uses DNS. Write a socket_address with an IP address.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.Address"},
	Node: func(p *validate.Pass, n *xds.Node) {
		address := n.Message.(*corev3.Address)
		if !slices.Contains(resolverAddresses, n.Field()) || address.GetAddress() == nil || address.GetSocketAddress() != nil ||
			!facts.AsksResolver(p.Envoy, n) {
			return
		}
		p.Report(validate.Finding{
			Path:    n.Path(),
			Message: "the DNS resolver is not an IP address",
			Help:    "write a socket_address with the resolver's IP address and port",
		})
	},
}
