package tls

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/boring"
)

var ocspStaple = certificateRule(&validate.Rule{
	Code:     "ocsp-staple",
	Severity: diag.Error,
	Doc: `An OCSP response is missing, invalid or expired.

A listener's ocsp_staple is an OCSP response in DER, from a file or in inline_bytes. Envoy rejects a
response in text ("OCSP staple cannot be provided via inline_string"), a damaged response, a
response with an error ("OCSP response was unsuccessful"), and a response with another serial number
than the certificate. It also rejects a certificate without a response if ocsp_staple_policy is
MUST_STAPLE ("Required OCSP response is missing from TLS context"), or if the certificate has the
must-staple extension.

Envoy accepts an expired response. With STRICT_STAPLING, MUST_STAPLE or a must-staple certificate
it then does not use the certificate: a warning. It ignores responses in a cluster.`,
}, checkStaple)

func checkStaple(p *validate.Pass, c certificate) {
	staple := c.GetOcspStaple()
	if _, text := staple.GetSpecifier().(*corev3.DataSource_InlineString); text {
		c.report(p, "ocsp_staple", validate.Finding{
			Message: "the OCSP response is text, and must be bytes",
			Help:    "write it in DER, in a file or in inline_bytes",
		})
		return
	}
	der, known := content(staple)
	if !known || !c.isServers() && len(c.users) > 0 {
		return
	}
	leaf := c.leaf()
	if len(der) == 0 {
		checkMissingStaple(p, c, leaf)
		return
	}
	response, err := boring.ReadOCSP(der)
	switch {
	case err != nil:
		c.report(p, "ocsp_staple", validate.Finding{Message: fmt.Sprintf("ocsp_staple can't "+
			"be loaded: %v", err), Help: "create the response with openssl ocsp -respout"})
	case leaf == nil:
	case !response.Matches(leaf):
		c.report(p, "ocsp_staple", validate.Finding{Message: "the OCSP response is for another certificate: the serial " +
			"numbers differ", Help: "request a new response for the current certificate"})
	case !leaf.MustStaple && !c.any(wantsStaple):
	case response.NextUpdate.IsZero():
		c.report(p, "ocsp_staple", validate.Finding{Message: "the OCSP response has no nextUpdate: Envoy does not use " +
			"the certificate", Help: "configure the responder to set nextUpdate", Warning: true})
	case p.Timed() && p.Passed(response.NextUpdate):
		c.report(p, "ocsp_staple", validate.Finding{
			Message: fmt.Sprintf("the OCSP response expired on %s: Envoy does not use the certificate", response.NextUpdate.Format(dateForm)),
			Help:    "renew the response", Warning: true,
		})
	}
}

// checkMissingStaple reports a certificate without an ocsp_staple, if the certificate or the listener needs one.
func checkMissingStaple(p *validate.Pass, c certificate, leaf *boring.Certificate) {
	if leaf != nil && leaf.MustStaple {
		c.report(p, "", validate.Finding{Message: "the certificate has the must-staple extension, and there is no ocsp_staple", Help: "add the OCSP response"})
		return
	}
	for _, user := range c.users {
		if user.down.GetOcspStaplePolicy() != tlsv3.DownstreamTlsContext_MUST_STAPLE {
			continue
		}
		f := validate.Finding{Message: "ocsp_staple_policy MUST_STAPLE needs an ocsp_staple for " +
			"the certificate", Help: "add the OCSP response, or change the policy"}
		if c.secret {
			c.report(p, "", f)
			return
		}
		f.Path = user.node.Path().Field("ocsp_staple_policy")
		p.Report(f)
	}
}

// wantsStaple reports whether a TLS context skips a certificate with an expired OCSP response.
func wantsStaple(c tlsContext) bool {
	return c.down.GetOcspStaplePolicy() != tlsv3.DownstreamTlsContext_LENIENT_STAPLING
}
