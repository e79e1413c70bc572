package listener

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	preferredv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/quic/server_preferred_address/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var preferredAddress = &validate.Rule{
	Code: "preferred-address",
	Doc: `A QUIC listener's preferred address is invalid.

The addresses of server_preferred_address_config must be IP addresses ("bad v4 server
preferred address") of the field's family ("wrong address type"). An address may have a port
only beside a dnat_address, its translation on the way ("port must be zero unless
'dnat_address' is set"), and the dnat_address itself has no port. This rule does not read
addresses from files.

In ipv4_address and ipv6_address Envoy accepts an address of the other family, and never
offers it to clients (a warning).`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.quic.server_preferred_address.v3.DataSourceServerPreferredAddressConfig",
		"envoy.extensions.quic.server_preferred_address.v3.FixedServerPreferredAddressConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		if l, _ := xds.Enclosing[*listenerv3.Listener](n); l != nil && facts.TransportOf(l) != facts.QUIC {
			return // reported by listener-options
		}
		at := n.Path()
		switch m := n.Message.(type) {
		case *preferredv3.FixedServerPreferredAddressConfig:
			checkFixedAddress(p, at, v4, m.GetIpv4Address(), m.GetIpv4Config())
			checkFixedAddress(p, at, v6, m.GetIpv6Address(), m.GetIpv6Config())
		case *preferredv3.DataSourceServerPreferredAddressConfig:
			checkSourcedAddress(p, at, v4, m.GetIpv4Config())
			checkSourcedAddress(p, at, v6, m.GetIpv6Config())
		}
	},
}

// ipFamily is the beginning of the names of the fields for an IP version.
type ipFamily string

const (
	v4 ipFamily = "ipv4"
	v6 ipFamily = "ipv6"
)

// checkIP reports a text that is not an IP address of the family. neverOffered means that no client gets the
// address, so that an address of the other family is only a warning.
func (f ipFamily) checkIP(p *validate.Pass, path xds.Path, text string, neverOffered bool) {
	ip, err := netip.ParseAddr(text)
	if err == nil && ip.Is4() == (f == v4) {
		return
	}
	p.Report(validate.Finding{
		Path: path, Warning: err == nil && neverOffered,
		Message: fmt.Sprintf("%q is not an IPv%c address", text, f[3]),
		Help:    "write the address that clients must use",
	})
}

func checkFixedAddress(p *validate.Pass, at xds.Path, f ipFamily, address string, c *preferredv3.FixedServerPreferredAddressConfig_AddressFamilyConfig) {
	path := at.Field(string(f) + "_config")
	switch {
	case c == nil && address == "":
		return
	case c == nil:
		f.checkIP(p, at.Field(string(f)+"_address"), address, true)
		return
	case c.GetAddress() == nil && c.GetDnatAddress() != nil:
		p.Report(validate.Finding{Path: path, Message: "dnat_address is set without address", Help: "add the address that clients must use"})
		return
	}
	for _, a := range []struct {
		*corev3.SocketAddress
		name   string
		noPort bool
		why    string
	}{
		{c.GetAddress(), "address", c.GetDnatAddress() == nil, "a port is allowed only beside a dnat_address"},
		{c.GetDnatAddress(), "dnat_address", true, "it has no port"},
	} {
		if a.SocketAddress == nil {
			continue
		}
		f.checkIP(p, path.Field(a.name).Field("address"), a.GetAddress(), false)
		if a.noPort && a.GetPortValue() != 0 {
			p.Report(validate.Finding{
				Path:    path.Field(a.name).Field("port_value"),
				Message: fmt.Sprintf("%s has port %d: %s", a.name, a.GetPortValue(), a.why),
				Help:    "set port_value: 0",
			})
		}
	}
}

func checkSourcedAddress(p *validate.Pass, at xds.Path, f ipFamily, c *preferredv3.DataSourceServerPreferredAddressConfig_AddressFamilyConfig) {
	path := at.Field(string(f) + "_config")
	for _, a := range []struct {
		*corev3.DataSource
		name string
	}{{c.GetAddress(), "address"}, {c.GetDnatAddress(), "dnat_address"}} {
		if text, ok := inline(a.DataSource); ok {
			f.checkIP(p, path.Field(a.name), text, false)
		}
	}
	if c.GetPort() == nil {
		return
	}
	text, ok := inline(c.GetPort())
	_, err := strconv.ParseUint(text, 10, 16)
	switch {
	case c.GetDnatAddress() == nil:
		p.Report(validate.Finding{Path: path.Field("port"), Message: "port needs dnat_address", Help: "remove the port, or add the dnat_address"})
	case ok && err != nil:
		p.Report(validate.Finding{Path: path.Field("port"), Message: fmt.Sprintf("%q is not a valid port", text), Help: "write a number from 0 to 65535"})
	}
}

// inline returns the inline content of a data source without white space around it. ok is false for a file or an
// environment variable.
func inline(d *corev3.DataSource) (text string, ok bool) {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_InlineString:
		return strings.TrimSpace(s.InlineString), true
	case *corev3.DataSource_InlineBytes:
		return strings.TrimSpace(string(s.InlineBytes)), true
	}
	return "", false
}
