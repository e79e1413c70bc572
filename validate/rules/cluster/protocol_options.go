package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"xdspub/xds"
)

// httpProtocolOptions is the key of a cluster's HTTP options in typed_extension_protocol_options, and the type of
// the value.
const httpProtocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// httpOptions returns the cluster's HTTP options in typed_extension_protocol_options. It returns nil for missing or
// unreadable options. Without these options, the older fields of the cluster apply.
func httpOptions(c *clusterv3.Cluster) *httpv3.HttpProtocolOptions {
	m, _ := xds.UnpackOptions(c.GetTypedExtensionProtocolOptions(), httpProtocolOptions).(*httpv3.HttpProtocolOptions)
	return m
}

// speaksHTTP2 reports whether Envoy treats a cluster as an HTTP/2 cluster.
func speaksHTTP2(c *clusterv3.Cluster) bool {
	if c.GetTypedExtensionProtocolOptions()[httpProtocolOptions] == nil {
		return c.GetHttp2ProtocolOptions() != nil
	}
	switch o := httpOptions(c).GetUpstreamProtocolOptions().(type) {
	case *httpv3.HttpProtocolOptions_ExplicitHttpConfig_:
		return o.ExplicitHttpConfig.GetHttp2ProtocolOptions() != nil
	case *httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig:
		return o.UseDownstreamProtocolConfig.GetHttp2ProtocolOptions() != nil
	case *httpv3.HttpProtocolOptions_AutoConfig:
		return true
	default:
		return true // reported by unknown-type or field-constraint
	}
}
