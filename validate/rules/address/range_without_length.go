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

The length is 0 then, and the range is every address, whichever address it begins with:
an RBAC policy for 10.0.0.1 is one for the world. Envoy says nothing. For one address
the prefix_len is 32, or 128 of IPv6; for every address write prefix_len: 0.`,
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
			Message: fmt.Sprintf("range of address %q has no prefix_len: it is every address", address),
			Help:    fmt.Sprintf("for this address alone, add prefix_len: %d", ip.BitLen()),
		})
	},
}
