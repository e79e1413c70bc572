package tls

import (
	"fmt"

	"xdspub/diag"
	"xdspub/validate"
)

var badCertificate = certificateRule(&validate.Rule{
	Code:     "bad-certificate",
	Severity: diag.Error,
	Doc: `Envoy can't load a certificate.

Envoy reads a certificate chain as PEM, the certificate of the key first. It rejects a text
without a certificate, a damaged block anywhere ("Failed to load certificate chain from"), an RSA
key of less than 2048 bits, curves other than P-256, P-384 and P-521, and key types such as DSA
and Ed448. In a listener it also rejects a certificate without a name ("Invalid TLS context has
neither subject CN nor SAN names"), and Ed25519 for QUIC. It ignores text around the blocks, and
sends the certificates after the first one unchanged.

PKCS #12 needs its password, excludes the other fields, and does not work in a secret from SDS
("Certificate configuration can't have both pkcs12 and certificate_chain").

This rule reads files with a relative path, which xdspub inlines; it does not check other files
and environment variables.`,
}, checkCertificate)

func checkCertificate(p *validate.Pass, c certificate) {
	if c.GetPkcs12() != nil {
		for _, beside := range []struct {
			field string
			set   bool
		}{
			{"private_key", c.GetPrivateKey() != nil},
			{"certificate_chain", c.GetCertificateChain() != nil},
			{"private_key_provider", c.GetPrivateKeyProvider() != nil},
		} {
			if beside.set {
				c.report(p, beside.field, validate.Finding{
					Message: fmt.Sprintf("both %s and pkcs12 are set; pkcs12 contains the certificate and its key", beside.field),
					Help:    "keep one of them",
				})
				return
			}
		}
		if c.secret {
			c.report(p, "pkcs12", validate.Finding{
				Message: "Envoy does not support pkcs12 in a secret from SDS",
				Help:    "convert it to PEM (openssl pkcs12 -nodes), and set certificate_chain and private_key",
				// Envoy accepts pkcs12 in a static secret.
				Warning: !c.sds,
			})
			return
		}
	}
	if _, field, err := c.load(); err != nil {
		c.report(p, field, validate.Finding{
			Message: fmt.Sprintf("%s can't be loaded: %v", field, err),
			Help:    "write the certificate of the key in PEM, then the certificates that issued it",
		})
	}
}
