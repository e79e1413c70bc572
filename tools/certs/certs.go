// Package certs makes the certificates and keys that test cases need, so that the repository holds none. A case
// names a file in braces:
//
//	private_key: {inline_string: {{text "server.key"}}}
//	ocsp_staple: {inline_bytes: {{bytes "server.ocsp"}}}
//
// Expand replaces the braces by the file: text is a string of YAML or JSON on the same line, bytes is base64, and
// {{raw "server.pem"}} is the file as it is.
package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"golang.org/x/crypto/ocsp"
	"software.sslmate.com/src/go-pkcs12"
)

// Now is a time at which the certificates are valid, except the certificates that are named after a fault.
var Now = year(2030)

var named = regexp.MustCompile(`\{\{(?:text|bytes|raw)((?: "[^"]+")+)\}\}`)

// Show replaces the braces by the names of the files, for readers.
func Show(text []byte) []byte {
	return named.ReplaceAllFunc(text, func(found []byte) []byte {
		names := strings.ReplaceAll(string(named.FindSubmatch(found)[1]), `"`, "")
		return []byte(`"<` + strings.ReplaceAll(strings.TrimSpace(names), " ", ", ") + `>"`)
	})
}

// Expand replaces the braces in a text by the files. It returns an error if there is no file of a name.
func Expand(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte("{{")) {
		return text, nil
	}
	made, err := all()
	if err != nil {
		return nil, err
	}
	find := func(name string) ([]byte, error) {
		if data, ok := made[name]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("no %q is made", name)
	}
	functions := template.FuncMap{
		"raw": func(name string) (string, error) { data, err := find(name); return string(data), err },
		"text": func(names ...string) (string, error) {
			var joined []byte
			for _, name := range names {
				data, err := find(name)
				if err != nil {
					return "", err
				}
				joined = append(joined, data...)
			}
			return strconv.Quote(string(joined)), nil
		},
		"bytes": func(name string) (string, error) {
			data, err := find(name)
			return base64.StdEncoding.EncodeToString(data), err
		},
	}
	t, err := template.New("").Funcs(functions).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, nil)
	return b.Bytes(), err
}

// all returns the files by name. It makes them at the first call.
var all = sync.OnceValues(func() (map[string][]byte, error) {
	m := maker{files: make(map[string][]byte)}
	m.make()
	return m.files, errors.Join(m.errs...)
})

type maker struct {
	files map[string][]byte
	errs  []error

	ca    *x509.Certificate
	caKey crypto.Signer
	last  int64 // serial number
}

// password opens encrypted.key and server.p12.
const password = "secret"

func (m *maker) make() {
	m.caKey = m.key(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	m.ca = m.certificate("ca", m.caKey, x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
	m.files["broken.pem"] = m.files["ca.pem"][:200]

	server := m.key(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	leaf := m.certificate("server", server, x509.Certificate{DNSNames: []string{"server.example.com"}})
	m.keyFile("server.key", server)
	m.certificate("nameless", server, x509.Certificate{Subject: pkix.Name{Organization: []string{"nobody"}}})
	m.certificate("signer", server, x509.Certificate{KeyUsage: x509.KeyUsageCertSign})
	m.certificate("must-staple", server, x509.Certificate{ExtraExtensions: []pkix.Extension{{
		Id: []int{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, 5},
	}}})
	m.certificate("expired", server, x509.Certificate{NotBefore: year(2020), NotAfter: year(2021)})
	m.certificate("soon", server, x509.Certificate{NotBefore: year(2020), NotAfter: Now.AddDate(0, 0, 7)})
	m.certificate("future", server, x509.Certificate{NotBefore: year(2098), NotAfter: year(2099)})
	m.ocsp("server.ocsp", leaf.SerialNumber, year(2099))
	m.ocsp("expired.ocsp", leaf.SerialNumber, year(2021))
	m.ocsp("other.ocsp", big.NewInt(4711), year(2099))
	m.files["refused.ocsp"] = ocsp.TryLaterErrorResponse
	m.files["ticket.key"] = bytes.Repeat([]byte{7}, 80)
	m.files["short.key"] = bytes.Repeat([]byte{7}, 48)

	for name, key := range map[string]crypto.Signer{
		"other":   m.key(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
		"p521":    m.key(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
		"p224":    m.key(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)),
		"ed25519": m.key(ed25519Key()),
		"rsa":     m.key(rsa.GenerateKey(rand.Reader, 2048)),
		"weak":    m.key(rsa.GenerateKey(rand.Reader, 1024)),
	} {
		m.certificate(name, key, x509.Certificate{})
		m.keyFile(name+".key", key)
	}
	m.encrypted("encrypted.key", server)
	var err error
	m.files["server.p12"], err = pkcs12.Modern.Encode(server, leaf, nil, password)
	m.failed(err)
	crl, err := x509.CreateRevocationList(rand.Reader,
		&x509.RevocationList{Number: big.NewInt(1), ThisUpdate: year(2020), NextUpdate: year(2099)}, m.ca, m.caKey)
	m.failed(err)
	m.files["ca.crl"] = pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: crl})
}

func year(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }

func (m *maker) failed(err error) {
	if err != nil {
		m.errs = append(m.errs, err)
	}
}

func (m *maker) key(key crypto.Signer, err error) crypto.Signer {
	m.failed(err)
	return key
}

func ed25519Key() (crypto.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

// certificate makes name.pem, signed by the CA. The CA's own certificate is self-signed.
func (m *maker) certificate(name string, key crypto.Signer, template x509.Certificate) *x509.Certificate {
	m.last++
	template.SerialNumber = big.NewInt(m.last)
	if template.Subject.String() == "" {
		template.Subject.CommonName = name + ".example.com"
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = year(2020), year(2099)
	}
	issuer := m.ca
	if issuer == nil {
		issuer = &template
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, issuer, key.Public(), m.caKey)
	m.failed(err)
	made, err := x509.ParseCertificate(der)
	m.failed(err)
	m.files[name+".pem"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return made
}

func (m *maker) keyFile(name string, key crypto.Signer) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	m.failed(err)
	m.files[name] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// encrypted makes an encrypted key in OpenSSL's form, which is the only encrypted form that Go writes.
func (m *maker) encrypted(name string, key crypto.Signer) {
	der, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	m.failed(err)
	//lint:ignore SA1019 Envoy takes such keys, so they must be tried
	block, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", der, []byte(password), x509.PEMCipherAES256)
	m.failed(err)
	m.files[name] = pem.EncodeToMemory(block)
}

func (m *maker) ocsp(name string, serial *big.Int, until time.Time) {
	var err error
	m.files[name], err = ocsp.CreateResponse(m.ca, m.ca,
		ocsp.Response{Status: ocsp.Good, SerialNumber: serial, ThisUpdate: year(2020), NextUpdate: until}, m.caKey)
	m.failed(err)
}
