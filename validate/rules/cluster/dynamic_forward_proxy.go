package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dynamicforwardproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	commondfpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var dynamicForwardProxy = &validate.Rule{
	Code: "dynamic-forward-proxy",
	Doc: `A dynamic forward proxy skips TLS checks, or preresolves too many hostnames.

A dynamic forward proxy connects to whatever host a request names. Over TLS it must send
that hostname as SNI and verify the certificate for it: "dynamic_forward_proxy cluster must
have auto_sni and auto_san_validation true unless allow_insecure_cluster_options is set".
Envoy turns both on by itself only if the cluster has no HTTP options of its own. The number
of preresolve_hostnames must not exceed max_hosts, which is 1024 by default.`,
	Messages: []protoreflect.FullName{
		"envoy.config.cluster.v3.Cluster",
		"envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			if p.Envoy.ClusterKindOf(m).Factory == "envoy.clusters.dynamic_forward_proxy" {
				checkServerName(p, n, m)
			}
		case *commondfpv3.DnsCacheConfig:
			most := uint32(1024)
			if m.GetMaxHosts() != nil {
				most = m.GetMaxHosts().GetValue()
			}
			if count := len(m.GetPreresolveHostnames()); most > 0 && uint64(count) > uint64(most) {
				p.Report(validate.Finding{
					Path:    n.Path().Field("preresolve_hostnames"),
					Message: fmt.Sprintf("%d preresolve_hostnames exceed max_hosts, which is %d", count, most),
					Help:    "raise max_hosts, or remove some of the hostnames",
				})
			}
		}
	},
}

func checkServerName(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	config, _ := xds.Unpack(c.GetClusterType().GetTypedConfig()).(*dynamicforwardproxyv3.ClusterConfig)
	if config.GetAllowInsecureClusterOptions() {
		return
	}
	options, path := c.GetUpstreamHttpProtocolOptions(), n.Path()
	if c.GetTypedExtensionProtocolOptions()[httpProtocolOptions] != nil {
		options, path = httpOptions(c).GetUpstreamHttpProtocolOptions(), path.Field("typed_extension_protocol_options").Key(httpProtocolOptions)
	} else if options == nil {
		return
	}
	if !options.GetAutoSni() || !options.GetAutoSanValidation() {
		p.Report(validate.Finding{
			Path:    path.Field("upstream_http_protocol_options"),
			Message: "a dynamic forward proxy needs auto_sni and auto_san_validation",
			Help:    "set upstream_http_protocol_options: {auto_sni: true, auto_san_validation: true}, or allow_insecure_cluster_options in its typed_config",
		})
	}
}
