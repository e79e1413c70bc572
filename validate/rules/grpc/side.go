package grpc

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate/facts"
	"xdspub/xds"
)

const managerType protoreflect.FullName = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"

// side tells whether a gRPC client or a gRPC server uses a connection manager.
type side int

const (
	neither side = iota // gRPC ignores the connection manager
	client
	server
)

// sideOf returns the side that uses the node, or the message around the node.
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

// typeText returns the words for a type in a message of a finding. An empty name stands for a missing message.
func typeText(is protoreflect.FullName) string {
	if is == "" {
		return "no message"
	}
	return "a message of type " + string(is)
}

// unmatchable returns the field of a filter chain match because of which gRPC matches no connection, or "".
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
