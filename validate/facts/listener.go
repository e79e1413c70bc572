package facts

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// Transport is what reaches a listener, which decides what it can have.
type Transport int

const (
	// Connections of TCP, of a pipe, or from another listener of the same Envoy.
	Connections Transport = iota
	// Datagrams of UDP.
	Datagrams
	// QUIC is the one protocol over UDP that makes connections.
	QUIC
	// LibraryCalls of a program around Envoy: nothing of the rest is looked at.
	LibraryCalls
)

// TransportOf returns what reaches a listener.
func TransportOf(l *listenerv3.Listener) Transport {
	switch {
	case l.GetApiListener() != nil:
		return LibraryCalls
	case l.GetInternalListener() != nil || l.GetAddress().GetSocketAddress().GetProtocol() != corev3.SocketAddress_UDP:
		return Connections
	case l.GetUdpListenerConfig().GetQuicOptions() != nil:
		return QUIC
	default:
		return Datagrams
	}
}
