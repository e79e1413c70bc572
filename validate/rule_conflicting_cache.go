package validate

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var conflictingCache = &Rule{
	Code: "conflicting-cache",
	Doc: `Two caches of one name have different settings.

DNS caches of the dynamic forward proxy, and caches of alternate protocols, belong to
the whole Envoy: a filter and its cluster share one by its name. Envoy refuses the
second that differs ("config specified DNS cache 'x' with different settings"), in
however small a thing.`,
	Gather: []protoreflect.FullName{
		"envoy.config.core.v3.AlternateProtocolsCacheOptions",
		"envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig",
	},
	Snapshot: func(p *Pass) {
		type key struct {
			message protoreflect.FullName
			name    string
		}
		first := make(map[key]Met)
		for _, m := range p.Gathered {
			name := m.Node.Message.(interface{ GetName() string }).GetName()
			k := key{m.Node.Name(), name}
			other, again := first[k]
			switch {
			case !again:
				first[k] = m
			case !proto.Equal(m.Node.Message, other.Node.Message):
				p.Report(Finding{
					Resource: m.Resource,
					Path:     m.Node.Path().Field("name"),
					Message:  fmt.Sprintf("cache %q has other settings here than in %s", name, other.Resource.Key),
					Help:     "write the same settings in both places, or name them differently",
					Related:  related(other.Resource, other.Node.Path().Field("name"), "the first"),
				})
			}
		}
	},
}
