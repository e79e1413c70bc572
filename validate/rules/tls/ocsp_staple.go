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

A listener's ocsp_staple is an OCSP response in DER, given as a file or in
inline_bytes. Envoy refuses one that is text ("OCSP staple cannot be provided via
inline_string"), that can't be read, that the responder refused to give ("OCSP
response was unsuccessful"), or whose serial number is not that of the certificate.
It also refuses a certificate without a response where ocsp_staple_policy is
MUST_STAPLE ("Required OCSP response is missing from TLS context"), or where the
certificate has the must-staple extension, whatever the policy.

An expired response is taken. With STRICT_STAPLING or MUST_STAPLE, and for a
must-staple certificate, the certificate is not used then: a warning. In a cluster
no response is looked at.`,
}, checkStaple)

func checkStaple(p *validate.Pass, c certificate) {
	staple := c.GetOcspStaple()
	if _, text := staple.GetSpecifier().(*corev3.DataSource_InlineString); text {
		c.report(p, "ocsp_staple", validate.Finding{
			Message: "the OCSP response is given as text, Envoy takes bytes",
			Help:    "put it in DER into a file or into inline_bytes",
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
		c.report(p, "ocsp_staple", validate.Finding{Message: fmt.Sprintf("ocsp_staple can't be loaded: %v", err), Help: "openssl ocsp -respout makes such a file"})
	case leaf == nil:
	case !response.Matches(leaf):
		c.report(p, "ocsp_staple", validate.Finding{Message: "the OCSP response is not for this certificate: another serial number", Help: "ask for a new response after the certificate was renewed"})
	case !leaf.MustStaple && !c.any(wantsStaple):
	case response.NextUpdate.IsZero():
		c.report(p, "ocsp_staple", validate.Finding{Message: "the OCSP response does not say how long it is valid: Envoy does not use the certificate", Help: "have the responder set nextUpdate", Warning: true})
	case p.Timed() && p.Passed(response.NextUpdate):
		c.report(p, "ocsp_staple", validate.Finding{
			Message: fmt.Sprintf("the OCSP response expired on %s: Envoy does not use the certificate", response.NextUpdate.Format(dateForm)),
			Help:    "renew the response", Warning: true,
		})
	}
}

// checkMissingStaple judges a certificate without a response.
func checkMissingStaple(p *validate.Pass, c certificate, leaf *boring.Certificate) {
	if leaf != nil && leaf.MustStaple {
		c.report(p, "", validate.Finding{Message: "the certificate has the must-staple extension, and there is no ocsp_staple", Help: "add the OCSP response"})
		return
	}
	for _, user := range c.users {
		if user.down.GetOcspStaplePolicy() != tlsv3.DownstreamTlsContext_MUST_STAPLE {
			continue
		}
		f := validate.Finding{Message: "ocsp_staple_policy MUST_STAPLE, and the certificate has no ocsp_staple", Help: "add the OCSP response, or relax the policy"}
		if c.secret {
			c.report(p, "", f)
			return
		}
		f.Path = user.node.Path().Field("ocsp_staple_policy")
		p.Report(f)
	}
}

// wantsStaple reports whether a context passes over certificates whose response is
// expired.
func wantsStaple(c tlsContext) bool {
	return c.down.GetOcspStaplePolicy() != tlsv3.DownstreamTlsContext_LENIENT_STAPLING
}
