package store

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/tools/certs"
	"xdspub/tools/etcdtest"
)

// files returns an empty directory, and a function that writes a file in the directory and returns its path.
func files(t *testing.T) (dir string, file func(name string, data []byte) string) {
	t.Helper()
	dir = t.TempDir()
	return dir, func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// TestFaultsOfTLS: if no connection works, the error names the cause of each server and the option that helps.
func TestFaultsOfTLS(t *testing.T) {
	ca, other := certs.NewAuthority(t), certs.NewAuthority(t)
	dir, file := files(t)
	cert, key := ca.Sign(2, "127.0.0.1")
	good := Options{CA: file("ca.pem", ca.PEM())}
	s := etcdtest.Start(t, "--cert-file="+file("cert.pem", cert), "--key-file="+file("key.pem", key), "--client-cert-auth", "--trusted-ca-file="+good.CA)
	plain := etcdtest.Start(t)
	cert, key = ca.Sign(3, "m1")
	good.Cert, good.Key = file("m1.pem", cert), file("m1.key", key)
	with := func(edit func(*Options)) Options {
		o := good
		edit(&o)
		return o
	}
	stranger := func(o *Options) {
		cert, key := other.Sign(4, "m1")
		o.Cert, o.Key = file("other.pem", cert), file("other.key", key)
	}
	expired := func(o *Options) {
		cert, key := ca.SignUntil(time.Now().Add(-time.Minute), 5, "m1")
		o.Cert, o.Key = file("late.pem", cert), file("late.key", key)
	}
	port := strings.TrimPrefix(s.Endpoint, "127.0.0.1:")
	for _, c := range []struct {
		name, server string
		o            Options
		want         string
	}{
		{"good", s.Endpoint, good, "the store has no key /test/heads/-"},
		{"other CA", s.Endpoint, with(func(o *Options) { o.CA = file("other-ca.pem", other.PEM()) }), "no CA certificate of " + filepath.Join(dir, "other-ca.pem") + " signs the certificate of the server"},
		{"other name", "localhost:" + port, good, "wanted to match localhost; connect to a name in the certificate"},
		{"no client certificate", s.Endpoint, Options{CA: good.CA}, "the server needs a client certificate, give --store-cert and --store-key"},
		{"client certificate of another CA", s.Endpoint, with(stranger), "the server rejects the certificate " + filepath.Join(dir, "other.pem")},
		{"expired client certificate", s.Endpoint, with(expired), "the server rejects the certificate " + filepath.Join(dir, "late.pem")},
		{"expired server certificate", expiredServer(t, ca), good, "Z: renew the certificate, or correct the clock"},
		{"no TLS", s.Endpoint, Options{}, "the server closed the connection; if it serves by TLS, give --store-ca"},
		{"TLS to a plain etcd", plain.Endpoint, good, "the server does not use TLS on this address"},
		{"two servers", "127.0.0.1:1," + plain.Endpoint, good, "127.0.0.1:1: connect: connection refused, " + plain.Endpoint + ": the server closed the connection: the server does not use TLS on this address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var err error
			if c.o.Address, err = ParseAddress(Scheme + c.server + "/test"); err != nil {
				t.Fatal(err)
			}
			if _, err = Ask(t.Context(), c.o, ""); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// expiredServer returns the address of a server whose certificate has expired.
func expiredServer(t *testing.T, ca *certs.Authority) string {
	t.Helper()
	cert, key := ca.SignUntil(time.Now().Add(-time.Minute), 6, "127.0.0.1")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.(*tls.Conn).Handshake() // the client ends the handshake
			}()
		}
	}()
	return l.Addr().String()
}
