package listen

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/tools/certs"
)

// faultyConn is a connection that panics.
type faultyConn struct{ nopConn }

func (faultyConn) RemoteAddr() net.Addr { panic("the address is faulty") }

func (faultyConn) Read([]byte) (int, error) { panic("the connection is faulty") }

// TestPanicOfAccept checks that a panic while a connection is admitted is an event, and that the next connection is
// accepted. A panic while a library reads the connection is an error and an event.
func TestPanicOfAccept(t *testing.T) {
	var log bytes.Buffer
	incoming := make(come)
	l := newArrivals(incoming, NewGate(GateOptions{Connections: 10, Rate: 1000, Log: event.New(slog.NewTextHandler(&log, nil))}))
	defer l.Close()
	go func() {
		incoming <- faultyConn{from("192.0.2.1", 1)}
		incoming <- from("192.0.2.2", 1)
	}()
	conn, err := l.Accept()
	if err != nil || conn.RemoteAddr().String() != "192.0.2.2:1" {
		t.Fatal(conn, err)
	}
	read := &gatedConn{Conn: faultyConn{}, gate: l.gate}
	if _, err := read.Read(nil); err == nil || err.Error() != "internal error: the connection is faulty" {
		t.Error(err)
	}
	for _, want := range []string{"the address is faulty", "the connection is faulty"} {
		if !strings.Contains(log.String(), `event=internal-error error="internal error: `+want+`"`) {
			t.Errorf("no event about %s:\n%s", want, &log)
		}
	}
}

// TestPanicOfKeys checks that a panic while certificates are read again is an event, and that handshakes go on with the
// certificates before.
func TestPanicOfKeys(t *testing.T) {
	dir := t.TempDir()
	files := Files{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	cert, key := certs.NewAuthority(t).Sign(1, "xds.test")
	for name, data := range map[string][]byte{files.Cert: cert, files.Key: key} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	k, err := OpenKeys(files, event.New(slog.NewTextHandler(&log, nil), func(r event.Record) {
		if _, ok := r.Event.(event.CertificatesUnreadable); ok {
			panic("the sink is faulty")
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.Cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.read = time.Time{} // longer ago than readAgain
	c, err := k.Config(false).GetConfigForClient(&tls.ClientHelloInfo{Conn: nopConn{}})
	if err != nil || len(c.Certificates) != 1 || !strings.Contains(log.String(), "event=internal-error") {
		t.Errorf("%v, %v\n%s", c, err, &log)
	}
}
