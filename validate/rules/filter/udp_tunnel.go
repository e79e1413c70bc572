package filter

import (
	"fmt"
	"strings"

	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var udpTunnel = &validate.Rule{
	Code: "udp-tunnel",
	Doc: `A udp_proxy tunnel has an invalid path or port.

Envoy rejects a post_path that does not begin with a slash ("Path must start with '/'"), and
an invalid proxy_port ("Port value not in range").`,
	Messages: []protoreflect.FullName{"envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.UdpTunnelingConfig"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*udpproxyv3.UdpProxyConfig_UdpTunnelingConfig)
		if path := m.GetPostPath(); m.GetUsePost() && path != "" && !strings.HasPrefix(path, "/") {
			p.Report(validate.Finding{
				Path:    n.Path().Field("post_path"),
				Message: fmt.Sprintf("post_path %q does not begin with a slash", path),
				Help:    fmt.Sprintf("write /%s", path),
			})
		}
		if port := m.GetProxyPort(); port != nil && (port.GetValue() == 0 || port.GetValue() > 65535) {
			p.Report(validate.Finding{
				Path:    n.Path().Field("proxy_port"),
				Message: fmt.Sprintf("proxy_port %d is not a valid port", port.GetValue()),
				Help:    "write a port from 1 to 65535, or remove it",
			})
		}
	},
}
