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
	Doc: `VHDS has a config source that Envoy does not support.

Envoy takes virtual hosts over delta gRPC or delta ADS only, and refuses a route
configuration that asks a file, a REST server or a plain gRPC stream for them
("vhds: only 'DELTA_GRPC' or 'ADS' (which uses Delta xDS) is supported as a config
source."). Where the source is {ads: {}} or {self: {}}, the virtual hosts of this
tree are written into the route configuration.`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.Vhds"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		source := n.Message.(*routev3.Vhds).GetConfigSource()
		if xds.FromSnapshot(source) || source.GetConfigSourceSpecifier() == nil || source.GetApiConfigSource().GetApiType() == corev3.ApiConfigSource_DELTA_GRPC {
			return
		}
		help := "use {ads: {}} for the virtual hosts of this tree, or an api_config_source of type DELTA_GRPC"
		if p.Snapshot.FromBootstrap() {
			help = "write them into the route configuration, or use ads or an api_config_source of type DELTA_GRPC"
		}
		p.Report(validate.Finding{
			Path:    n.Path().Field("config_source"),
			Message: "virtual hosts can't come from this config source: " + p.Resource.Refusal(),
			Help:    help,
		})
	},
}
