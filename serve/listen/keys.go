package listen

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/internal/expiry"
	"xdspub/internal/safefile"
)

// Files are the PEM files for TLS.
type Files struct {
	// Cert is the certificate chain of the server, Key its private key.
	Cert, Key string
	// ClientCA is a bundle of certificates that sign the certificates of clients. Empty means that clients
	// need no certificate.
	ClientCA string
}

// Keys are the current certificates of the server and of the client CA. Keys follows changes of their files.
type Keys struct {
	files Files
	log   *event.Log

	current atomic.Pointer[keys]

	// reading is held while a caller reads the files. Other callers don't wait, so that they get the current
	// keys even if the file system hangs.
	reading sync.Mutex
	read    time.Time // time of the last read
	seen    []byte    // last contents of the files, valid or not, or the last error
}

// keys are the parsed files.
type keys struct {
	certificate tls.Certificate
	clients     *x509.CertPool // nil if clients need no certificate
	// ca is the longest-lived certificate in clients; nil if clients need no certificate.
	ca *x509.Certificate
}

const (
	// readAgain is the age at which a handshake reads the files again. A replaced certificate is in use
	// within this time, and reading three small files costs less than a handshake.
	readAgain = time.Second
	// maxFile is the largest size of a file in bytes, above any bundle of certificates.
	maxFile = 4 << 20
)

// OpenKeys reads the files. The error names the file that is missing or invalid.
func OpenKeys(files Files, log *event.Log) (*Keys, error) {
	k := &Keys{files: files, log: log}
	data, err := k.files.read()
	if err != nil {
		return nil, err
	}
	now, err := data.parse(files)
	if err != nil {
		return nil, err
	}
	k.seen, k.read = data.all(), time.Now()
	k.current.Store(now)
	return k, nil
}

// Config returns a TLS 1.3 configuration that reads the files again during handshakes, at most once per
// readAgain. Keys compares contents, not modification times, because Kubernetes replaces a secret by changing
// a link. If the files don't match each other, as between two writes, the previous files stay in use. With a
// ClientCA, clients must present a certificate, unless optional is true.
func (k *Keys) Config(optional bool, protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		now := k.nowBy(func(read func()) { withoutTurn(hello.Conn, read) })
		// Disable tickets: a resumed session would not be checked against a new CA.
		c := &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: protocols,
			Certificates: []tls.Certificate{now.certificate}, SessionTicketsDisabled: true,
		}
		if now.clients != nil {
			c.ClientCAs, c.ClientAuth = now.clients, tls.RequireAndVerifyClientCert
			if optional {
				c.ClientAuth = tls.VerifyClientCertIfGiven
			}
		}
		return c, nil
	}}
}

// Certificate returns the validity of the server's certificate. Certificate may read the files again.
func (k *Keys) Certificate() expiry.Validity { return validityOf(k.now().certificate.Leaf) }

// ClientCA returns the validity of the longest-lived certificate in the ClientCA; zero if clients need no
// certificate.
func (k *Keys) ClientCA() expiry.Validity {
	if ca := k.now().ca; ca != nil {
		return validityOf(ca)
	}
	return expiry.Validity{}
}

func validityOf(c *x509.Certificate) expiry.Validity {
	return expiry.Validity{From: c.NotBefore, Until: c.NotAfter}
}

// watchEvery is the longest interval between two checks by Watch.
const watchEvery = time.Minute

// Watch logs certificates that expire soon or have expired, until ctx ends.
func (k *Keys) Watch(ctx context.Context) {
	var certificate, ca lifetime
	for {
		wait := min(watchEvery, certificate.log(k.log, k.files.Cert, k.Certificate()))
		if k.files.ClientCA != "" {
			wait = min(wait, ca.log(k.log, k.files.ClientCA, k.ClientCA()))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// lifetime is the last logged state of a certificate.
type lifetime struct {
	until  time.Time // end of the certificate
	logged expiry.State
}

// log logs that a certificate expires soon or has expired, once each. log returns the time until the next
// possible change of this state.
func (l *lifetime) log(to *event.Log, file string, v expiry.Validity) (quiet time.Duration) {
	if !v.Until.Equal(l.until) {
		*l = lifetime{until: v.Until}
	}
	now, before := time.Now(), l.logged
	switch l.logged = v.At(now); l.logged {
	case expiry.Expired:
		if before != expiry.Expired {
			to.Write(event.CertificateExpired{File: file, Expired: v.Until})
		}
		return watchEvery
	case expiry.ExpiresSoon:
		if before != expiry.ExpiresSoon {
			to.Write(event.CertificateExpiresSoon{File: file, Expires: v.Until})
		}
		return v.Until.Sub(now) + time.Nanosecond // the certificate is still valid at its end
	}
	return v.Soon().Sub(now)
}

// now returns the current keys.
func (k *Keys) now() *keys { return k.nowBy(func(read func()) { read() }) }

// nowBy returns the current keys. If the last read is older than readAgain, nowBy reads the files again:
// nowBy calls slowly, which must call read. Only one caller reads at a time; other callers get the previous
// keys.
func (k *Keys) nowBy(slowly func(read func())) *keys {
	if e := crash.Try(func() { k.renew(slowly) }); e != nil {
		k.log.Crashed(e) // the library that calls Config would drop the panic
	}
	return k.current.Load()
}

// renew reads the files again for nowBy.
func (k *Keys) renew(slowly func(read func())) {
	if !k.reading.TryLock() {
		return
	}
	defer k.reading.Unlock()
	if time.Since(k.read) < readAgain {
		return
	}
	k.read = time.Now()
	var data contents
	var err error
	slowly(func() { data, err = k.files.read() })
	if err != nil {
		if message := []byte(err.Error()); !bytes.Equal(message, k.seen) {
			k.seen = message
			k.log.Write(event.CertificatesUnreadable{Error: err})
		}
		return
	}
	all := data.all()
	if bytes.Equal(all, k.seen) {
		return
	}
	k.seen = all
	now, err := data.parse(k.files)
	if err != nil {
		k.log.Write(event.CertificatesUnreadable{Error: err})
		return
	}
	k.current.Store(now)
	k.log.Write(event.CertificatesRead{Expires: now.certificate.Leaf.NotAfter})
}

// contents are the bytes of Files.
type contents struct{ cert, key, ca []byte }

func (c contents) all() []byte { return bytes.Join([][]byte{c.cert, c.key, c.ca}, []byte{0}) }

func (f Files) read() (c contents, err error) {
	for _, file := range []struct {
		path string
		to   *[]byte
	}{{f.Cert, &c.cert}, {f.Key, &c.key}, {f.ClientCA, &c.ca}} {
		if file.path == "" {
			continue
		}
		if *file.to, err = safefile.Read(file.path, maxFile); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c contents) parse(f Files) (*keys, error) {
	certificate, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s, key %s: %w", f.Cert, f.Key, err)
	}
	if isCut(c.cert) {
		return nil, fmt.Errorf("certificate %s: %w", f.Cert, errCut)
	}
	k := &keys{certificate: certificate}
	if f.ClientCA != "" {
		if isCut(c.ca) {
			return nil, fmt.Errorf("client CA %s: %w", f.ClientCA, errCut)
		}
		k.clients = x509.NewCertPool()
		for _, ca := range certificatesIn(c.ca) {
			k.clients.AddCert(ca)
			if k.ca == nil || ca.NotAfter.After(k.ca.NotAfter) {
				k.ca = ca
			}
		}
		if k.ca == nil {
			return nil, fmt.Errorf("client CA %s: %w", f.ClientCA, errors.New("no certificate in PEM"))
		}
	}
	return k, nil
}

var errCut = errors.New("a certificate has a beginning and no end, as in a file that is still being written")

// isCut reports whether the last certificate in a PEM text is truncated. The library ignores a truncated
// certificate, so the clients of that CA would be refused while the file is being written.
func isCut(text []byte) bool {
	const begin = "-----BEGIN CERTIFICATE-----"
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
	}
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	return bytes.Contains(text, []byte(begin)) || len(last) > 0 && bytes.HasPrefix([]byte(begin), last)
}

// certificatesIn returns the certificates in a PEM text. Like x509.CertPool.AppendCertsFromPEM,
// certificatesIn ignores other blocks and malformed certificates.
func certificatesIn(text []byte) (list []*x509.Certificate) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return list
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, c)
		}
	}
}
