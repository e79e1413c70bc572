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

upstream_bind_config has a source_address, and may have one more of the other IP
version in extra_source_addresses, or, as it was called before, in
additional_source_addresses: not in both, not two of them, not of the same IP
version, and not without source_address.`,
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
			f.Message = "additional_source_addresses beside extra_source_addresses"
			f.Help = "they are the same: leave extra_source_addresses"
		case m.GetSourceAddress() == nil:
			f.Message = field + " without source_address"
			f.Help = "make it the source_address"
		case len(others) > 1:
			f.Path = n.Path().Field(field).Index(1)
			f.Message = "more than one source address in " + field
			f.Help = "leave one, of the IP version that source_address is not"
		case sameVersion(m.GetSourceAddress(), others[0]):
			f.Message = "a second source address of the same IP version"
			f.Help = "leave one IPv4 and one IPv6 address"
		default:
			return
		}
		p.Report(f)
	},
}

// sameVersion reports whether both are addresses of one IP version.
func sameVersion(a, b *corev3.SocketAddress) bool {
	x, err := netip.ParseAddr(a.GetAddress())
	y, err2 := netip.ParseAddr(b.GetAddress())
	return err == nil && err2 == nil && x.Is4() == y.Is4() // else malformed-address
}
