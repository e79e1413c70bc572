package field

import (
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var backoffInterval = &validate.Rule{
	Code: "backoff-interval",
	Doc: `A retry policy's max_interval is below its base_interval.

Envoy refuses a retry policy whose max_interval is below its base_interval ("max_interval
must be greater than or equal to the base_interval", "max_backoff_interval must be
greater or equal to base_backoff_interval"): for remote keys of jwt_authn, for remote
code of Wasm, for gcp_authn, in tcp_proxy and for the tunnel of udp_proxy. The HTTP
service of ext_authz, and oauth2, are taken, and Envoy logs a bug ("envoy bug
failure"). It compares milliseconds. Other retry policies are not looked at.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.BackoffStrategy"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*corev3.BackoffStrategy)
		base, longest := m.GetBaseInterval().AsDuration(), m.GetMaxInterval().AsDuration()
		if m.GetMaxInterval() == nil || longest.Truncate(time.Millisecond) >= base.Truncate(time.Millisecond) {
			return
		}
		holder := n.Field()
		if holder == "envoy.config.core.v3.RetryPolicy.retry_back_off" {
			holder = n.Parent.Field()
		}
		logged := false
		switch holder {
		case "envoy.config.core.v3.RemoteDataSource.retry_policy",
			"envoy.extensions.filters.http.gcp_authn.v3.GcpAuthnFilterConfig.retry_policy",
			"envoy.extensions.filters.http.jwt_authn.v3.RemoteJwks.retry_policy",
			"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.backoff_options",
			"envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.UdpTunnelingConfig.RetryOptions.backoff_options":
		case "envoy.extensions.filters.http.ext_authz.v3.HttpService.retry_policy",
			"envoy.extensions.filters.http.oauth2.v3.OAuth2Config.retry_policy":
			logged = true
		default:
			return
		}
		p.Report(validate.Finding{
			Path:    n.Path().Field("max_interval"),
			Message: fmt.Sprintf("max_interval %s is below base_interval %s", longest, base),
			Help:    "make it at least as long",
			Warning: logged,
		})
	},
}
