// Make-certs makes the certificates of the example, all signed by a CA of the example:
//
//	go run ./examples/secrets/make-certs TREE
//
//	TREE/secrets/server.yaml  Envoy's own certificate and key, an SDS resource
//	TREE/secrets/ca.yaml      the CA that Envoy trusts in upstreams, an SDS resource
//	TREE/certs/ca.pem         the CA, for clients
//	TREE/certs/ca-key.pem     its key
//	TREE/certs/billing.pem    the upstream's certificate and key
//
// A second run keeps the CA and renews the other files, as a certificate renewal does. Make-certs replaces
// files by rename, so that no reader sees half a file. The mode of files is 0600.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const day = 24 * time.Hour

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: go run ./examples/secrets/make-certs TREE")
		os.Exit(2)
	}
	if err := makeCerts(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "make-certs:", err)
		os.Exit(1)
	}
}

func makeCerts(tree string) error {
	for _, folder := range []string{"certs", "secrets"} {
		if err := os.MkdirAll(filepath.Join(tree, folder), 0o755); err != nil {
			return err
		}
	}
	ca, err := authority(filepath.Join(tree, "certs"))
	if err != nil {
		return err
	}
	server, err := ca.server("localhost", net.IPv4(127, 0, 0, 1), net.IPv6loopback)
	if err != nil {
		return err
	}
	billing, err := ca.server("billing.internal")
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, content string }{
		{"secrets/server.yaml", secret("server", "tls_certificate",
			field("certificate_chain", server.certPEM()), field("private_key", server.keyPEM))},
		{"secrets/ca.yaml", secret("ca", "validation_context", field("trusted_ca", ca.certPEM()))},
		{"certs/billing.pem", billing.certPEM() + billing.keyPEM},
	} {
		if err := replace(filepath.Join(tree, f.name), f.content); err != nil {
			return err
		}
		fmt.Println(filepath.Join(tree, f.name))
	}
	return nil
}

// secret returns an SDS resource as YAML.
func secret(name, kind string, fields ...string) string {
	return "# Made by make-certs.\n" +
		"\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\n" +
		"name: " + name + "\n" +
		kind + ":\n" + strings.Join(fields, "")
}

// field returns a DataSource with PEM text in it, as a block of YAML.
func field(name, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s:\n    inline_string: |\n", name)
	for line := range strings.Lines(text) {
		b.WriteString("      " + line)
	}
	return b.String()
}

// pair is a certificate and its key.
type pair struct {
	cert   *x509.Certificate
	key    crypto.Signer
	keyPEM string
}

func (p *pair) certPEM() string { return armour("CERTIFICATE", p.cert.Raw) }

// authority returns the CA in a directory, made if there is none.
func authority(dir string) (*pair, error) {
	certFile, keyFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
	known, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err == nil {
		return &pair{cert: known.Leaf, key: known.PrivateKey.(crypto.Signer)}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ca, err := sign(nil, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "xdspub example CA"},
		NotAfter:              time.Now().Add(3650 * day),
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
	})
	if err != nil {
		return nil, err
	}
	return ca, errors.Join(replace(keyFile, ca.keyPEM), replace(certFile, ca.certPEM()))
}

// server makes the pair of a server.
func (ca *pair) server(dns string, ips ...net.IP) (*pair, error) {
	return sign(ca, &x509.Certificate{
		Subject:     pkix.Name{CommonName: dns},
		DNSNames:    []string{dns},
		IPAddresses: ips,
		NotAfter:    time.Now().Add(90 * day),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// sign makes a key and has its certificate signed by a CA; nil is itself.
func sign(ca *pair, template *x509.Certificate) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if ca == nil {
		ca = &pair{cert: template, key: key}
	}
	template.NotBefore = time.Now().Add(-time.Hour) // clocks differ
	certDER, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	return &pair{cert: cert, key: key, keyPEM: armour("PRIVATE KEY", keyDER)}, err
}

func armour(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// replace writes a file of mode 0600 and renames it into place. Before the rename, the file is hidden from
// xdspub.
func replace(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	_, err = f.WriteString(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
