package facts

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/validate"
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

// InternalListenerExtension is the type of the bootstrap extension without which an Envoy has no internal listeners.
const InternalListenerExtension = "envoy.extensions.bootstrap.internal_listener.v3.InternalListener"

// HasInternalListeners reports whether the Envoy can have internal listeners: its bootstrap has the extension, or
// is not known.
func HasInternalListeners(p *validate.Pass) bool {
	return !p.BootstrapFacts.Given() || p.BootstrapFacts.HasExtension(InternalListenerExtension)
}
