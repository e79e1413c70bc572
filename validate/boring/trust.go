package boring

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
)

// Trust is the content of a file of trust anchors.
type Trust struct {
	Certificates []*Certificate
	// CRLs counts the certificate revocation lists.
	CRLs int
}

// ReadTrust reads certificates and revocation lists. A text without any of them is not an error.
func ReadTrust(text []byte) (t Trust, err error) {
	list, broken := blocks(text)
	for _, b := range list {
		switch {
		case slices.Contains(trustedLabels, b.label):
			c, err := b.certificate()
			if err != nil {
				return t, err
			}
			t.Certificates = append(t.Certificates, c)
		case b.label == crlLabel:
			// x509.ParseRevocationList is stricter than BoringSSL.
			var crl pkix.CertificateList
			if rest, err := asn1.Unmarshal(b.data, &crl); err != nil || len(rest) > 0 {
				return t, fmt.Errorf("a PEM block %q is not a certificate revocation list", b.label)
			}
			t.CRLs++
		}
	}
	return t, broken
}

// NoCertificate explains why a text holds no certificate.
func NoCertificate(text []byte) error {
	list, _ := blocks(text)
	return noBlock(text, "certificate", list)
}

// NoCRL explains why a text holds no certificate revocation list.
func NoCRL(text []byte) error {
	list, _ := blocks(text)
	return noBlock(text, "certificate revocation list", list)
}
