package boring

import (
	"encoding/asn1"
	"errors"

	"software.sslmate.com/src/go-pkcs12"
)

// PKCS12 reads a certificate with its key, and checks that the key belongs to the certificate. The certificate and
// the error are both nil if this package can't tell BoringSSL's verdict.
func PKCS12(der []byte, password string) (*Certificate, error) {
	var outer struct {
		Version int
		Content asn1.RawValue
		MAC     asn1.RawValue `asn1:"optional"`
	}
	if rest, err := asn1.Unmarshal(der, &outer); err != nil || len(rest) > 0 {
		return nil, errors.New("not PKCS #12")
	}
	key, first, _, err := pkcs12.DecodeChain(der, password)
	switch {
	case errors.As(err, new(pkcs12.NotImplementedError)):
		return nil, nil
	case errors.Is(err, pkcs12.ErrIncorrectPassword), errors.Is(err, pkcs12.ErrDecryption):
		return nil, errors.New("the password does not open it")
	case err != nil:
		return nil, errors.New("it does not hold one certificate with its key")
	}
	leaf, _, err := parseCertificate(first.Raw)
	if err != nil {
		return nil, nil
	}
	return leaf, leaf.checkPair(key)
}
