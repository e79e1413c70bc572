package tls

import (
	"xdspub/diag"
	"xdspub/validate"
)

var incompleteCertificate = certificateRule(&validate.Rule{
	Code:     "incomplete-certificate",
	Severity: diag.Error,
	Doc: `A certificate has no key, or a key has no certificate.

Envoy refuses a TLS certificate without certificate_chain ("Failed to load
incomplete certificate from …: certificate chain not set") and one without
private_key ("Failed to load incomplete private key from path"), a data source
that is empty included. One that has nothing at all is passed over in a TLS
context, and refused in a secret.`,
}, func(p *validate.Pass, c certificate) {
	missing := func(field string, set bool) {
		f := validate.Finding{Message: field + " is missing", Help: "a certificate and its key belong together"}
		if !set {
			field = ""
		} else {
			f.Message = field + " is empty"
		}
		c.report(p, field, f)
	}
	switch {
	case c.GetPkcs12() != nil:
		if isEmpty(c.GetPkcs12()) {
			missing("pkcs12", true)
		}
	case c.GetPrivateKeyProvider() != nil: // bad-private-key
	case isEmpty(c.GetCertificateChain()):
		missing("certificate_chain", c.GetCertificateChain() != nil)
	case isEmpty(c.GetPrivateKey()):
		missing("private_key", c.GetPrivateKey() != nil)
	}
})
