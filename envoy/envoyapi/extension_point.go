package envoyapi

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// ExtensionPoint is a field that takes the configuration of an extension: an Any beside a
// name, a TypedExtensionConfig or a TransportSocket.
type ExtensionPoint struct {
	Field protoreflect.FullName
	// Category is the category of the accepted extensions; empty for none. CategoryAt returns the category if it
	// depends on the message around the field. Some categories have no extension.
	Category string
	// Also are further categories. Envoy searches them for an extension that Category lacks.
	Also []string
	// ByName means that the name selects the extension, and Envoy reads the configuration as the type of this
	// extension. Otherwise, the type of the configuration selects the extension, whatever its name.
	ByName bool
	// Bare means that the configuration may be missing.
	Bare bool
}

// CategoryAt returns the category of the extensions that an extension point of a Category accepts in the node's
// message. Transport sockets, certificate selectors and mappers, and HTTP filters have one category for downstream
// and one for upstream. Listener filters of UDP and of QUIC have their own categories. The name of a resource
// monitor decides whether the monitor is proactive. Other categories stay as they are.
func (v *Version) CategoryAt(n *xds.Node, category string) string {
	switch category {
	case "envoy.transport_sockets":
		if within(n, "envoy.config.listener.v3.FilterChain") {
			return "envoy.transport_sockets.downstream"
		}
		return "envoy.transport_sockets.upstream"
	case "envoy.tls.certificate_selectors", "envoy.tls.certificate_mappers":
		if !within(n, "envoy.config.listener.v3.FilterChain") {
			return "envoy.tls.upstream_" + category[len("envoy.tls."):]
		}
	case "envoy.resource_monitors":
		if m, ok := n.Message.(*overloadv3.ResourceMonitor); ok && v.isProactive(m.GetName()) {
			return "envoy.resource_monitors.proactive"
		}
	case "envoy.filters.http":
		if within(n, "envoy.extensions.filters.http.router.v3.Router.upstream_http_filters") ||
			within(n, "envoy.extensions.upstreams.http.v3.HttpProtocolOptions.http_filters") {
			return "envoy.filters.http.upstream"
		}
	case "envoy.filters.listener":
		switch l, _ := xds.Enclosing[*listenerv3.Listener](n); {
		case l.GetAddress().GetSocketAddress().GetProtocol() != corev3.SocketAddress_UDP:
		case l.GetUdpListenerConfig().GetQuicOptions() != nil:
			return "envoy.filters.quic_listener"
		default:
			return "envoy.filters.udp_listener"
		}
	}
	return category
}

func (v *Version) isProactive(monitor string) bool {
	_, ok := v.ExtensionNamed("envoy.resource_monitors.proactive", monitor)
	return ok
}

// within reports whether the node, or a message around the node, has a name, or stands in a field of the name.
func within(n *xds.Node, name protoreflect.FullName) bool {
	for ; n != nil; n = n.Parent {
		if n.Name() == name || n.Field() == name {
			return true
		}
	}
	return false
}

// ExtensionPoints returns the fields of the API that hold an extension's configuration and that Envoy reads
// when it loads a resource. Extensions in a matcher are not included, because they depend on the matched
// input.
func (v *Version) ExtensionPoints() []ExtensionPoint { return v.tables().points }

// ExtensionPointsOf returns the extension points of a message.
func (v *Version) ExtensionPointsOf(message protoreflect.FullName) []ExtensionPoint {
	return v.tables().pointsOf[message]
}

func pointsByMessage(points []ExtensionPoint) map[protoreflect.FullName][]ExtensionPoint {
	byMessage := make(map[protoreflect.FullName][]ExtensionPoint)
	for _, p := range points {
		byMessage[p.Field.Parent()] = append(byMessage[p.Field.Parent()], p)
	}
	return byMessage
}

func (r *reader) extensionPoints(file string) (points []ExtensionPoint) {
	for _, words := range r.rows(file, 2) {
		p := ExtensionPoint{Field: protoreflect.FullName(words[0])}
		if words[1] != "-" {
			p.Category = words[1]
		}
		words = words[2:]
		for len(words) > 0 && strings.HasPrefix(words[0], "+") {
			p.Also, words = append(p.Also, words[0][1:]), words[1:]
		}
		r.flags(file, words, flag{"by-name", &p.ByName}, flag{"bare", &p.Bare})
		points = append(points, p)
	}
	return points
}
