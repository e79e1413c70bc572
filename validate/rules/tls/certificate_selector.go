package tls

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

// onDemandSelector is Envoy's only certificate selector.
const onDemandSelector protoreflect.FullName = "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config"

var certificateSelector = &validate.Rule{
	Code:     "certificate-selector",
	Severity: diag.Error,
	Doc: `On-demand certificates are not supported here.

The selector on_demand_secret fetches a certificate when a connection needs it. QUIC does not
support it ("Does not support QUIC listeners", "Client certificate selector not supported on
QUIC"). A listener with it can't resume TLS sessions: set
disable_stateless_session_resumption and disable_stateful_session_resumption ("On demand
certificates are not integrated with session resumption support").`,
	Messages: []protoreflect.FullName{tlsDownstream, tlsUpstream},
	Node: func(p *validate.Pass, n *xds.Node) {
		c, ok := tlsContextAt(n)
		selector := c.common().GetCustomTlsCertificateSelector().GetTypedConfig()
		if !ok || selector == nil || xds.PayloadType(selector) != onDemandSelector {
			return
		}
		f := validate.Finding{Path: c.commonPath("custom_tls_certificate_selector")}
		switch {
		case c.quic:
			f.Message, f.Help = "QUIC does not support on-demand certificates", "set tls_certificates or tls_certificate_sds_secret_configs"
		case c.isServer() && !(c.down.GetDisableStatelessSessionResumption() && c.down.GetDisableStatefulSessionResumption()):
			f.Message = "on-demand certificates do not support TLS session resumption: " + p.Resource.Refusal()
			f.Help = "set disable_stateless_session_resumption and disable_stateful_session_resumption"
		default:
			return
		}
		p.Report(f)
	},
}
