package listener

import (
	"fmt"
	"net/netip"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var listenerAddress = &validate.Rule{
	Code: "listener-address",
	Doc: `A listener's address is missing, invalid or unsupported.

A listener needs an address ("address is necessary"), an internal listener has none
("address should not be used when an internal listener config is provided") and
needs the bootstrap extension envoy.bootstrap.internal_listener; an
envoy_internal_address is for endpoints only. All addresses of a listener are of one
kind, TCP or UDP ("has different socket type"); an additional address without address
aborts Envoy ("panic: unset oneof").

ipv4_compat goes with :: or an IPv4-mapped address only; Envoy looks at the main
address, whichever address says it. An IPv4-mapped address without it can't be bound
("Invalid argument").

An api_listener is for Envoy Mobile: the released binary refuses a static one ("missing
the API listener extension"), and leaves one that comes by LDS out, with no more than a
line in its log.`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		switch {
		case l.GetApiListener() != nil:
			checkAPIListener(p, l)
		case l.GetInternalListener() != nil:
			checkInternalListener(p, l)
		case l.GetAddress() == nil:
			p.Report(validate.Finding{Message: "listener has no address", Help: "add address, or internal_listener for connections from inside Envoy"})
		default:
			checkAddresses(p, l)
		}
	},
}

func checkAPIListener(p *validate.Pass, l *listenerv3.Listener) {
	if l.GetInternalListener() != nil {
		p.Report(validate.Finding{
			Path:    "internal_listener",
			Message: "api_listener and internal_listener exclude each other",
			Help:    "keep the one that the listener is",
		})
		return
	}
	f := validate.Finding{
		Path: "api_listener", Warning: true,
		Message: "the released Envoy has no API listeners: it leaves this one out",
		Help:    "give the listener an address and filter_chains",
	}
	if p.Resource.DeliveredBy == xds.StaticResources {
		f.Warning, f.Message = false, "the released Envoy has no API listeners: it does not start"
	}
	p.Report(f)
}

const internalListenerExtension = "envoy.extensions.bootstrap.internal_listener.v3.InternalListener"

func checkInternalListener(p *validate.Pass, l *listenerv3.Listener) {
	for _, a := range addresses(l) {
		p.Report(validate.Finding{Path: a.path, Message: "an internal listener can have no address", Help: "remove it: endpoints reach the listener by its name"})
		return
	}
	if !p.BootstrapFacts.HasExtension(internalListenerExtension) {
		p.Report(validate.Finding{
			Path:    "internal_listener",
			Message: "an internal listener needs the bootstrap extension envoy.bootstrap.internal_listener",
			Help:    "add it to bootstrap_extensions, and say which bootstrap Envoy has",
			Warning: !p.BootstrapFacts.Given(),
		})
	}
}

func checkAddresses(p *validate.Pass, l *listenerv3.Listener) {
	kind := l.GetAddress().GetSocketAddress().GetProtocol()
	for _, a := range addresses(l) {
		switch {
		case a.Address == nil:
			p.Report(validate.Finding{Path: a.path, Message: "additional address has no address: Envoy crashes", Help: "add the address, or remove the entry"})
		case a.GetEnvoyInternalAddress() != nil:
			p.Report(validate.Finding{
				Path:    a.path.Field("envoy_internal_address"),
				Message: "envoy_internal_address is for endpoints, no listener can listen there",
				Help:    "set internal_listener in place of the address",
			})
			return // what else is wrong follows from it
		case a.GetSocketAddress().GetProtocol() != kind:
			p.Report(validate.Finding{
				Path:    a.path,
				Message: fmt.Sprintf("additional address is for %s, the listener's own for %s", a.GetSocketAddress().GetProtocol(), kind),
				Help:    "make it a listener of its own",
			})
		default:
			checkCompat(p, l, a)
		}
	}
}

// checkCompat checks the use of IPv4 by an IPv6 socket.
func checkCompat(p *validate.Pass, l *listenerv3.Listener, a placedAddress) {
	s := a.GetSocketAddress()
	if s == nil {
		return
	}
	own, err := netip.ParseAddr(s.GetAddress())
	if err == nil && own.Is4In6() && !s.GetIpv4Compat() && bindsToPort(l) {
		p.Report(validate.Finding{
			Path:    a.path.Field("socket_address").Field("address"),
			Message: fmt.Sprintf("address %q can't be bound without ipv4_compat", s.GetAddress()),
			Help:    fmt.Sprintf("write it as %s, or set ipv4_compat", own.Unmap()),
		})
		return
	}
	first := l.GetAddress().GetSocketAddress().GetAddress()
	main, err := netip.ParseAddr(first)
	if !s.GetIpv4Compat() || err != nil || main == netip.IPv6Unspecified() || main.Is4In6() {
		return
	}
	p.Report(validate.Finding{
		Path:    a.path.Field("socket_address").Field("ipv4_compat"),
		Message: fmt.Sprintf("ipv4_compat with the listener's address %q", first),
		Help:    "only :: and IPv4-mapped addresses, such as ::ffff:10.0.0.1, can have it",
	})
}
