package address

import (
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var sourceAddress = &validate.Rule{
	Code: "source-address",
	Doc: `The source addresses of a cluster conflict with each other.

upstream_bind_config has one source_address, and may have one more address of the other IP
version in extra_source_addresses (or in its older form, additional_source_addresses).
Envoy rejects both lists together, more than one extra address, two addresses of the same
IP version, and an extra address is set without source_address.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.BindConfig"},
	Node: func(p *validate.Pass, n *xds.Node) {
		if n.Field() != "envoy.config.cluster.v3.Cluster.upstream_bind_config" {
			return
		}
		m := n.Message.(*corev3.BindConfig)
		var others []*corev3.SocketAddress
		field := "extra_source_addresses"
		for _, extra := range m.GetExtraSourceAddresses() {
			others = append(others, extra.GetAddress())
		}
		if len(others) == 0 {
			field, others = "additional_source_addresses", m.GetAdditionalSourceAddresses()
		}
		if len(others) == 0 {
			return
		}
		f := validate.Finding{Path: n.Path().Field(field).Index(0)}
		switch {
		case len(m.GetExtraSourceAddresses()) > 0 && len(m.GetAdditionalSourceAddresses()) > 0:
			f.Path = n.Path().Field("additional_source_addresses")
			f.Message = "both additional_source_addresses and extra_source_addresses are set"
			f.Help = "keep extra_source_addresses: it replaces the other"
		case m.GetSourceAddress() == nil:
			f.Message = field + " is set without source_address"
			f.Help = "move the address to source_address"
		case len(others) > 1:
			f.Path = n.Path().Field(field).Index(1)
			f.Message = "more than one address in " + field
			f.Help = "keep one address, of the IP version that source_address does not have"
		case sameVersion(m.GetSourceAddress(), others[0]):
			f.Message = "both source addresses have the same IP version"
			f.Help = "keep one IPv4 and one IPv6 address"
		default:
			return
		}
		p.Report(f)
	},
}

// sameVersion reports whether two addresses have the same IP version.
func sameVersion(a, b *corev3.SocketAddress) bool {
	x, err := netip.ParseAddr(a.GetAddress())
	y, err2 := netip.ParseAddr(b.GetAddress())
	return err == nil && err2 == nil && x.Is4() == y.Is4() // malformed-address reports an address that can't be parsed
}
