package transition

import (
	"fmt"
	"strings"

	"xdspub/xds"
)

var portInUse = &Rule{
	Code: "port-in-use",
	Doc: `A listener needs a new socket on a port that is in use, without SO_REUSEPORT.

With enable_reuse_port, the default, a listener gets new sockets whenever it needs them. Without
it Envoy can only pass on existing sockets, to the listener's next version or to a listener that
replaces it, and only if all addresses and socket options (socket_options, freebind, transparent,
tcp_keepalive, tcp_fast_open_queue_length) stay the same. Otherwise Envoy rejects the listener
("has duplicate address", "cannot bind … Address already in use"). The second error comes after
the old listener is removed: then nothing serves the port. 0.0.0.0 and 127.0.0.1 conflict with
each other.`,
	Run: func(p *Pass) error {
		s, err := socketsOf(p)
		if err != nil {
			return err
		}
		for _, l := range s.listeners {
			if o := s.inTheWay(l); o != nil {
				p.Report(Finding{
					Resource: l.Resource, Path: "address",
					Message: fmt.Sprintf("listener %q needs a new socket at %s, but %s and enable_reuse_port is off: Envoy would reject it",
						l.Name, l.where(), o.who(l)),
					Help: newSocketHelp,
				})
			}
		}
		return nil
	},
}

// inTheWay returns a published listener that still has a port of l when l needs a new socket, unless both set
// SO_REUSEPORT. It returns nil if no listener is in the way.
func (s *sockets) inTheWay(l *listening) *listening {
	own := s.old[l.Name]
	if own != nil && own.reusesPort() != l.reusesPort() || s.keeps(l) != nil {
		return nil // reuse-port-changed reports l, or l needs no new socket
	}
	if own != nil && !l.reusesPort() && (own.shares(l) || own.overlaps(l)) {
		return own
	}
	if g := s.leave.first(l, func(g *listening) bool { return !(g.reusesPort() && l.reusesPort()) && g.overlaps(l) }); g != nil {
		return g
	}
	if s.waits[l.Name] > 0 {
		return nil // Envoy gets an earlier update in which the listener leaves the port
	}
	return s.ran.first(l, func(o *listening) bool {
		return o.Name != l.Name && !(o.reusesPort() && l.reusesPort()) && o.overlaps(l) && !s.new[o.Name].overlaps(l)
	})
}

// where returns the addresses of a listener, for a message.
func (l *listening) where() string {
	list := make([]string, len(l.addresses))
	for i, a := range l.addresses {
		s, _ := xds.SocketOf(a.Address)
		list[i] = s.String()
	}
	return strings.Join(list, ", ")
}

// who describes the listener l that is in the way of the listener of, for a message.
func (l *listening) who(of *listening) string {
	if l.Name == of.Name {
		return "its running version has one with other addresses or options"
	}
	return fmt.Sprintf("listener %q, which is removed, has one", l.Name)
}
