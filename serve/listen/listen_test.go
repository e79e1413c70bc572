package listen

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xdspub/event"
	"xdspub/internal/addr"
	"xdspub/serve/memory"
	"xdspub/serve/turns"
	"xdspub/tools/certs"
)

// TestLoopback checks that Listen without TLS refuses an address that other machines can connect to, unless
// Insecure is set.
func TestLoopback(t *testing.T) {
	for host, local := range map[string]bool{
		"127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true, "localhost": true,
		"": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "localhost.test": false, "0": false,
	} {
		a, err := addr.Parse(net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		if a.Local() != local {
			t.Errorf("%s: local is %v", a, a.Local())
		}
	}
	if _, err := Listen(t.Context(), addr.Address{Network: "tcp", Name: "0.0.0.0:0"}, Options{}); err == nil || !strings.Contains(err.Error(), "--insecure") {
		t.Error(err)
	}
	for _, o := range []Options{{Insecure: true}, {Keys: new(Keys)}} {
		l, err := Listen(t.Context(), addr.Address{Network: "tcp", Name: "0.0.0.0:0"}, o)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}

func TestSocket(t *testing.T) {
	dir := t.TempDir()
	at := addr.Address{Network: "unix", Name: filepath.Join(dir, "s")}
	l, err := Listen(t.Context(), at, Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(at.Name)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Listen(t.Context(), at, Options{}); err == nil || !strings.Contains(err.Error(), "another process listens on the socket") {
		t.Errorf("a live socket: %v", err)
	}
	// Close keeps a file that another process has created.
	if err := os.Remove(at.Name); err != nil {
		t.Fatal(err)
	}
	other, err := Listen(t.Context(), at, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Lstat(at.Name); err != nil {
		t.Error("the file of another was removed")
	}
	other.Close()
	if _, err := os.Lstat(at.Name); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}

	// Listen replaces the file of a process that was killed.
	stale, err := net.Listen("unix", at.Name)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	l, err = Listen(t.Context(), at, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()

	// Listen keeps a file that is not a socket.
	for name, make := range map[string]func(path string) error{
		"file":   func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":   func(path string) error { return os.Symlink(filepath.Join(dir, "file"), path) },
	} {
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(t.Context(), addr.Address{Network: "unix", Name: path}, Options{}); err == nil || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Listen(t.Context(), addr.Address{Network: "unix", Name: filepath.Join(dir, "none", "s")}, Options{}); err == nil {
		t.Error("no folder")
	}
	if _, err := Listen(t.Context(), addr.Address{Network: "unix", Name: filepath.Join(dir, strings.Repeat("x", 120))}, Options{}); err == nil {
		t.Error("no system has such long names")
	}
}

// TestSocketIsMadeAgain checks that a removed socket file is created again with its mode, and that
// connections stay. Another process's file is kept, and logged once.
func TestSocketIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := addr.Address{Network: "unix", Name: filepath.Join(dir, "s")}
	var log bytes.Buffer
	l, err := Listen(t.Context(), at, Options{Log: event.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	connect := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("unix", at.Name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		served := <-accepted
		go func() {
			defer served.Close()
			_, _ = io.CopyN(served, served, 1)
		}()
		return conn
	}
	answers := func(conn net.Conn) {
		t.Helper()
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	stays := connect()
	look := func(event string) {
		t.Helper()
		for range 2 {
			l.(*socket).look(t.Context())
		}
		if n := strings.Count(log.String(), "event="); n != strings.Count(log.String(), "event="+event) || n > 1 || (n == 0) != (event == "") {
			t.Errorf("%s: %s", event, log.String())
		}
		log.Reset()
	}
	look("")
	for name, take := range map[string]func() error{
		"removed":         func() error { return os.Remove(at.Name) },
		"moved":           func() error { return os.Rename(at.Name, at.Name+".moved") },
		"folder replaced": func() error { return errors.Join(os.Rename(dir, dir+".moved"), os.Mkdir(dir, 0o700)) },
	} {
		if err := take(); err != nil {
			t.Fatal(name, err)
		}
		look("socket-made-again")
		answers(connect())
		if info, err := os.Lstat(at.Name); err != nil || info.Mode().Perm() != socketMode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	// The file is another process's, then a link, and then missing.
	if err := os.Remove(at.Name); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", at.Name)
	if err != nil {
		t.Fatal(err)
	}
	look("socket-lost")
	look("")
	other.Close() // which removes its file
	if err := os.Symlink("/dev/null", at.Name); err != nil {
		t.Fatal(err)
	}
	look("")
	if err := os.Remove(at.Name); err != nil {
		t.Fatal(err)
	}
	look("socket-made-again")
	answers(connect())
	answers(stays)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-accepted
	look("")
	if _, err := os.Lstat(at.Name); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}
}

func TestSocketGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if _, err := Listen(t.Context(), addr.Address{Network: "unix", Name: path}, Options{Group: "no-such-group"}); err == nil || !strings.Contains(err.Error(), "no-such-group") {
		t.Error(err)
	}
	if os.Getuid() != 0 {
		return // only root may give a file to any group
	}
	l, err := Listen(t.Context(), addr.Address{Network: "unix", Name: path}, Options{Group: "12345"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if out, err := exec.Command("ls", "-ln", path).CombinedOutput(); err != nil || !strings.Contains(string(out), " 12345 ") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestGate(t *testing.T) {
	var log bytes.Buffer
	gate := NewGate(GateOptions{Connections: 2, Rate: 1000, Log: event.New(slog.NewTextHandler(&log, nil))})
	l, err := Listen(t.Context(), addr.Address{Network: "tcp", Name: "127.0.0.1:0"}, Options{Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	closed := func(conn net.Conn) {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("the connection is open: %v", err)
		}
	}
	// The gate closes the oldest stranger.
	dial()
	known := <-accepted
	Known(tls.Server(known, nil))
	stranger := dial()
	<-accepted
	dial()
	second := <-accepted
	closed(stranger)
	if n := gate.Open(); n != 2 {
		t.Errorf("%d open", n)
	}
	// Without a stranger, the gate closes the new connection.
	Known(second)
	closed(dial())
	closed(dial())
	if n := strings.Count(log.String(), "event=connections-full"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	// A closed connection gives back its place, once.
	second.Close()
	second.Close()
	dial()
	<-accepted
	if n := gate.Open(); n != 2 {
		t.Errorf("%d open", n)
	}
}

// TestGateRate checks that connections above the rate wait. Addresses take turns, and the newest connection
// of an address comes first.
func TestGateRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		come := make(come, 100)
		l := newArrivals(come, NewGate(GateOptions{Connections: 1000, Rate: 10}))
		began := time.Now()
		accept := func() *net.TCPAddr {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return conn.RemoteAddr().(*net.TCPAddr)
		}
		for range 10 {
			come <- from("192.0.2.1", 0)
			accept()
		}
		for i := range 20 {
			come <- from("192.0.2.1", i)
		}
		synctest.Wait()
		come <- from("192.0.2.2", 99)
		synctest.Wait()
		var order []int
		for range 21 {
			order = append(order, accept().Port)
		}
		// The first connection was chosen before other addresses arrived.
		if order[0] != 19 || order[1] != 99 && order[2] != 99 || order[20] != 0 {
			t.Error("served", order)
		}
		if d := time.Since(began).Round(time.Second / 10); d != 2100*time.Millisecond {
			t.Errorf("31 connections in %v", d)
		}
		come <- from("192.0.2.3", 0)
		synctest.Wait()
		if err := l.Close(); err != nil || l.gate.Open() != 31 {
			t.Errorf("%v, %d open", err, l.gate.Open())
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// come is a listener whose connections the test sends.
type come chan net.Conn

func (c come) Accept() (net.Conn, error) {
	if conn, ok := <-c; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (c come) Close() error {
	close(c)
	return nil
}

func (c come) Addr() net.Addr { return &net.TCPAddr{} }

type nopConn struct {
	net.Conn
	from *net.TCPAddr
}

func from(address string, port int) nopConn {
	return nopConn{from: &net.TCPAddr{IP: net.ParseIP(address), Port: port}}
}

func (nopConn) LocalAddr() net.Addr    { return &net.TCPAddr{} }
func (c nopConn) RemoteAddr() net.Addr { return c.from }
func (nopConn) Close() error           { return nil }

// TestHandshakesTakeTurns checks that a handshake holds a turn only while it computes: not while it waits for
// its client, reads certificates, or is over.
func TestHandshakesTakeTurns(t *testing.T) {
	dir := t.TempDir()
	ca := certs.NewAuthority(t)
	cert, key := ca.Sign(1, "xds.test")
	for name, data := range map[string][]byte{"cert": cert, "key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := OpenKeys(Files{filepath.Join(dir, "cert"), filepath.Join(dir, "key"), ""}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := turns.New(1)
	gate := NewGate(GateOptions{Connections: 1000, Rate: 1000, Turns: all})
	l, err := Listen(t.Context(), addr.Address{Network: "tcp", Name: "127.0.0.1:0"}, Options{Keys: keys, Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if tls.Server(conn, keys.Config(false)).Handshake() == nil {
					_ = Identify(conn, memory.Known, "client") // no error without a budget
					_, _ = conn.Read(make([]byte, 1))
				}
			}()
		}
	}()
	connect := func() *tls.Conn {
		t.Helper()
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var open []net.Conn
	for range 50 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		if _, err := conn.Write([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xf0, 0}); err != nil { // the first bytes of a ClientHello
			t.Fatal(err)
		}
	}
	connect()
	for _, conn := range open {
		conn.Close()
	}
	connect()
	another := func() {
		turn, err := all.Client("another").Take(t.Context())
		if turn.Give(); err != nil {
			t.Error(err)
		}
	}
	another()
	c := &gatedConn{turns: all.Client("slow")}
	c.takeTurn()
	withoutTurn(c, another)
	c.giveTurn()
	another()
}

// TestKeysExpire checks that an expiring certificate is logged once when it expires soon, and once when it
// has expired. The replacement is logged as well.
func TestKeysExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		files := Files{filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")}
		ca := certs.NewAuthority(t) // valid from an hour ago, for an hour
		write := func(until time.Time) {
			t.Helper()
			cert, key := ca.SignUntil(until, 1, "xds.test")
			for file, data := range map[string][]byte{files.Cert: cert, files.Key: key, files.ClientCA: ca.PEM()} {
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		began := time.Now()
		write(began.Add(5 * time.Hour))
		var log lines
		k, err := OpenKeys(files, event.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		go k.Watch(t.Context())
		// logged returns the events, each with its file, up to a time after the beginning.
		logged := func(after time.Duration) string {
			time.Sleep(time.Until(began.Add(after)))
			synctest.Wait()
			var events []string
			for line := range strings.Lines(log.take()) {
				_, rest, _ := strings.Cut(line, "event=")
				name, _, _ := strings.Cut(rest, " ")
				if _, path, ok := strings.Cut(rest, "file="); ok {
					name += " " + filepath.Base(strings.Fields(path)[0])
				}
				events = append(events, name)
			}
			return strings.Join(events, ", ")
		}
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{40*time.Minute - time.Second, ""},
			{40 * time.Minute, "certificate-expires-soon ca"},
			{time.Hour, ""},
			{time.Hour + time.Second, "certificate-expired ca"},
			{4*time.Hour - time.Second, ""},
			{4 * time.Hour, "certificate-expires-soon cert"},
			{5*time.Hour + time.Second, "certificate-expired cert"},
			{100 * time.Hour, ""},
		} {
			if got := logged(step.after); got != step.want {
				t.Errorf("after %v: %q, want %q", step.after, got, step.want)
			}
		}
		write(began.Add(200 * time.Hour))
		if got := logged(100*time.Hour + 2*time.Minute); got != "certificates-read" {
			t.Errorf("a new certificate: %q", got)
		}
		if got := logged(201 * time.Hour); got != "certificate-expires-soon cert, certificate-expired cert" {
			t.Errorf("the new certificate: %q", got)
		}
	})
}

// lines is a log for concurrent writers.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns what was logged since the last call.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// TestKeys checks that Keys reads changed certificates and a changed CA again, also if a link replaces the
// file. If the files don't match, the previous files stay in use.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ca, other := certs.NewAuthority(t), certs.NewAuthority(t)
	cert, key := ca.Sign(1, "xds.test")
	write("cert", cert)
	write("key", key)
	write("ca", ca.PEM())
	var log bytes.Buffer
	k, err := OpenKeys(Files{path("cert"), path("key"), path("ca")}, event.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), addr.Address{Network: "tcp", Name: "127.0.0.1:0"}, Options{Keys: k})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go serveEcho(tls.NewListener(l, k.Config(false, "h2")))

	// connect returns the serial number of the server's certificate.
	connect := func(from *certs.Authority, c *tls.Config) (int64, error) {
		t.Helper()
		k.reading.Lock()
		k.read = time.Time{} // longer ago than readAgain
		k.reading.Unlock()
		if from != nil {
			cert, key := from.Sign(9, "client.test")
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		c.InsecureSkipVerify = true
		conn, err := tls.Dial("tcp", l.Addr().String(), c)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("x")); err != nil {
			return 0, err
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil { // with TLS 1.3 a refusal comes after the handshake
			return 0, err
		}
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
	}
	serves := func(from *certs.Authority, want int64) {
		t.Helper()
		if is, err := connect(from, &tls.Config{}); is != want || err != nil {
			t.Errorf("certificate %d, %v", is, err)
		}
	}
	refuses := func(from *certs.Authority, c *tls.Config) {
		t.Helper()
		if _, err := connect(from, c); err == nil || os.IsTimeout(err) {
			t.Errorf("not refused: %v", err)
		}
	}
	serves(ca, 1)
	refuses(nil, &tls.Config{})
	refuses(other, &tls.Config{})
	refuses(ca, &tls.Config{MaxVersion: tls.VersionTLS12})

	// Between two writes the old files are in use.
	cert, key = ca.Sign(2, "xds.test")
	write("cert", cert)
	serves(ca, 1)
	serves(ca, 1)
	write("key", key)
	serves(ca, 2)
	// Links replace the files, as in a mounted secret.
	cert, key = other.Sign(3, "xds.test")
	for name, data := range map[string][]byte{"cert": cert, "key": key, "ca": other.PEM()} {
		write("new-"+name, data)
		if err := os.Symlink("new-"+name, path("link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path("link"), path(name)); err != nil {
			t.Fatal(err)
		}
	}
	serves(other, 3)
	refuses(ca, &tls.Config{})
	for _, bad := range []string{"", "no PEM"} {
		write("ca", []byte(bad))
		serves(other, 3)
	}
	if err := os.Remove(path("cert")); err != nil {
		t.Fatal(err)
	}
	serves(other, 3)
	serves(other, 3)
	if is := strings.Count(log.String(), "event=certificates-read"); is != 2 {
		t.Errorf("read %d times: %s", is, log.String())
	}
	if is := strings.Count(log.String(), "event=certificates-unreadable"); is != 4 { // once for each fault
		t.Errorf("unreadable %d times: %s", is, log.String())
	}
	if strings.Contains(log.String(), "BEGIN") {
		t.Error("a key is in the log")
	}
}

func serveEcho(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.CopyN(conn, conn, 1)
		}()
	}
}

// TestBadKeys checks that unusable files are refused at the start.
func TestBadKeys(t *testing.T) {
	dir := t.TempDir()
	ca := certs.NewAuthority(t)
	cert, key := ca.Sign(1, "a")
	_, wrong := ca.Sign(2, "b")
	bundle := append(certs.NewAuthority(t).PEM(), ca.PEM()...)
	chain := append(bytes.Clone(cert), ca.PEM()...)
	for name, data := range map[string][]byte{
		"cert": cert, "key": key, "wrong": wrong, "none": nil,
		"cut": bundle[:len(bundle)-100], "begun": bundle[:len(bundle)-len(ca.PEM())+10], "cut-chain": chain[:len(chain)-100], "bundle": append(bundle, "\n# the end\n"...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, files := range []Files{
		{"cert", "wrong", ""}, {"cert", "none", ""}, {"none", "key", ""}, {"cert", "key", "none"}, {"cert", "key", "key"}, {"missing", "key", ""}, {"cert", "key", "."}, {"/dev/zero", "key", ""},
		{"cert", "key", "cut"}, {"cert", "key", "begun"}, {"cut-chain", "key", ""},
	} {
		at := func(name string) string {
			if name == "" || filepath.IsAbs(name) {
				return name
			}
			return filepath.Join(dir, name)
		}
		_, err := OpenKeys(Files{at(files.Cert), at(files.Key), at(files.ClientCA)}, nil)
		if err == nil || !strings.Contains(err.Error(), "/") {
			t.Errorf("%v: %v", files, err)
		}
	}
	if _, err := OpenKeys(Files{filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "bundle")}, nil); err != nil {
		t.Error(err)
	}
}
