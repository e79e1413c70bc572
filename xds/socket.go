package xds

import (
	"fmt"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// Socket is the part of a listener's address that Envoy compares.
type Socket struct {
	protocol  corev3.SocketAddress_Protocol
	address   netip.AddrPort
	namespace string
	pipe      string
}

func (s Socket) String() string {
	switch {
	case s.pipe != "":
		return s.pipe
	case s.protocol == corev3.SocketAddress_UDP:
		return "udp:" + s.address.String()
	default:
		return s.address.String()
	}
}

// Key returns a text that only equal sockets share.
func (s Socket) Key() string {
	return fmt.Sprintf("%d %s %q %q", s.protocol, s.address, s.namespace, s.pipe)
}

// SocketOf returns the socket of an address. ok is false if the address has no fixed socket: a host name, an empty
// path of a pipe, an internal address, or port 0, for which Envoy takes any free port.
func SocketOf(a *corev3.Address) (socket Socket, ok bool) {
	if pipe := a.GetPipe(); pipe != nil {
		return Socket{pipe: pipe.GetPath()}, pipe.GetPath() != ""
	}
	s := a.GetSocketAddress()
	ip, err := netip.ParseAddr(s.GetAddress())
	if err != nil || s.GetPortValue() == 0 || s.GetPortValue() > 65535 {
		return Socket{}, false
	}
	return Socket{
		protocol:  s.GetProtocol(),
		address:   netip.AddrPortFrom(ip, uint16(s.GetPortValue())),
		namespace: s.GetNetworkNamespaceFilepath(),
	}, true
}

// Sockets returns the fixed sockets (SocketOf) that a listener listens on.
func Sockets(l *listenerv3.Listener) []Socket {
	var list []Socket
	add := func(a *corev3.Address) {
		if s, ok := SocketOf(a); ok {
			list = append(list, s)
		}
	}
	add(l.GetAddress())
	for _, a := range l.GetAdditionalAddresses() {
		add(a.GetAddress())
	}
	return list
}

// Wildcard returns the socket of the same port on all addresses of the same IP version. ok is false for a pipe.
func (s Socket) Wildcard() (socket Socket, ok bool) {
	if s.pipe != "" {
		return Socket{}, false
	}
	all := netip.IPv4Unspecified()
	if s.address.Addr().Is6() {
		all = netip.IPv6Unspecified()
	}
	s.address = netip.AddrPortFrom(all, s.address.Port())
	return s, true
}
