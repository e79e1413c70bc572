package validate

import (
	"fmt"
	"strings"

	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var udpProxy = &Rule{
	Code: "udp-proxy",
	Doc: `A udp_proxy has options that do not go together.

Load balancing per packet has no sessions, so that Envoy refuses it beside
session_filters ("Only one of use_per_packet_load_balancing or session_filters can be
used") and beside a tunneling_config. In the latter, post_path goes with use_post only
and begins with a slash ("Path must start with '/'"), proxy_port is a port, and the
max_interval of a back-off is no shorter than its base_interval.`,
	Messages: []protoreflect.FullName{"envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig"},
	Node: func(p *Pass, n *xds.Node) {
		m := n.Message.(*udpproxyv3.UdpProxyConfig)
		tunnel := m.GetTunnelingConfig()
		if m.GetUsePerPacketLoadBalancing() && (len(m.GetSessionFilters()) > 0 || tunnel != nil) {
			other := "session_filters"
			if tunnel != nil {
				other = "tunneling_config"
			}
			p.Report(Finding{
				Path:    n.Path().Field("use_per_packet_load_balancing"),
				Message: fmt.Sprintf("use_per_packet_load_balancing beside %s", other),
				Help:    "remove one of the two: without sessions there is nothing to filter or to tunnel",
			})
		}
		if tunnel != nil {
			checkUDPTunnel(p, n.Path().Field("tunneling_config"), tunnel)
		}
	},
}

func checkUDPTunnel(p *Pass, at xds.Path, t *udpproxyv3.UdpProxyConfig_UdpTunnelingConfig) {
	switch path := t.GetPostPath(); {
	case path == "":
	case !t.GetUsePost():
		p.Report(Finding{
			Path:    at.Field("post_path"),
			Message: fmt.Sprintf("post_path %q without use_post", path),
			Help:    "set use_post, or remove the path",
		})
	case !strings.HasPrefix(path, "/"):
		p.Report(Finding{
			Path:    at.Field("post_path"),
			Message: fmt.Sprintf("post_path %q does not begin with a slash", path),
			Help:    fmt.Sprintf("write /%s", path),
		})
	}
	if port := t.GetProxyPort(); port != nil && (port.GetValue() == 0 || port.GetValue() > 65535) {
		p.Report(Finding{
			Path:    at.Field("proxy_port"),
			Message: fmt.Sprintf("%d is no port", port.GetValue()),
			Help:    "give a number from 1 to 65535, or leave it out",
		})
	}
	backoff := t.GetRetryOptions().GetBackoffOptions()
	base, longest := backoff.GetBaseInterval(), backoff.GetMaxInterval()
	if longest != nil && longest.AsDuration() < base.AsDuration() {
		p.Report(Finding{
			Path:    at.Field("retry_options").Field("backoff_options").Field("max_interval"),
			Message: fmt.Sprintf("max_interval %v is shorter than base_interval %v", longest.AsDuration(), base.AsDuration()),
			Help:    "make it as long, or leave it out",
		})
	}
}
