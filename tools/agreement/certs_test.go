package agreement

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// certificates makes the keys and certificates that the cases name as certs/….
func certificates(t *testing.T, dir string) {
	t.Helper()
	write := func(name string, data ...[]byte) {
		if err := os.WriteFile(filepath.Join(dir, name), slices.Concat(data...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test-ca"}, NotBefore: year(2020), NotAfter: year(2090),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	caKey := rsaKey(t, 2048)
	caPEM := sign(t, ca, ca, caKey.Public(), caKey)
	write("ca.pem", caPEM)
	write("ca.key", keyPEM(t, caKey))
	pair := func(name string, key crypto.Signer, from, to int) {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name + ".example.com"},
			DNSNames: []string{name + ".example.com"}, NotBefore: year(from), NotAfter: year(to),
		}
		write(name+".key", keyPEM(t, key))
		write(name+".pem", sign(t, leaf, ca, key.Public(), caKey))
	}
	first := rsaKey(t, 2048)
	pair("rsa", first, 2020, 2090)
	pair("rsa2", rsaKey(t, 2048), 2020, 2090)
	pair("weak", rsaKey(t, 1024), 2020, 2090)
	pair("ec", ecKey(t, elliptic.P256()), 2020, 2090)
	pair("ec2", ecKey(t, elliptic.P256()), 2020, 2090)
	pair("ec521", ecKey(t, elliptic.P521()), 2020, 2090)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pair("ed", ed, 2020, 2090)
	pair("expired", ecKey(t, elliptic.P256()), 2020, 2021)
	pair("future", ecKey(t, elliptic.P256()), 2090, 2091)
	// The function is deprecated as weak. The case needs only a key with a password.
	//lint:ignore SA1019 see above
	block, err := x509.EncryptPEMBlock(rand.Reader, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(first), []byte("secret"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	write("rsa_enc.key", pem.EncodeToMemory(block))
	leaf, err := os.ReadFile(filepath.Join(dir, "rsa.pem"))
	if err != nil {
		t.Fatal(err)
	}
	write("rsa_chain.pem", leaf, caPEM)
	write("junk.pem", []byte("not a certificate\n"))
	write("empty.pem")
	write("ticket80.key", make([]byte, 80))
	write("ticket48.key", make([]byte, 48))
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ecKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, certificate, parent *x509.Certificate, public any, key crypto.Signer) []byte {
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(t *testing.T, key crypto.Signer) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
