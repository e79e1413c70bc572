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

Envoy reads a certificate chain as PEM, the certificate of the key first. It refuses
a text without a certificate, a block that is damaged, wherever it stands ("Failed
to load certificate chain from"), an RSA key of less than 2048 bits, other curves
than P-256, P-384 and P-521, and kinds of key such as DSA and Ed448; for a listener
also a certificate without a name ("Invalid TLS context has neither subject CN nor
SAN names"), and Ed25519 for QUIC. Text around the blocks does no harm. The
certificates that follow the first are passed on as they are.

PKCS #12 is read with the password beside it, stands alone, and does not work in a
secret that comes by SDS ("Certificate configuration can't have both pkcs12 and
certificate_chain").

The files that a resource names by relative paths are read as if they stood in it.
Other files, and environment variables, are not judged.`,
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
					Message: fmt.Sprintf("%s stands beside pkcs12, which holds the certificate and its key", beside.field),
					Help:    "keep one of the two",
				})
				return
			}
		}
		if c.secret {
			c.report(p, "pkcs12", validate.Finding{
				Message: "Envoy does not take pkcs12 in a secret that comes by SDS",
				Help:    "put it into certificate_chain and private_key, as PEM: openssl pkcs12 -nodes",
				// In the bootstrap it would be taken.
				Warning: !c.sds,
			})
			return
		}
	}
	if _, field, err := c.load(); err != nil {
		c.report(p, field, validate.Finding{
			Message: fmt.Sprintf("%s can't be loaded: %v", field, err),
			Help:    "the certificate of the key in PEM, then those that issued it",
		})
	}
}
