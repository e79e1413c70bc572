package route

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var vhdsConfigSource = &validate.Rule{
	Code: "vhds-config-source",
	Doc: `VHDS has a config source unknown to Envoy.

Envoy gets virtual hosts by delta gRPC or delta ADS only. It rejects a route configuration whose
vhds uses a file, a REST server or a plain gRPC stream ("vhds: only 'DELTA_GRPC' or 'ADS' (which
uses Delta xDS) is supported as a config source."). With {ads: {}} or {self: {}} xdspub inlines
the virtual hosts of this tree into the route configuration.`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.Vhds"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		source := n.Message.(*routev3.Vhds).GetConfigSource()
		if xds.FromSnapshot(source) || source.GetConfigSourceSpecifier() == nil ||
			source.GetApiConfigSource().GetApiType() == corev3.ApiConfigSource_DELTA_GRPC {
			return
		}
		help := "use {ads: {}} for the virtual hosts of this tree, or an api_config_source of type DELTA_GRPC"
		if p.Snapshot.FromBootstrap() {
			help = "write them into the route configuration, or use ads or an api_config_source of type DELTA_GRPC"
		}
		p.Report(validate.Finding{
			Path:    n.Path().Field("config_source"),
			Message: "vhds does not support this config source: " + p.Resource.Refusal(),
			Help:    help,
		})
	},
}
