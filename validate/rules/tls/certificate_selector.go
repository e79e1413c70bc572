package tls

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

// onDemandSelector is the one certificate selector that Envoy has.
const onDemandSelector protoreflect.FullName = "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config"

var certificateSelector = &validate.Rule{
	Code:     "certificate-selector",
	Severity: diag.Error,
	Doc: `On-demand certificates are not supported here.

The selector on_demand_secret asks for a certificate when a connection needs it.
QUIC has no place for that ("Does not support QUIC listeners", "Client certificate
selector not supported on QUIC"). A listener with it resumes no TLS sessions, and
must say so with disable_stateless_session_resumption and
disable_stateful_session_resumption ("On demand certificates are not integrated
with session resumption support").`,
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
			f.Message, f.Help = "QUIC can't get certificates on demand", "set tls_certificates or tls_certificate_sds_secret_configs"
		case c.isServer() && !(c.down.GetDisableStatelessSessionResumption() && c.down.GetDisableStatefulSessionResumption()):
			f.Message = "certificates on demand, and TLS sessions can be resumed: " + p.Resource.Refusal()
			f.Help = "set disable_stateless_session_resumption and disable_stateful_session_resumption"
		default:
			return
		}
		p.Report(f)
	},
}
