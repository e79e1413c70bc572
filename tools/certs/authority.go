package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"
)

// Authority signs certificates that are valid now, for tests that connect.
type Authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// NewAuthority returns an Authority.
func NewAuthority(t testing.TB) *Authority { return NewAuthorityUntil(t, time.Now().Add(time.Hour)) }

// NewAuthorityUntil returns an Authority whose own certificate is valid until a time.
func NewAuthorityUntil(t testing.TB, until time.Time) *Authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{t: t, key: key}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// PEM returns the certificate of the Authority.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Sign returns a certificate with some names, and its key, both as PEM. The first name is the common name, too. The
// certificate is valid for an hour.
func (a *Authority) Sign(serial int64, names ...string) (cert, key []byte) {
	a.t.Helper()
	return a.SignUntil(time.Now().Add(time.Hour), serial, names...)
}

// SignUntil is Sign for a certificate that is valid until a time.
func (a *Authority) SignUntil(until time.Time, serial int64, names ...string) (cert, key []byte) {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: until}
	if len(names) > 0 {
		c.Subject.CommonName = names[0] // the user of an etcd
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else if u, err := url.Parse(name); err == nil && u.Scheme != "" {
			c.URIs = append(c.URIs, u)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, k.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}
