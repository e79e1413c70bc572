package address

import (
	"fmt"
	"net/netip"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var rangeWithoutLength = &validate.Rule{
	Code:     "range-without-length",
	Severity: diag.Warning,
	Doc: `An address range has no prefix_len, and matches every address.

Without prefix_len the length is 0, and the range matches every address: an RBAC policy for
10.0.0.1 then applies to the whole world. Envoy accepts this without a warning. Write
prefix_len: 32 for one IPv4 address and 128 for one IPv6 address; write prefix_len: 0 if
you mean every address.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.CidrRange", "xds.core.v3.CidrRange"},
	Node: func(p *validate.Pass, n *xds.Node) {
		var (
			address string
			length  *wrapperspb.UInt32Value
		)
		switch m := n.Message.(type) {
		case *corev3.CidrRange:
			address, length = m.GetAddressPrefix(), m.GetPrefixLen()
		case *xdscorev3.CidrRange:
			address, length = m.GetAddressPrefix(), m.GetPrefixLen()
		}
		ip, err := netip.ParseAddr(address)
		if length != nil || err != nil || ip.IsUnspecified() {
			return
		}
		p.Report(validate.Finding{
			Path:    n.Path(),
			Message: fmt.Sprintf("the range of address %q has no prefix_len: it matches every address", address),
			Help:    fmt.Sprintf("add prefix_len: %d to match this address only", ip.BitLen()),
		})
	},
}
