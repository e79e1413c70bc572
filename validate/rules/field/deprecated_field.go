package field

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	annotationsv1 "github.com/envoyproxy/go-control-plane/envoy/annotations"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var deprecatedField = &validate.Rule{
	Code:     "deprecated-field",
	Severity: diag.Warning,
	Doc: `A field or an enum value is deprecated.

Envoy accepts the field, counts runtime.deprecated_feature_use, and logs "Using deprecated
option … This configuration will be removed from Envoy soon".

Some fields and values are disallowed by default, and Envoy rejects their use: an error. An
enum field that is not set can have such a default: api_type of ApiConfigSource,
collector_endpoint_version of ZipkinConfig ("Using the default now-deprecated value"), and
transport_api_version V2 of a gRPC service ("The v2 xDS major version has been removed").
The runtime key envoy.deprecated_features:NAME allows a disallowed field again; this rule
does not read it.`,
	Wants: func(md protoreflect.MessageDescriptor) bool {
		d := deprecationsOf(md)
		return len(d.fields)+len(d.values) > 0
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.ProtoReflect()
		d := deprecationsOf(m.Descriptor())
		for _, fd := range d.fields {
			if m.Has(fd) && counts(n) {
				reportDeprecated(p, n.Path().Field(string(fd.Name())), string(fd.Name()), replacement(fd.FullName()), isDisallowed(fd))
			}
		}
		for _, fd := range d.values {
			v := fd.Enum().Values().ByNumber(m.Get(fd).Enum())
			if v == nil || !isDeprecated(v) {
				continue
			}
			refused := isDisallowed(v) || refusesV2(n, fd)
			if !counts(n) && !(refused && isLookedAt(n)) {
				continue
			}
			path, what := n.Path().Field(string(fd.Name())), fmt.Sprintf("%s %s", fd.Name(), v.Name())
			if !m.Has(fd) {
				path, what = n.Path(), fmt.Sprintf("%s is not set, and its default value %s", fd.Name(), v.Name())
			}
			reportDeprecated(p, path, what, otherValues(fd.Enum()), refused)
		}
	},
}

// counts reports whether Envoy reads the node. It also returns false if the field that holds the node is
// deprecated, because the finding about this field is enough.
func counts(n *xds.Node) bool {
	if !isLookedAt(n) {
		return false
	}
	if n.Parent == nil {
		return true
	}
	fd := n.Parent.Message.ProtoReflect().Descriptor().Fields().ByName(n.Field().Name())
	return fd == nil || fd.FullName() != n.Field() || !isDeprecated(fd)
}

func isLookedAt(n *xds.Node) bool {
	return !facts.Inside(n, "envoy.config.core.v3.Metadata.typed_filter_metadata") && !facts.InRemovedTracer(n)
}

func isDeprecated(d protoreflect.Descriptor) bool {
	options, _ := d.Options().(interface{ GetDeprecated() bool })
	return options != nil && options.GetDeprecated()
}

// refusesV2 reports whether a field is the API version of gRPC calls. In such a field, Envoy refuses V2 ("The v2
// xDS major version has been removed"). In an ext_authz filter by HTTP, V2 is only deprecated.
func refusesV2(n *xds.Node, fd protoreflect.FieldDescriptor) bool {
	if m, ok := n.Message.(*authzv3.ExtAuthz); ok && m.GetHttpService() != nil {
		return false
	}
	return fd.Name() == "transport_api_version"
}

// otherValues returns the values of an enum that are not deprecated.
func otherValues(ed protoreflect.EnumDescriptor) string {
	var names []string
	for i := range ed.Values().Len() {
		if v := ed.Values().Get(i); !isDeprecated(v) {
			names = append(names, string(v.Name()))
		}
	}
	return strings.Join(names, " or ")
}

func reportDeprecated(p *validate.Pass, path xds.Path, what, instead string, disallowed bool) {
	f := validate.Finding{Path: path, Message: what + " is deprecated", Error: disallowed}
	if disallowed {
		f.Message += ": " + p.Resource.Refusal()
	}
	if f.Help = "use " + instead; instead == "" {
		f.Help = "remove it: the API names no replacement"
	}
	p.Report(f)
}

// deprecations holds the deprecated fields of a message, and its fields of an enum type that has a deprecated
// value.
type deprecations struct {
	fields, values []protoreflect.FieldDescriptor
}

// deprecationsOf returns the deprecations of a message type. It caches them, because the rule asks once for each
// message.
func deprecationsOf(md protoreflect.MessageDescriptor) deprecations {
	if known, ok := deprecationsByMessage.Load(md); ok {
		return known.(deprecations)
	}
	var d deprecations
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if isDeprecated(fd) {
			d.fields = append(d.fields, fd)
		}
		if fd.Enum() == nil || fd.IsList() {
			continue
		}
		for j := range fd.Enum().Values().Len() {
			if isDeprecated(fd.Enum().Values().Get(j)) {
				d.values = append(d.values, fd)
				break
			}
		}
	}
	deprecationsByMessage.Store(md, d)
	return d
}

var deprecationsByMessage sync.Map // maps protoreflect.MessageDescriptor to deprecations

// isDisallowed reports whether Envoy refuses a deprecated field or enum value. The runtime of an Envoy can allow
// it.
func isDisallowed(d protoreflect.Descriptor) bool {
	extension := annotationsv1.E_DisallowedByDefault
	if _, ok := d.(protoreflect.EnumValueDescriptor); ok {
		extension = annotationsv1.E_DisallowedByDefaultEnum
	}
	disallowed, _ := proto.GetExtension(d.Options(), extension).(bool)
	return disallowed
}

//go:embed deprecated.txt
var deprecatedText string

var replacements = sync.OnceValue(func() map[protoreflect.FullName]string {
	byField := make(map[protoreflect.FullName]string)
	for line := range strings.Lines(deprecatedText) {
		if field, instead, ok := strings.Cut(strings.TrimSpace(line), " "); ok && field != "#" {
			byField[protoreflect.FullName(field)] = instead
		}
	}
	return byField
})

// replacement returns the field that replaces a deprecated field, as the API says; "" if the API names none.
func replacement(field protoreflect.FullName) string { return replacements()[field] }
