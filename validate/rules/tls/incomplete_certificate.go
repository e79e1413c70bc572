package tls

import (
	"xdspub/diag"
	"xdspub/validate"
)

var incompleteCertificate = certificateRule(&validate.Rule{
	Code:     "incomplete-certificate",
	Severity: diag.Error,
	Doc: `A certificate has no key, or a key has no certificate.

Envoy rejects a TLS certificate without certificate_chain ("Failed to load incomplete certificate
from …: certificate chain not set") or without private_key ("Failed to load incomplete private key
from path"). An empty data source counts as missing. Envoy ignores a completely empty certificate
in a TLS context, and rejects it in a secret.`,
}, func(p *validate.Pass, c certificate) {
	missing := func(field string, set bool) {
		f := validate.Finding{Message: field + " is missing", Help: "set both the certificate and its key"}
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
	case c.GetPrivateKeyProvider() != nil: // reported by bad-private-key
	case isEmpty(c.GetCertificateChain()):
		missing("certificate_chain", c.GetCertificateChain() != nil)
	case isEmpty(c.GetPrivateKey()):
		missing("private_key", c.GetPrivateKey() != nil)
	}
})
