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
	"xdspub/internal/expiry"
	"xdspub/internal/safefile"
)

// Files are those of TLS, in PEM.
type Files struct {
	// Cert is the certificate chain of the server, Key its private key.
	Cert, Key string
	// ClientCA has the certificates that sign those of clients. Empty means that clients need
	// none.
	ClientCA string
}

// Keys are the certificates of the server and of who signs those of clients, as their files are
// now.
type Keys struct {
	files Files
	log   *event.Log

	current atomic.Pointer[keys]

	// reading is held by whoever reads the files: a file system that hangs holds up no other.
	reading sync.Mutex
	read    time.Time
	seen    []byte // what was read last, good or bad
}

// keys are what the files say.
type keys struct {
	certificate tls.Certificate
	clients     *x509.CertPool // nil where clients need no certificate
	// ca is the certificate in clients that is valid for the longest time; nil where clients need none.
	ca *x509.Certificate
}

const (
	// readAgain is how old what was read may be when a client connects. Who replaces a
	// certificate does not wait for longer than that, and reading three small files costs less
	// than a handshake.
	readAgain = time.Second
	// maxFile is beyond what a bundle of certificates has.
	maxFile = 4 << 20
)

// OpenKeys reads the files.
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

// Config returns a configuration of TLS 1.3 that reads the files again when a client connects:
// what they hold counts, not their times, since a secret of Kubernetes is replaced by a link. Files
// that don't fit together, as between two writes, leave what was read before. Clients must have a
// certificate if there is a ClientCA, or, where optional is true, may have one.
func (k *Keys) Config(optional bool, protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		now := k.nowBy(func(read func()) { withoutTurn(hello.Conn, read) })
		// No tickets: a session that goes on is not held against another CA.
		c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: protocols, Certificates: []tls.Certificate{now.certificate}, SessionTicketsDisabled: true}
		if now.clients != nil {
			c.ClientCAs, c.ClientAuth = now.clients, tls.RequireAndVerifyClientCert
			if optional {
				c.ClientAuth = tls.VerifyClientCertIfGiven
			}
		}
		return c, nil
	}}
}

// Certificate returns the validity of the server's certificate.
func (k *Keys) Certificate() expiry.Validity { return validityOf(k.now().certificate.Leaf) }

// ClientCA returns the validity of the certificate of the ClientCA that is valid for the longest time. It is zero if
// clients need no certificate.
func (k *Keys) ClientCA() expiry.Validity {
	if ca := k.now().ca; ca != nil {
		return validityOf(ca)
	}
	return expiry.Validity{}
}

func validityOf(c *x509.Certificate) expiry.Validity {
	return expiry.Validity{From: c.NotBefore, Until: c.NotAfter}
}

// watchEvery is how often Watch reads the files at least.
const watchEvery = time.Minute

// Watch logs when a certificate expires soon, and when it has expired, until ctx ends.
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

// lifetime is what was logged of a certificate.
type lifetime struct {
	until  time.Time // its end
	logged expiry.State
}

// log logs what is new about the certificate of a file, and returns the time until the next news of the same certificate.
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
		return v.Until.Sub(now) + time.Nanosecond // a certificate is valid at the time of its end
	}
	return v.Soon().Sub(now)
}

// now returns what the files hold.
func (k *Keys) now() *keys { return k.nowBy(func(read func()) { read() }) }

// nowBy returns what the files hold. Only one caller at a time reads the files: nowBy calls slowly with the function that reads.
func (k *Keys) nowBy(slowly func(read func())) *keys {
	if !k.reading.TryLock() {
		return k.current.Load()
	}
	defer k.reading.Unlock()
	if time.Since(k.read) < readAgain {
		return k.current.Load()
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
		return k.current.Load()
	}
	all := data.all()
	if bytes.Equal(all, k.seen) {
		return k.current.Load()
	}
	k.seen = all
	now, err := data.parse(k.files)
	if err != nil {
		k.log.Write(event.CertificatesUnreadable{Error: err})
		return k.current.Load()
	}
	k.current.Store(now)
	k.log.Write(event.CertificatesRead{Expires: now.certificate.Leaf.NotAfter})
	return now
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

var errCut = errors.New("a certificate has a beginning and no end, as in a file that is written now")

// isCut reports whether the last certificate of a text in PEM has no end, or not all of the line that begins it. The
// library ignores such a certificate: for a moment, clients of the last CA would be refused.
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

// certificatesIn returns the certificates of a text in PEM. Other blocks do not count, nor does a certificate that can't be
// read, as with x509.CertPool.AppendCertsFromPEM.
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
