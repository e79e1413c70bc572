package grpcdial

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"xdspub/internal/safefile"
)

// Files are the PEM files for TLS to a server.
type Files struct {
	// CA is a bundle of certificates that sign the server's certificate. Empty means the system's
	// certificates.
	CA string
	// Cert is the client's certificate chain, Key its private key. Both are empty if the server needs no
	// client certificate.
	Cert, Key string
	// ServerName is the name in the server's certificate; empty for the host of the address. FixedName means that no
	// option sets ServerName, so that errors name no such option.
	ServerName string
	FixedName  bool
}

// maxFile is the largest size of a file in bytes, above any bundle of certificates.
const maxFile = 4 << 20

// config reads the files, and returns a TLS 1.3 configuration for a server at HOST:PORT.
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

// explain adds the cause or the remedy to the error of a TLS handshake.
func (f *Files) explain(options string, err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("no CA certificate of %s signs the certificate of the server: %w", cmp.Or(f.CA, "the system"), err)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return fmt.Errorf("a certificate of the server is valid from %s to %s: renew the certificate, or correct the clock of this machine",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339)) // the text of err changes with the time
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok && f.FixedName {
		return fmt.Errorf("%w; connect to a name in the certificate", err)
	} else if ok {
		return fmt.Errorf("%w; give the name in the certificate with %s-server-name", err, options)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return fmt.Errorf("the server does not use TLS on this address: %w", err)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the server closed the connection: the server does not use TLS on this address, or refuses this client: %w", err)
	}
	remote, ok := errors.AsType[*net.OpError](err)
	switch {
	case !ok || remote.Op != "remote error": // an alert of TLS
		return err
	case f.Cert == "":
		return fmt.Errorf("the server needs a client certificate, give %s-cert and %s-key: %w", options, options, remote.Err)
	}
	return fmt.Errorf("the server rejects the certificate %s: %w", f.Cert, remote.Err)
}
