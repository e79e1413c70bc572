package grpc

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate/facts"
	"xdspub/xds"
)

const managerType protoreflect.FullName = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"

// side is who uses a connection manager.
type side int

const (
	neither side = iota // gRPC does not look at it
	client
	server
)

// sideOf returns who uses what a node is, or stands in.
func sideOf(n *xds.Node) side {
	switch {
	case facts.Inside(n, "envoy.config.listener.v3.Listener.api_listener"):
		return client
	case facts.Inside(n, "envoy.config.listener.v3.Listener"):
		chain, is := n.Message.(*listenerv3.FilterChain)
		if !is {
			chain, _ = xds.Enclosing[*listenerv3.FilterChain](n)
		}
		if chain != nil && unmatchable(chain.GetFilterChainMatch()) == "" {
			return server
		}
	}
	return neither
}

// typeText names a type in a message. An empty name stands for no message.
func typeText(is protoreflect.FullName) string {
	if is == "" {
		return "no message"
	}
	return "a message of type " + string(is)
}

// unmatchable returns the field by which gRPC matches no connection; "" for none.
func unmatchable(m *listenerv3.FilterChainMatch) string {
	switch transport := m.GetTransportProtocol(); {
	case m.GetDestinationPort().GetValue() != 0:
		return "destination_port"
	case len(m.GetServerNames()) > 0:
		return "server_names"
	case transport != "" && transport != "raw_buffer":
		return "transport_protocol"
	case len(m.GetApplicationProtocols()) > 0:
		return "application_protocols"
	}
	return ""
}
