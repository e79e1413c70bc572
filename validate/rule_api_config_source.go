package validate

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var apiConfigSource = &Rule{
	Code: "api-config-source",
	Doc: `A config source over gRPC or REST lacks what its type needs, or has what it can't.

GRPC and DELTA_GRPC need exactly one grpc_services ("must have no more than 1 gRPC
services specified") and no cluster_names, REST exactly one cluster_names, no
grpc_services and a refresh_delay ("refresh_delay is required for REST API
configuration sources"). AGGREGATED_GRPC and AGGREGATED_DELTA_GRPC are no types of
a config source ("Unsupported config source"): ads stands for these. The transport
version V2 is gone ("The v2 xDS major version has been removed").`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.ApiConfigSource"},
	Node: func(p *Pass, n *xds.Node) {
		source := n.Message.(*corev3.ApiConfigSource)
		if source.GetTransportApiVersion() == corev3.ApiVersion_V2 {
			p.Report(Finding{
				Path:    n.Path().Field("transport_api_version"),
				Message: "transport_api_version V2: Envoy has dropped it",
				Help:    "write V3",
			})
		}
		report := func(field, message, help string) {
			path := n.Path()
			if field != "" {
				path = path.Field(field)
			}
			p.Report(Finding{Path: path, Message: message, Help: help})
		}
		services, clusters := len(source.GetGrpcServices()), len(source.GetClusterNames())
		switch kind := source.GetApiType(); kind {
		case corev3.ApiConfigSource_AGGREGATED_GRPC, corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
			report("api_type", fmt.Sprintf("api_type %s is none of a config source", kind), "write ads: {} instead of api_config_source, and ads_config in the bootstrap")
		case corev3.ApiConfigSource_GRPC, corev3.ApiConfigSource_DELTA_GRPC:
			switch {
			case clusters > 0:
				report("cluster_names", fmt.Sprintf("%s takes no cluster_names", kind), "name the cluster in grpc_services: [{envoy_grpc: {cluster_name: …}}]")
			case services == 0:
				report("", fmt.Sprintf("%s needs grpc_services", kind), "grpc_services: [{envoy_grpc: {cluster_name: …}}]")
			case services > 1:
				report("grpc_services[1]", fmt.Sprintf("%s takes one of grpc_services, not %d", kind, services), "keep one; its cluster can have several endpoints")
			}
		case corev3.ApiConfigSource_REST:
			switch {
			case services > 0:
				report("grpc_services", "REST takes no grpc_services", "name the cluster in cluster_names")
			case clusters != 1:
				report("", fmt.Sprintf("REST needs one of cluster_names, not %d", clusters), "name the cluster of the server")
			case source.GetRefreshDelay() == nil:
				report("", "REST needs a refresh_delay", "say how often Envoy asks, such as refresh_delay: 30s")
			}
		}
	},
}
