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

A listener needs one at least ("No TLS certificates found for server context"), a
certificate with nothing in it does not count ("Server TlsCertificates must have a
certificate specified"), and all come either inline or by SDS ("SDS and non-SDS TLS
certificates may not be mixed in server contexts"). A cluster has one at most
("Multiple TLS certificates are not supported for client contexts"), empty ones
counted. A custom_tls_certificate_selector lifts the limits of number.`,
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
			report("tls_certificate_sds_secret_configs", "certificates inline and by SDS in one context: "+p.Resource.Refusal(), "keep one of the two")
		case c.isServer() && inline+sds == 0 && !selector:
			report("", "a TLS context of a listener needs a certificate", "set tls_certificates or tls_certificate_sds_secret_configs in common_tls_context")
		case c.isServer() && inline > 0 && !selector && !slices.ContainsFunc(common.GetTlsCertificates(), func(m *tlsv3.TlsCertificate) bool { return !isPassedOver(m) }):
			report("tls_certificates", "no certificate has anything in it: "+p.Resource.Refusal(), "set certificate_chain and private_key")
		case !c.isServer() && inline+sds > 1 && !selector:
			report(moreIn(inline, sds), fmt.Sprintf("%d certificates; a TLS context of a cluster can have one", inline+sds), "keep the one that the upstream shall see")
		}
	},
}

// moreIn is the field with the certificate that is one too many.
func moreIn(inline, sds int) string {
	if inline > 1 || sds == 0 {
		return "tls_certificates"
	}
	return "tls_certificate_sds_secret_configs"
}
