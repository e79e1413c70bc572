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

Envoy rejects a retry policy whose max_interval is below its base_interval ("max_interval
must be greater than or equal to the base_interval", "max_backoff_interval must be greater
or equal to base_backoff_interval"): for remote JWKS in jwt_authn, remote Wasm code,
gcp_authn, tcp_proxy and udp_proxy tunnels. It compares whole milliseconds. In the HTTP
service of ext_authz and in oauth2 it accepts the policy and logs "envoy bug failure". This
rule does not check other retry policies; retry-policy checks those of routes.`,
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
			Help:    "raise max_interval to at least base_interval",
			Warning: logged,
		})
	},
}
