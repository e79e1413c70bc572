package extension

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// extensionPoint is a field that takes the configuration of an extension.
type extensionPoint struct {
	envoyapi.ExtensionPoint
	field protoreflect.FieldDescriptor
}

// extension is the configuration of an extension in an extension point.
type extension struct {
	// name is the name of the extension in the configuration. Most extension points accept any text.
	name string
	// config is nil if the extension has only a name.
	config *anypb.Any
	// path is the path of the extension, inner the path from the extension to config.
	path  func() xds.Path
	inner xds.Path
}

// at returns the path of config.
func (e extension) at() xds.Path { return e.path().Join(e.inner) }

// extensions returns the extensions in an extension point of the node's message. A message with a name and without
// a configuration counts as an extension, unless another field says where the configuration comes from.
func (s extensionPoint) extensions(n *xds.Node) (list []extension) {
	m := n.Message.ProtoReflect()
	if !m.Has(s.field) && s.field.Message().FullName() != "google.protobuf.Any" {
		return nil
	}
	path := func() xds.Path { return n.Path().Field(string(s.field.Name())) }
	switch {
	case s.field.IsMap():
		m.Get(s.field).Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			list = append(list, extensionIn(v.Message(), k.String(), func() xds.Path { return path().Key(k.String()) }))
			return true
		})
	case s.field.IsList():
		for i := range m.Get(s.field).List().Len() {
			list = append(list, extensionIn(m.Get(s.field).List().Get(i).Message(), "", func() xds.Path { return path().Index(i) }))
		}
	case m.Has(s.field):
		list = append(list, extensionIn(m.Get(s.field).Message(), nameOf(m), path))
	case s.field.Message().FullName() == "google.protobuf.Any" && !discovered(m, s.field):
		list = append(list, extension{name: nameOf(m), path: n.Path})
	}
	return list
}

// extensionIn returns the extension in m. m is an Any, and name is the name in the message around it; or m is a
// message that holds a name and an Any.
func extensionIn(m protoreflect.Message, name string, path func() xds.Path) extension {
	if a, ok := m.Interface().(*anypb.Any); ok {
		return extension{name: name, config: a, path: path}
	}
	holder, _ := m.Interface().(interface{ GetTypedConfig() *anypb.Any })
	return extension{name: nameOf(m), config: holder.GetTypedConfig(), path: path, inner: "typed_config"}
}

// nameOf returns the name of the extension that a message configures, or "".
func nameOf(m protoreflect.Message) string {
	for _, field := range []protoreflect.Name{"name", "provider_name"} {
		if fd := m.Descriptor().Fields().ByName(field); fd != nil && fd.Kind() == protoreflect.StringKind {
			return m.Get(fd).String()
		}
	}
	return ""
}

// discovered reports whether a message without a configuration gets it by discovery, or has another field of the
// same oneof instead.
func discovered(m protoreflect.Message, field protoreflect.FieldDescriptor) bool {
	if oneof := field.ContainingOneof(); oneof != nil && m.WhichOneof(oneof) != nil {
		return true
	}
	fd := m.Descriptor().Fields().ByName("config_discovery")
	return fd != nil && m.Has(fd)
}

// kind returns the noun for an extension of a category.
func kind(category string) string {
	if noun, ok := kinds[category]; ok {
		return noun
	}
	return "an extension of " + category
}

var kinds = map[string]string{
	"envoy.access_loggers":               "an access log",
	"envoy.clusters":                     "a cluster type",
	"envoy.compression.compressor":       "a compressor library",
	"envoy.compression.decompressor":     "a decompressor library",
	"envoy.filters.http":                 "an HTTP filter",
	"envoy.filters.http.upstream":        "an upstream HTTP filter",
	"envoy.filters.listener":             "a listener filter",
	"envoy.filters.network":              "a network filter",
	"envoy.filters.udp_listener":         "a UDP listener filter",
	"envoy.formatter":                    "a formatter",
	"envoy.health_checkers":              "a health checker",
	"envoy.load_balancing_policies":      "a load balancing policy",
	"envoy.network.dns_resolver":         "a DNS resolver",
	"envoy.resource_monitors":            "a resource monitor",
	"envoy.resource_monitors.proactive":  "a resource monitor named envoy.resource_monitors.global_downstream_max_connections",
	"envoy.retry_host_predicates":        "a retry host predicate",
	"envoy.retry_priorities":             "a retry priority",
	"envoy.tracers":                      "a tracer",
	"envoy.transport_sockets.downstream": "a transport socket of a listener",
	"envoy.transport_sockets.upstream":   "a transport socket of a cluster",
}
