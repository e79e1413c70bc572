package listener

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var duplicateAddress = &validate.Rule{
	Code: "duplicate-address",
	Doc: `Two listeners have the same address.

Envoy rejects the second listener ("has duplicate address … as existing listener"). It
compares all addresses of a listener: IP address in any spelling, port, protocol and network
namespace, or the path of a pipe; bind_to_port and enable_reuse_port make no difference. A
static listener of the bootstrap counts as the first one. So does the admin interface
("Address already in use"), which also conflicts with 0.0.0.0.

0.0.0.0 and 127.0.0.1 are different addresses, UDP and TCP are separate, and port 0 is a new
port each time. But without enable_reuse_port the kernel gives a port of 0.0.0.0 to one
socket only: Envoy accepts both listeners, and one of them never listens (a warning).`,
	Resource: func(p *validate.LookupPass) {
		validate.Each(p, addressesOf(p.Resource, p.IsFirst), func(a boundAddress) {
			switch first, _ := listenersAt.First(p.Snapshot, a.socket.Key()); {
			case first == a:
			case first.Resource != a.Resource:
				p.Report(validate.Finding{
					Path:    a.Path,
					Message: fmt.Sprintf("two listeners have the address %s", a.socket),
					Help:    "give each listener its own address, or use several filter chains in one listener",
					Related: facts.Related(first.Resource, first.Path, fmt.Sprintf("the other one is %s", first.Key)),
				})
			case a.alone:
				// Without SO_REUSEPORT, the second socket of the listener can't be bound.
				reportNeverListens(&p.Pass, a, facts.Related(a.Resource, first.Path, "the first one is here"))
			}
			checkWildcard(p, a)
			checkBootstrapSockets(p, a)
		})
	},
}

// listenersAt maps the key of a socket to the addresses of listeners with this socket.
var listenersAt = validate.NewIndex([]*xds.Type{xds.Listener}, func(s *xds.Snapshot, r *xds.Resource, add func(string, boundAddress)) {
	for _, a := range addressesOf(r, func() bool { return s.Lookup(r.Type, r.Name) == r }) {
		add(a.socket.Key(), a)
	}
})

// boundAddress is one address of a listener.
type boundAddress struct {
	facts.Place
	socket xds.Socket
	// binds is false for a listener with bind_to_port: false, which only gets connections from other listeners.
	binds bool
	// alone means that the listener binds the address without SO_REUSEPORT: only one socket can have the address.
	alone bool
}

// addressesOf returns the addresses of a listener; none for a resource that is not the first of its name.
func addressesOf(r *xds.Resource, isFirst func() bool) (list []boundAddress) {
	l, ok := r.Message().(*listenerv3.Listener)
	if !ok || r.Name != "" && !isFirst() {
		return nil // reported by duplicate-resource
	}
	add := func(a *corev3.Address, path xds.Path) {
		if s, ok := xds.SocketOf(a); ok {
			list = append(list, boundAddress{facts.Place{Resource: r, Path: path}, s, bindsToPort(l), bindsToPort(l) && !reusesPort(l)})
		}
	}
	add(l.GetAddress(), "address")
	for i, a := range l.GetAdditionalAddresses() {
		add(a.GetAddress(), xds.Path("additional_addresses").Index(i).Field("address"))
	}
	return list
}

// checkWildcard reports a listener if another listener binds the same port on all addresses, unless both set
// SO_REUSEPORT.
func checkWildcard(p *validate.LookupPass, a boundAddress) {
	wildcard, ok := a.socket.Wildcard()
	if !ok || wildcard == a.socket || !a.binds {
		return
	}
	all, taken := listenersAt.First(p.Snapshot, wildcard.Key())
	if taken && all.binds && (a.alone || all.alone) {
		reportNeverListens(&p.Pass, a, facts.Related(all.Resource, all.Path, fmt.Sprintf("%s listens on this port of all addresses", all.Key)))
	}
}

func reportNeverListens(p *validate.Pass, a boundAddress, other []diag.Related) {
	p.Report(validate.Finding{
		Resource: a.Resource, Path: a.Path, Warning: true,
		Message: fmt.Sprintf("two listeners use the address %s without enable_reuse_port: one of them never listens", a.socket),
		Help:    "change the port, or remove enable_reuse_port: false",
		Related: other,
	})
}

// checkBootstrapSockets reports an address that the bootstrap uses for a listener or for the admin interface.
func checkBootstrapSockets(p *validate.LookupPass, a boundAddress) {
	if p.BootstrapFacts.Has(xds.Listener, a.Name) && a.DeliveredBy != xds.StaticResources {
		return // reported by shadowed-by-bootstrap
	}
	for _, k := range p.BootstrapFacts.Sockets() {
		f := validate.Finding{
			Resource: a.Resource, Path: a.Path,
			Message: fmt.Sprintf("address %s is in use by %s of the bootstrap", a.socket, xds.Key{Type: xds.Listener, Name: k.Listener}),
			Help:    "choose another address",
		}
		switch {
		case !k.Admin && p.Snapshot.FromBootstrap():
			continue // listenersAt includes the listeners of the bootstrap
		case k.Admin:
			if !a.binds || !overlap(k.Socket, a.socket) {
				continue
			}
			f.Message = fmt.Sprintf("address %s conflicts with the admin interface of the bootstrap at %s", a.socket, k.Socket)
		case k.Socket != a.socket:
			continue
		}
		p.Report(f)
		return
	}
}

// overlap reports whether two sockets have the same port and share an address. Either socket may have all
// addresses.
func overlap(a, b xds.Socket) bool {
	allOfA, ok := a.Wildcard()
	allOfB, okB := b.Wildcard()
	return ok && okB && allOfA == allOfB && (a == b || a == allOfA || b == allOfB)
}
