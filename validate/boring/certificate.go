package boring

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Certificate holds the fields of an X.509 certificate that decide whether Envoy can use the certificate.
type Certificate struct {
	NotBefore, NotAfter time.Time
	// MustStaple means that clients expect an OCSP response with the certificate.
	MustStaple bool

	serial *big.Int
	// key is nil if Go can't parse a key of this kind.
	key interface{ Equal(crypto.PublicKey) bool }
	// signs is false if the certificate has a key usage without digital signature.
	signs    bool
	emptyCN  bool
	hasNames bool
}

// The ASN.1 of a certificate, without the fields that this package does not read.
type (
	certificate struct {
		TBS       tbsCertificate
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	tbsCertificate struct {
		Version       int `asn1:"optional,explicit,default:0,tag:0"`
		Serial        *big.Int
		Algorithm     pkix.AlgorithmIdentifier
		Issuer        asn1.RawValue
		Validity      struct{ NotBefore, NotAfter time.Time }
		Subject       asn1.RawValue
		Key           asn1.RawValue
		IssuerUnique  asn1.BitString   `asn1:"optional,tag:1"`
		SubjectUnique asn1.BitString   `asn1:"optional,tag:2"`
		Extensions    []pkix.Extension `asn1:"optional,explicit,tag:3"`
	}
)

var (
	oidCommonName = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidKeyUsage   = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidAltName    = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidTLSFeature = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}

	// mustStaple is the value of a TLS feature extension that has the feature status_request alone.
	mustStaple = []byte{0x30, 3, 2, 1, 5}
)

// Chain parses the certificate of a TLS endpoint and the certificates of its issuers, and returns the first. Chain
// skips PEM blocks of other kinds. A text without a certificate is an error.
func Chain(text []byte) (leaf *Certificate, err error) {
	list, broken := blocks(text)
	for _, b := range list {
		if !slices.Contains(trustedLabels, b.label) {
			continue
		}
		if leaf != nil && !slices.Contains(certificateLabels, b.label) {
			continue
		}
		c, err := b.certificate()
		if err != nil {
			return nil, err
		}
		if leaf == nil {
			leaf = c
		}
	}
	switch {
	case broken != nil:
		return nil, broken
	case leaf == nil:
		return nil, noBlock(text, "certificate", list)
	default:
		return leaf, nil
	}
}

// certificate parses the block. In a TRUSTED CERTIFICATE, trust settings may follow the certificate.
func (b block) certificate() (*Certificate, error) {
	if b.header != "" {
		return nil, errHeader
	}
	c, rest, err := parseCertificate(b.data)
	if err != nil || len(rest) > 0 && b.label != "TRUSTED CERTIFICATE" {
		return nil, fmt.Errorf("a PEM block %q is not an X.509 certificate", b.label)
	}
	return c, nil
}

func parseCertificate(der []byte) (_ *Certificate, rest []byte, err error) {
	var parsed certificate
	if rest, err = asn1.Unmarshal(der, &parsed); err != nil {
		return nil, nil, err
	}
	tbs := parsed.TBS
	c := &Certificate{NotBefore: tbs.Validity.NotBefore, NotAfter: tbs.Validity.NotAfter, serial: tbs.Serial, signs: true}
	key, err := x509.ParsePKIXPublicKey(tbs.Key.FullBytes)
	if err == nil {
		c.key, _ = key.(interface{ Equal(crypto.PublicKey) bool })
	}
	if name, ok := commonName(tbs.Subject.FullBytes); ok {
		c.hasNames, c.emptyCN = true, name == ""
	}
	for _, e := range tbs.Extensions {
		switch {
		case e.Id.Equal(oidTLSFeature):
			c.MustStaple = bytes.Equal(e.Value, mustStaple)
		case e.Id.Equal(oidAltName):
			c.hasNames = c.hasNames || hasAltNames(e.Value)
		case e.Id.Equal(oidKeyUsage):
			var usage asn1.BitString
			if _, err := asn1.Unmarshal(e.Value, &usage); err == nil {
				c.signs = usage.At(0) != 0
			}
		}
	}
	return c, rest, nil
}

// commonName returns the first common name of a subject. ok is false if the subject has none. For a subject that Go
// can't parse, commonName returns "?" and true.
func commonName(subject []byte) (name string, ok bool) {
	var sequence pkix.RDNSequence
	if _, err := asn1.Unmarshal(subject, &sequence); err != nil {
		return "?", true
	}
	for _, set := range sequence {
		for _, attribute := range set {
			if attribute.Type.Equal(oidCommonName) {
				return fmt.Sprint(attribute.Value), true
			}
		}
	}
	return "", false
}

// hasAltNames reports whether a subject alternative name extension has a DNS name, a URI or an IP address: Envoy
// ignores other kinds. It returns true if Go can't parse the extension.
func hasAltNames(der []byte) bool {
	var names []asn1.RawValue
	if _, err := asn1.Unmarshal(der, &names); err != nil {
		return true
	}
	const dns, uri, ip = 2, 6, 7
	return slices.ContainsFunc(names, func(v asn1.RawValue) bool {
		return v.Class == asn1.ClassContextSpecific && (v.Tag == dns || v.Tag == uri || v.Tag == ip)
	})
}

// Usable returns the reason why Envoy can't use the certificate as its own, or nil. Usable looks at the key alone.
func (c *Certificate) Usable() error {
	switch key := c.key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < 2048 {
			return fmt.Errorf("its RSA key has %d bits, and needs at least 2048", bits)
		}
	case *ecdsa.PublicKey:
		if bits := key.Curve.Params().BitSize; bits < 256 {
			return fmt.Errorf("its key is on the curve %s, and Envoy accepts P-256, P-384 and P-521", key.Curve.Params().Name)
		}
		if !c.signs {
			return errors.New("the key usage of this ECDSA certificate does not include digital signature")
		}
	case ed25519.PublicKey:
	default:
		return errors.New("unsupported key type; Envoy accepts RSA, Ed25519, and ECDSA on P-256, P-384 and P-521")
	}
	return nil
}

// UsableByServer returns a further reason why a server can't use the certificate, or nil. It does not repeat the
// checks of Usable.
func (c *Certificate) UsableByServer() error {
	switch {
	case c.emptyCN:
		return errors.New("its common name is empty")
	case !c.hasNames:
		return errors.New("it has neither a common name nor a DNS, URI or IP subject alternative name")
	default:
		return nil
	}
}

// UsableByQUIC returns a further reason why a QUIC server can't use the certificate, or nil. It does not repeat the
// checks of Usable and UsableByServer.
func (c *Certificate) UsableByQUIC() error {
	if _, ok := c.key.(ed25519.PublicKey); ok {
		return errors.New("QUIC does not support its Ed25519 key; it accepts RSA and ECDSA")
	}
	return nil
}

// IsCertificate reports whether der is exactly one certificate in DER.
func IsCertificate(der []byte) bool {
	_, rest, err := parseCertificate(der)
	return err == nil && len(rest) == 0
}
