package tls

import (
	"errors"
	"fmt"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/boring"
)

var badPrivateKey = certificateRule(&validate.Rule{
	Code:     "bad-private-key",
	Severity: diag.Error,
	Doc: `A private key can't be loaded, or does not match its certificate.

Envoy rejects a key that is not PEM, that is encrypted and has no password or a wrong one (a line
end after the password counts), that is encrypted in a way that BoringSSL does not support
(scrypt, PBKDF2 with HMAC-SHA-512), or that does not match the first certificate of the chain
("Failed to load private key from …, Cause: …"). Of several keys it reads the first.

It rejects a private_key_provider, with fallback too ("Failed to load private key provider"):
only contrib builds have some.`,
}, func(p *validate.Pass, c certificate) {
	switch {
	case c.GetPkcs12() != nil:
		return // reported by bad-certificate
	case c.GetPrivateKeyProvider() != nil:
		c.report(p, "private_key_provider.provider_name", validate.Finding{
			Message: fmt.Sprintf("unknown private key provider %q: only contrib builds of Envoy have some", c.GetPrivateKeyProvider().GetProviderName()),
			Help:    "write the key in private_key; for a contrib build use --disable bad-private-key",
		})
		return
	}
	leaf, _, err := c.load()
	key, known := content(c.GetPrivateKey())
	password, passwordKnown := content(c.GetPassword())
	if err != nil || isEmpty(c.GetCertificateChain()) || len(key) == 0 || !known || !passwordKnown {
		return // reported by bad-certificate or incomplete-certificate, or the content is unknown
	}
	field, help := "private_key", "write the key of the first certificate in certificate_chain, in PEM"
	switch err = boring.CheckKey(key, string(password), leaf); {
	case errors.Is(err, boring.ErrNoPassword):
		help = "set password, or decrypt the key with openssl pkey"
	case errors.Is(err, boring.ErrWrongPassword):
		field, help = "password", "write the password of private_key, without a line end"
	}
	if err != nil {
		c.report(p, field, validate.Finding{Message: fmt.Sprintf("private_key can't be loaded: %v", err), Help: help})
	}
})
