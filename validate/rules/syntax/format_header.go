package syntax

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	otellogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/open_telemetry/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	celformatterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/cel/v3"
	filecontentv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/file_content/v3"
	genericsecretv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/generic_secret/v3"
	metadataformatterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/metadata/v3"
	reqwithoutqueryv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/req_without_query/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/validate/facts"
	"xdspub/validate/substitution"
	"xdspub/xds"
)

const transformFilter protoreflect.FullName = "envoy.extensions.filters.http.transform.v3.TransformConfig"

func addedHeader(v *envoyapi.Version, n *xds.Node, m *corev3.HeaderValueOption) []format {
	if !v.IsFormattedHeader(n.Field()) || facts.Inside(n, "envoy.extensions.tracers.opentelemetry.samplers.v3.DynatraceSamplerConfig") {
		return nil
	}
	x := extensionsAround(n)
	x.Bodies = facts.Inside(n, transformFilter)
	return []format{{
		path: xds.Path("header").Field("value"), text: m.GetHeader().GetValue(), extensions: x,
		header: n.Field() != "envoy.config.core.v3.HttpService.request_headers_to_add",
	}}
}

// initialMetadata returns the format in a header that a gRPC service or ext_authz sends; none for another header.
// Worker threads, which have no CEL, parse the headers of a gRPC service, except those of a config source.
func initialMetadata(v *envoyapi.Version, n *xds.Node, m *corev3.HeaderValue) []format {
	f := format{path: "value", text: m.GetValue(), header: true}
	switch n.Field() {
	case "envoy.config.core.v3.GrpcService.initial_metadata":
		source := facts.Inside(n, "envoy.config.core.v3.ApiConfigSource")
		f.lazy = !source && !facts.Inside(n, v.EagerGRPCServices()...)
		f.extensions.NoCEL = !source
		return []format{f}
	case "envoy.extensions.filters.http.ext_authz.v3.AuthorizationRequest.headers_to_add":
		return []format{f}
	}
	return nil
}

// extensionsAround returns the commands that the formatters of the nearest message around the node add.
func extensionsAround(n *xds.Node) substitution.Extensions {
	for n = n.Parent; n != nil; n = n.Parent {
		switch m := n.Message.(type) {
		case *corev3.HttpService:
			return extensionsOf(m.GetFormatters())
		case *headermutationv3.Mutations:
			return extensionsOf(m.GetFormatters())
		case *otellogv3.OpenTelemetryAccessLogConfig:
			return extensionsOf(m.GetFormatters())
		case *tcpproxyv3.TcpProxy_TunnelingConfig:
			return extensionsOf(m.GetFormatters())
		case *udpproxyv3.UdpProxyConfig_UdpTunnelingConfig:
			return extensionsOf(m.GetFormatters())
		}
	}
	return substitution.Extensions{}
}

// extensionsOf returns the commands that formatters add.
func extensionsOf(formatters []*corev3.TypedExtensionConfig) (x substitution.Extensions) {
	for _, f := range formatters {
		switch m, _ := f.GetTypedConfig().UnmarshalNew(); m := m.(type) {
		case *reqwithoutqueryv3.ReqWithoutQuery:
			x.RequestWithoutQuery = true
		case *filecontentv3.FileContent:
			x.FileContent = true
		case *genericsecretv3.GenericSecret:
			for name := range m.GetSecretConfigs() {
				x.Secrets = append(x.Secrets, name)
			}
		case *celformatterv3.Cel:
			x.CEL = celAdds(m.GetCelConfig())
		case *metadataformatterv3.Metadata:
		default: // the commands of a dynamic module or of an unknown formatter are unknown
			x.Unknown = true
		}
	}
	return x
}
