package cluster

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var ledsEndpoints = &validate.Rule{
	Code: "leds-endpoints",
	Doc: `A locality's LEDS settings are invalid or unsupported.

leds_cluster_locality_config works in EDS clusters only ("LEDS is only supported when EDS
is used"), and replaces lb_endpoints. Its leds_collection_name must be an xdstp: URL with a config
source of ADS or DELTA_GRPC; Envoy rejects other names and sources. Of a file: URL a running Envoy
dies ("Caught Segmentation fault"), and one that starts with it waits for ever.`,
	Messages: []protoreflect.FullName{"envoy.config.endpoint.v3.LocalityLbEndpoints"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*endpointv3.LocalityLbEndpoints)
		leds := m.GetLedsClusterLocalityConfig()
		if leds == nil || facts.UseOfEndpoints(p.Envoy, n) != facts.EndpointsLiteral {
			return
		}
		path := n.Path().Field("leds_cluster_locality_config")
		name := leds.GetLedsCollectionName()
		f := validate.Finding{Path: path}
		switch {
		case facts.Inside(n, "envoy.config.cluster.v3.Cluster"):
			f.Message = "a STATIC cluster can't have leds_cluster_locality_config"
			f.Help = "list the endpoints, or set the cluster's type to EDS"
		case len(m.GetLbEndpoints()) > 0:
			f.Message = "both leds_cluster_locality_config and lb_endpoints are set"
			f.Help = "keep one of them"
		case strings.HasPrefix(name, "file:"):
			f.Path = path.Field("leds_collection_name")
			f.Message = fmt.Sprintf("leds_collection_name %q is a file: Envoy waits for ever, or dies", name)
			f.Help = helpCollection
		case !strings.HasPrefix(name, "xdstp:"):
			f.Path = path.Field("leds_collection_name")
			f.Message = fmt.Sprintf("leds_collection_name %q is not an xdstp: URL", name)
			f.Help = helpCollection
		case !streams(leds.GetLedsConfig()):
			f.Path = path.Field("leds_config")
			f.Message = "this config source does not support endpoint collections"
			f.Help = "use ADS or DELTA_GRPC, or list the endpoints in lb_endpoints"
		default:
			return
		}
		p.Report(f)
	},
}

const helpCollection = "write it as xdstp://authority/envoy.config.endpoint.v3.LbEndpoint/name/*"

// streams reports whether a config source may use the incremental protocol, which collections need. ADS may be
// incremental.
func streams(s *corev3.ConfigSource) bool {
	switch specifier := s.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_Ads, *corev3.ConfigSource_Self:
		return true
	case *corev3.ConfigSource_ApiConfigSource:
		t := specifier.ApiConfigSource.GetApiType()
		return t == corev3.ApiConfigSource_DELTA_GRPC || t == corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC
	}
	return false
}
