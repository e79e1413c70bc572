package csds

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"xdspub/internal/safefile"
)

// Files are those of TLS, in PEM, for who asks a server.
type Files struct {
	// CA has the certificates that sign that of the server. Empty means those of the system.
	CA string
	// Cert is the certificate chain of who asks, Key its private key; empty where the server
	// wants none.
	Cert, Key string
	// ServerName is the name in the certificate of the server. Empty means the host of the
	// address.
	ServerName string
}

// maxFile is beyond what a bundle of certificates has.
const maxFile = 4 << 20

// config reads the files.
func (f *Files) config(address string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ServerName: cmp.Or(f.ServerName, host)}
	if f.CA != "" {
		data, err := safefile.Read(f.CA, maxFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("CA %s: no certificate in PEM", f.CA)
		}
	}
	if f.Cert == "" {
		return c, nil
	}
	cert, err := safefile.Read(f.Cert, maxFile)
	if err != nil {
		return nil, err
	}
	key, err := safefile.Read(f.Key, maxFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s, key %s: %w", f.Cert, f.Key, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// explain returns an error of TLS as one that says what to do.
func (f *Files) explain(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("no certificate of %s signs that of the server: %w", cmp.Or(f.CA, "the system"), err)
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Errorf("%w; --tls-server-name says which name the server has", err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return fmt.Errorf("the server speaks no TLS on this address: %w", err)
	}
	remote, ok := errors.AsType[*net.OpError](err)
	switch {
	case !ok || remote.Op != "remote error": // an alert of TLS
		return err
	case f.Cert == "":
		return fmt.Errorf("the server wants the certificate of a client, give --tls-cert and --tls-key: %w", remote.Err)
	}
	return fmt.Errorf("the server rejects the certificate %s: %w", f.Cert, remote.Err)
}
