package syntax

import (
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filelogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	fluentdlogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/fluentd/v3"
	otellogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/open_telemetry/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	redisproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/redis_proxy/v3"
	otelv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/envoy/envoyapi"
	"xdspub/validate/facts"
	"xdspub/validate/substitution"
	"xdspub/xds"
)

// format is a format string in a message.
type format struct {
	// path is the path of the format below the message.
	path       xds.Path
	text       string
	extensions substitution.Extensions
	// header means that Envoy also accepts the older forms, as it does in headers to add.
	header bool
	// lazy means that Envoy accepts a faulty format when it loads the configuration, and later goes on without it.
	lazy bool
	// single means that the format must be one command without further text.
	single bool
}

// holdsFormats reports whether messages of a type have format strings.
func holdsFormats(v *envoyapi.Version, message protoreflect.FullName) bool {
	return slices.Contains(formatMessages, message) || len(v.FormatFields(message)) > 0
}

// formatMessages are the messages for which formatsOf has code of its own.
var formatMessages = []protoreflect.FullName{
	"envoy.config.core.v3.HeaderValue",
	"envoy.config.core.v3.HeaderValueOption",
	"envoy.config.core.v3.KeyValueAppend",
	"envoy.config.core.v3.SubstitutionFormatString",
	"envoy.extensions.access_loggers.file.v3.FileAccessLog",
	"envoy.extensions.access_loggers.fluentd.v3.FluentdAccessLogConfig",
	"envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig",
	"envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.PrefixRoutes.Route",
}

// formatsOf returns the formats in the fields of the node's message. Messages below are nodes of their own.
func formatsOf(v *envoyapi.Version, n *xds.Node) []format {
	switch m := n.Message.(type) {
	case *corev3.HeaderValue:
		return initialMetadata(v, n, m)
	case *corev3.HeaderValueOption:
		return addedHeader(v, n, m)
	case *corev3.KeyValueAppend:
		x := extensionsAround(n)
		return jsonFormats(xds.Path("record").Field("value"), m.GetRecord().GetValue(), x)
	case *corev3.SubstitutionFormatString:
		return substitutionFormats(n, m)
	case *filelogv3.FileAccessLog:
		var x substitution.Extensions
		return slices.Concat(
			[]format{{path: "format", text: m.GetFormat()}},
			structFormats("json_format", m.GetJsonFormat(), x),
			structFormats("typed_json_format", m.GetTypedJsonFormat(), x),
		)
	case *fluentdlogv3.FluentdAccessLogConfig:
		return structFormats("record", m.GetRecord(), extensionsOf(m.GetFormatters()))
	case *otellogv3.OpenTelemetryAccessLogConfig:
		x := extensionsOf(m.GetFormatters())
		return append(otelFormats("body", m.GetBody(), x), otelListFormats("attributes", m.GetAttributes(), x)...)
	case *redisproxyv3.RedisProxy_PrefixRoutes_Route:
		// With each request, Envoy replaces %KEY% and parses the result. It crashes if the result is not a valid
		// format.
		return []format{{
			path: "key_formatter", text: strings.ReplaceAll(m.GetKeyFormatter(), "%KEY%", ""),
			extensions: substitution.Extensions{NoCEL: true},
		}}
	}
	return textFormats(v, n)
}

// textFormats returns the formats in the fields that envoyapi.Version.FormatFields lists.
func textFormats(v *envoyapi.Version, n *xds.Node) (list []format) {
	switch {
	case n.Name() == "envoy.config.route.v3.RateLimit.HitsAddend" &&
		facts.Inside(n, "envoy.config.route.v3.RouteAction.rate_limits", "envoy.config.route.v3.VirtualHost.rate_limits"):
		return nil // Envoy uses it only in the rate limits of filters
	case n.Name() == "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry" &&
		!facts.Inside(n, "envoy.extensions.filters.network.ratelimit.v3.RateLimit.descriptors"):
		return nil
	case n.Name() == "envoy.extensions.filters.http.oauth2.v3.PostLogoutRedirectUri":
		if config, _ := xds.Enclosing[*oauth2v3.OAuth2Config](n); config.GetEndSessionEndpoint() == "" {
			return nil // Envoy uses the URI only with an end_session_endpoint
		}
	}
	r := n.Message.ProtoReflect()
	for _, name := range v.FormatFields(n.Name()) {
		text := r.Get(r.Descriptor().Fields().ByName(name)).String()
		if text == "" {
			continue
		}
		list = append(list, format{
			path: xds.Path(name), text: text, extensions: extensionsAround(n),
			single: name == "format" || name == "value_format" && n.Name() != "envoy.extensions.access_loggers.stats.v3.Config.Tag",
		})
	}
	return list
}

func substitutionFormats(n *xds.Node, m *corev3.SubstitutionFormatString) []format {
	x := extensionsOf(m.GetFormatters())
	x.Bodies = facts.Inside(n, transformFilter)
	source := xds.Path("text_format_source")
	return append(structFormats("json_format", m.GetJsonFormat(), x),
		format{path: "text_format", text: m.GetTextFormat(), extensions: x},
		format{path: source.Field("inline_string"), text: m.GetTextFormatSource().GetInlineString(), extensions: x},
		format{path: source.Field("inline_bytes"), text: string(m.GetTextFormatSource().GetInlineBytes()), extensions: x},
	)
}

// structFormats returns the formats in a JSON format: its strings. Envoy writes other values unchanged.
func structFormats(path xds.Path, s *structpb.Struct, x substitution.Extensions) (list []format) {
	for _, key := range slices.Sorted(maps.Keys(s.GetFields())) {
		list = append(list, jsonFormats(path.Key(key), s.GetFields()[key], x)...)
	}
	return list
}

func jsonFormats(path xds.Path, v *structpb.Value, x substitution.Extensions) (list []format) {
	for i, element := range v.GetListValue().GetValues() {
		list = append(list, jsonFormats(path.Index(i), element, x)...)
	}
	list = append(list, structFormats(path, v.GetStructValue(), x)...)
	return append(list, format{path: path, text: v.GetStringValue(), extensions: x})
}

// otelFormats returns the formats in a value of OpenTelemetry: its strings.
func otelFormats(path xds.Path, v *otelv1.AnyValue, x substitution.Extensions) (list []format) {
	for i, element := range v.GetArrayValue().GetValues() {
		list = append(list, otelFormats(path.Field("array_value").Field("values").Index(i), element, x)...)
	}
	list = append(list, otelListFormats(path.Field("kvlist_value"), v.GetKvlistValue(), x)...)
	return append(list, format{path: path.Field("string_value"), text: v.GetStringValue(), extensions: x})
}

func otelListFormats(path xds.Path, values *otelv1.KeyValueList, x substitution.Extensions) (list []format) {
	for i, entry := range values.GetValues() {
		list = append(list, otelFormats(path.Field("values").Index(i).Field("value"), entry.GetValue(), x)...)
	}
	return list
}
