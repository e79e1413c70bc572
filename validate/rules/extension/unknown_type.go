package extension

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var unknownType = &validate.Rule{
	Code: "unknown-type",
	Doc: `A typed configuration has an unknown type, or does not fit its type.

Envoy rejects the whole file, however deep in a resource the type is used ("could not find
@type"): types of the v2 API, of contrib extensions, and others that the released binary
does not contain. An extension without any type, or a TypedStruct whose type is unknown, has
its resource rejected ("Didn't find a registered implementation").

Envoy ignores a field of a TypedStruct that the type lacks; with such a field in its bootstrap,
Envoy does not start. Envoy skips an optional HTTP filter, its configuration for a route, or a
cluster specifier plugin, if a TypedStruct gives it an unknown type. It ignores the type of a
TypedStruct among a cluster's protocol options.`,
	Messages: []protoreflect.FullName{"google.protobuf.Any", "xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *anypb.Any:
			checkAny(p, n, m)
		case *xdstypev3.TypedStruct:
			checkTypedStruct(p, n, cmp.Or(n.OptionsType(), m.GetTypeUrl()))
		case *udpatypev1.TypedStruct:
			checkTypedStruct(p, n, cmp.Or(n.OptionsType(), m.GetTypeUrl()))
		}
	},
}

func checkAny(p *validate.Pass, n *xds.Node, a *anypb.Any) {
	f := validate.Finding{Path: n.Path(), Eager: true}
	switch {
	case a.GetTypeUrl() == "":
		if goesWithoutType(n) {
			return
		}
		f.Message = fmt.Sprintf("%s has no \"@type\"", n.Field().Name())
		f.Help = typeHelp(p.Envoy, n, a)
	case n.Err != nil && p.Envoy.Registry().Knows(a.GetTypeUrl()):
		f.Message = fmt.Sprintf("%s can't be read as %s: %v", n.Field().Name(), xds.NameInURL(a.GetTypeUrl()), n.Err)
	case n.Err != nil || !p.Envoy.Takes(xds.NameInURL(a.GetTypeUrl())):
		f.Message = fmt.Sprintf("unknown type %q", a.GetTypeUrl())
		suggestType(p.Envoy, &f, a.GetTypeUrl())
	default:
		return
	}
	p.Report(f)
}

// goesWithoutType reports whether Envoy accepts an Any without a type URL at the node: in an optional extension, in
// the configuration of a filter for a route, in typed_filter_metadata, and as the configuration of a Wasm plugin or
// of a dynamic module.
func goesWithoutType(n *xds.Node) bool {
	for n.Parent != nil && n.Parent.Name() == "google.protobuf.Any" {
		n = n.Parent // an Any may contain an Any
	}
	switch n.Field() {
	case "envoy.config.core.v3.Metadata.typed_filter_metadata", "envoy.config.route.v3.FilterConfig.config",
		"envoy.extensions.wasm.v3.PluginConfig.configuration", "envoy.extensions.wasm.v3.VmConfig.configuration":
		return true
	}
	return strings.Contains(string(n.Field()), ".dynamic_modules.") || isOptional(n)
}

// typeHelp returns the help for an Any without a type URL. If the name of the extension is known, it names the type
// of this extension.
func typeHelp(v *envoyapi.Version, n *xds.Node, a *anypb.Any) string {
	for holder, depth := n.Parent, 0; holder != nil && depth < 2; holder, depth = holder.Parent, depth+1 {
		fields := holder.Message.ProtoReflect().Descriptor().Fields()
		for _, point := range v.ExtensionPointsOf(holder.Name()) {
			s := extensionPoint{point, fields.ByName(point.Field.Name())}
			for _, e := range s.extensions(holder) {
				if found, ok := v.ExtensionNamed(v.CategoryAt(holder, s.Category), e.name); ok && e.config == a && found.Config != "" {
					return fmt.Sprintf("write \"@type\": %s%s", xds.URLPrefix, found.Config)
				}
			}
		}
	}
	return `write "@type": type.googleapis.com/… with the message of the extension`
}

// isOptional reports whether the Any at the node configures an optional part: Envoy leaves out the part if it does
// not know the type.
func isOptional(n *xds.Node) bool {
	switch m := n.Parent.Message.(type) {
	case *hcmv3.HttpFilter:
		return m.GetIsOptional()
	case *routev3.FilterConfig:
		return m.GetIsOptional()
	case *corev3.TypedExtensionConfig:
		plugin, at := xds.Enclosing[*routev3.ClusterSpecifierPlugin](n.Parent)
		return at != nil && at == n.Parent.Parent && plugin.GetIsOptional()
	}
	return false
}

// goesUnknown reports whether Envoy accepts an unknown type at the node: in an optional part, or in a load
// balancing policy if the list has another policy that Envoy knows.
func goesUnknown(v *envoyapi.Version, n *xds.Node) bool {
	config := n.Parent.Parent // the message around the Any
	optional := false
	switch m := config.Message.(type) {
	case *hcmv3.HttpFilter:
		optional = m.GetIsOptional()
	case *routev3.FilterConfig:
		optional = m.GetIsOptional()
	case *corev3.TypedExtensionConfig:
		if config.Parent == nil { // an extension config that is a resource
			return false
		}
		switch m := config.Parent.Message.(type) {
		case *routev3.ClusterSpecifierPlugin:
			optional = m.GetIsOptional()
		case *clusterv3.LoadBalancingPolicy_Policy:
			policies, _ := xds.Enclosing[*clusterv3.LoadBalancingPolicy](config.Parent)
			picked, _ := v.PickPolicy(policies)
			return picked != nil && picked != m
		}
	}
	return optional && !v.Holds(xds.PayloadType(n.Parent.Message.(*anypb.Any)))
}

func checkTypedStruct(p *validate.Pass, n *xds.Node, url string) {
	if facts.Inside(n, "envoy.config.core.v3.Metadata.typed_filter_metadata") || goesUnknown(p.Envoy, n) {
		return
	}
	if (url == "" || !p.Envoy.Registry().Knows(url)) && n.Parent.Name() == "google.protobuf.Any" && isOptional(n.Parent) {
		return
	}
	switch {
	case url == "":
		p.Report(validate.Finding{Path: n.Path(), Eager: true, Message: "TypedStruct has no type_url", Help: "add the type_url of the message in value"})
	case !p.Envoy.Takes(xds.NameInURL(url)):
		f := validate.Finding{Path: n.Path().Field("type_url"), Eager: true, Message: fmt.Sprintf("unknown type %q", url)}
		suggestType(p.Envoy, &f, url)
		p.Report(f)
	case n.Err != nil:
		p.Report(validate.Finding{
			Path: n.Path().Field("value"), Eager: true,
			Message: fmt.Sprintf("the value does not match %s%s", xds.NameInURL(url), misfit(n.Err)),
			Help:    "check the names and types of the fields",
		})
	}
}

var (
	unknownField = regexp.MustCompile(`unknown field "(\w+)"`)
	badField     = regexp.MustCompile(`invalid value for \S+ field (\w+):`)
)

// misfit returns the part of a protojson error that contains no secret: the field. The rest of the error quotes the
// value, which may be a key.
func misfit(err error) string {
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Sprintf(": unknown field %q", m[1])
	}
	if m := badField.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Sprintf(": %s has a value of the wrong type", m[1])
	}
	return ""
}
