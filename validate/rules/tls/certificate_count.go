package tls

import (
	"fmt"
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var certificateCount = &validate.Rule{
	Code: "certificate-count",
	Doc: `A TLS context has no certificate, or too many.

A listener needs at least one certificate ("No TLS certificates found for server context"); an
empty one does not count ("Server TlsCertificates must have a certificate specified"). They must
be all inline or all from SDS ("SDS and non-SDS TLS certificates may not be mixed in server
contexts"). A cluster has at most one certificate, counting empty ones ("Multiple TLS certificates
are not supported for client contexts"). A custom_tls_certificate_selector lifts these limits.`,
	Messages: []protoreflect.FullName{tlsDownstream, tlsUpstream},
	Node: func(p *validate.Pass, n *xds.Node) {
		c, ok := tlsContextAt(n)
		if !ok {
			return
		}
		common := c.common()
		inline, sds := len(common.GetTlsCertificates()), len(common.GetTlsCertificateSdsSecretConfigs())
		selector := common.GetCustomTlsCertificateSelector() != nil
		report := func(field, message, help string) {
			f := validate.Finding{Path: n.Path(), Message: message, Help: help}
			if field != "" {
				f.Path = c.commonPath(field)
			}
			p.Report(f)
		}
		switch {
		case c.isServer() && inline > 0 && sds > 0:
			report("tls_certificate_sds_secret_configs", "a TLS context has both inline certificates and SDS "+
				"certificates: "+p.Resource.Refusal(), "keep one kind")
		case c.isServer() && inline+sds == 0 && !selector:
			report("", "a TLS context of a listener needs a certificate", "set tls_certificates or tls_certificate_sds_secret_configs in common_tls_context")
		case c.isServer() && inline > 0 && !selector &&
			!slices.ContainsFunc(common.GetTlsCertificates(), func(m *tlsv3.TlsCertificate) bool { return !isPassedOver(m) }):
			report("tls_certificates", "all certificates are empty: "+p.Resource.Refusal(), "set certificate_chain and private_key")
		case !c.isServer() && inline+sds > 1 && !selector:
			report(moreIn(inline, sds), fmt.Sprintf("a TLS context of a cluster can have one certificate, and "+
				"this one has %d", inline+sds), "keep the certificate for the upstream")
		}
	},
}

// moreIn returns the field that has one certificate too many. inline and sds are the numbers of certificates in
// both fields.
func moreIn(inline, sds int) string {
	if inline > 1 || sds == 0 {
		return "tls_certificates"
	}
	return "tls_certificate_sds_secret_configs"
}
