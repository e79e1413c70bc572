package listener

import (
	"fmt"
	"net/netip"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var listenerAddress = &validate.Rule{
	Code: "listener-address",
	Doc: `A listener's address is missing, invalid or unsupported.

A listener needs an address ("address is necessary"). An internal listener must not have one
("address should not be used when an internal listener config is provided"), and needs the
bootstrap extension envoy.bootstrap.internal_listener; envoy_internal_address is for
endpoints only. All addresses of a listener must have the same protocol, TCP or UDP ("has
different socket type"). An additional address without an address crashes Envoy ("panic:
unset oneof").

ipv4_compat works with :: or an IPv4-mapped address only; Envoy checks the main address, for
additional ones too. An IPv4-mapped address needs ipv4_compat ("Invalid argument").

api_listener is for Envoy Mobile. The released binary rejects a static one ("missing the API
listener extension"), and skips one from LDS with only a line in its log.`,
	Checks: []diag.Check{
		{Name: "additional-address", Summary: "An additional address is empty or of another protocol."},
		{Name: "api-listener", Summary: "The released Envoy has no API listeners."},
		{Name: "internal-address", Summary: "A listener that is not internal has an envoy_internal_address."},
		{Name: "internal-extension", Summary: "An internal listener needs a bootstrap extension."},
		{Name: "internal-listener", Summary: "An internal listener has an address, or is an API listener too."},
		{Name: "ipv4-compat", Summary: "ipv4_compat and the address do not fit."},
		{Name: "no-address", Summary: "A listener has no address."},
	},
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		switch {
		case l.GetApiListener() != nil:
			checkAPIListener(p, l)
		case l.GetInternalListener() != nil:
			checkInternalListener(p, l)
		case l.GetAddress() == nil:
			p.Report(validate.Finding{Check: "no-address", Message: "the listener has no address", Help: "add address, or " +
				"internal_listener for connections from inside Envoy"})
		default:
			checkAddresses(p, l)
		}
	},
}

func checkAPIListener(p *validate.Pass, l *listenerv3.Listener) {
	if l.GetInternalListener() != nil {
		p.Report(validate.Finding{
			Check:   "internal-listener",
			Path:    "internal_listener",
			Message: "both api_listener and internal_listener are set",
			Help:    "keep one of them",
		})
		return
	}
	f := validate.Finding{
		Check: "api-listener",
		Path:  "api_listener", Warning: true,
		Message: "the released Envoy has no API listeners: it skips this one",
		Help:    "replace api_listener by an address and filter_chains",
	}
	if p.Resource.DeliveredBy == xds.StaticResources {
		f.Warning, f.Message = false, "the released Envoy has no API listeners: it does not start"
	}
	p.Report(f)
}

func checkInternalListener(p *validate.Pass, l *listenerv3.Listener) {
	for _, a := range addresses(l) {
		p.Report(validate.Finding{Check: "internal-listener", Path: a.path, Message: "an internal listener can't " +
			"have an address", Help: "remove the address: endpoints refer to the listener by its name"})
		return
	}
	if !p.BootstrapFacts.HasExtension(facts.InternalListenerExtension) {
		help := "add it to bootstrap_extensions, and name that bootstrap with --bootstrap"
		if p.Resource.OfBootstrap() {
			help = "add it to bootstrap_extensions"
		}
		p.Report(validate.Finding{
			Check:   "internal-extension",
			Path:    "internal_listener",
			Message: "an internal listener needs the bootstrap extension envoy.bootstrap.internal_listener",
			Help:    help,
			Warning: !p.BootstrapFacts.Given(),
		})
	}
}

func checkAddresses(p *validate.Pass, l *listenerv3.Listener) {
	kind := l.GetAddress().GetSocketAddress().GetProtocol()
	for _, a := range addresses(l) {
		switch {
		case a.Address == nil:
			p.Report(validate.Finding{Check: "additional-address", Path: a.path, Message: "the additional address is empty: " +
				"Envoy crashes", Help: "add the address, or remove the entry"})
		case a.GetEnvoyInternalAddress() != nil:
			p.Report(validate.Finding{
				Check:   "internal-address",
				Path:    a.path.Field("envoy_internal_address"),
				Message: "a listener can't have an envoy_internal_address: it is for endpoints",
				Help:    "replace the address by internal_listener",
			})
			return // such an address has other faults, too
		case a.GetSocketAddress().GetProtocol() != kind:
			p.Report(validate.Finding{
				Check:   "additional-address",
				Path:    a.path,
				Message: fmt.Sprintf("the additional address uses %s, the listener's address %s", a.GetSocketAddress().GetProtocol(), kind),
				Help:    "use the same protocol, or write a second listener",
			})
		default:
			checkCompat(p, l, a)
		}
	}
}

// checkCompat checks ipv4_compat and IPv4 addresses in IPv6 form.
func checkCompat(p *validate.Pass, l *listenerv3.Listener, a placedAddress) {
	s := a.GetSocketAddress()
	if s == nil {
		return
	}
	own, err := netip.ParseAddr(s.GetAddress())
	if err == nil && own.Is4In6() && !s.GetIpv4Compat() && bindsToPort(l) {
		p.Report(validate.Finding{
			Check:   "ipv4-compat",
			Path:    a.path.Field("socket_address").Field("address"),
			Message: fmt.Sprintf("Envoy can't bind the address %q without ipv4_compat", s.GetAddress()),
			Help:    fmt.Sprintf("write %s, or set ipv4_compat", own.Unmap()),
		})
		return
	}
	first := l.GetAddress().GetSocketAddress().GetAddress()
	main, err := netip.ParseAddr(first)
	if !s.GetIpv4Compat() || err != nil || main == netip.IPv6Unspecified() || main.Is4In6() {
		return
	}
	p.Report(validate.Finding{
		Check:   "ipv4-compat",
		Path:    a.path.Field("socket_address").Field("ipv4_compat"),
		Message: fmt.Sprintf("the listener's address %q does not support ipv4_compat", first),
		Help:    "remove it, or use :: or an IPv4-mapped address such as ::ffff:10.0.0.1",
	})
}
