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

Envoy refuses a key that is no PEM, that is encrypted without a password or with
another one (a line end behind the password counts), that is encrypted in a way
that BoringSSL does not know (scrypt, PBKDF2 with HMAC-SHA-512), and one that does
not belong to the first certificate of the chain ("Failed to load private key from
…, Cause: …"). Of several keys it reads the first.

A private_key_provider is refused, with fallback too ("Failed to load private key
provider"): only builds with contrib extensions have some.`,
}, func(p *validate.Pass, c certificate) {
	switch {
	case c.GetPkcs12() != nil:
		return // bad-certificate
	case c.GetPrivateKeyProvider() != nil:
		c.report(p, "private_key_provider.provider_name", validate.Finding{
			Message: fmt.Sprintf("there is no private key provider %q in Envoy: they come with contrib builds", c.GetPrivateKeyProvider().GetProviderName()),
			Help:    "give the key as private_key, or leave this rule out with --disable bad-private-key",
		})
		return
	}
	leaf, _, err := c.load()
	key, known := content(c.GetPrivateKey())
	password, passwordKnown := content(c.GetPassword())
	if err != nil || isEmpty(c.GetCertificateChain()) || len(key) == 0 || !known || !passwordKnown {
		return // bad-certificate, incomplete-certificate, or not known
	}
	field, help := "private_key", "the key of the first certificate in certificate_chain, in PEM"
	switch err = boring.CheckKey(key, string(password), leaf); {
	case errors.Is(err, boring.ErrNoPassword):
		help = "put the password in, or decrypt the key: openssl pkey"
	case errors.Is(err, boring.ErrWrongPassword):
		field, help = "password", "give the password of private_key, without a line end behind it"
	}
	if err != nil {
		c.report(p, field, validate.Finding{Message: fmt.Sprintf("private_key can't be loaded: %v", err), Help: help})
	}
})
