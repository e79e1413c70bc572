package facts

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/validate"
)

// Transport is the kind of traffic of a listener. The kind decides which settings a listener can have.
type Transport int

const (
	// Connections come by TCP, by a pipe, or from another listener of the same Envoy.
	Connections Transport = iota
	// Datagrams come by UDP.
	Datagrams
	// QUIC has connections over UDP.
	QUIC
	// LibraryCalls come from the program that embeds Envoy (api_listener). Envoy ignores the other settings of such
	// a listener.
	LibraryCalls
)

// TransportOf returns the transport of a listener.
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

// InternalListenerExtension is the type of a bootstrap extension. Without the extension, an Envoy has no internal
// listeners.
const InternalListenerExtension = "envoy.extensions.bootstrap.internal_listener.v3.InternalListener"

// HasInternalListeners reports whether the Envoy may have internal listeners: the bootstrap has the extension, or
// is unknown.
func HasInternalListeners(p *validate.Pass) bool {
	return !p.BootstrapFacts.Given() || p.BootstrapFacts.HasExtension(InternalListenerExtension)
}
