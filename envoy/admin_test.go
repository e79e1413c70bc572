package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/envoy"
	"xdspub/tools/envoytest"
)

func TestNewAdmin(t *testing.T) {
	for _, good := range []string{"http://localhost:9901", "http://10.0.0.1:9901", "http://[::1]:9901/", "http://host:80/envoy", "unix:/run/envoy.sock", "unix:admin.sock"} {
		if a, err := envoy.NewAdmin(good); err != nil || a.String() != good {
			t.Errorf("%s: %v %v", good, a, err)
		}
	}
	for _, bad := range []string{"", "localhost:9901", "http://localhost", "https://localhost:9901", "http://:9901", "http://a:b@localhost:9901", "http://localhost:9901?x", "unix:", "http://localhost:99011", "http://localhost:0", "/run/envoy.sock"} {
		if _, err := envoy.NewAdmin(bad); err == nil || !strings.Contains(err.Error(), "want http://HOST:PORT or unix:PATH") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestOtherPrograms asks programs other than Envoy, and addresses without an answer.
func TestOtherPrograms(t *testing.T) {
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"HTML":    {says("<!doctype html><title>Welcome</title>"), `/config_dump returned "<!doctype html><title>Welcome</title>"`},
		"nothing": {says(""), "/config_dump returned nothing"},
		"JSON":    {says(`{"status": "ok"}`), `returned "{\"status\": \"ok\"}"`},
		"cut off": {says(`{"configs": [{"last_upda`), `returned "{\"configs\": [{\"last_upda"`},
		"null":    {says(`null`), `returned "null"`},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "RBAC: access denied", http.StatusForbidden)
		}, `status 403 "RBAC: access denied"`},
		"not found": {http.NotFound, `status 404 "404 page not found"`},
		"redirect":  {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "status 302"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for block := make([]byte, 1<<20); r.Context().Err() == nil; {
				_, _ = w.Write(block)
			}
		}, "more than 8 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			t.Cleanup(server.Close)
			_, err := admin(t, server.URL).Read(t.Context(), nil)
			if !isNotEnvoy(err, c.want) {
				t.Errorf("%T %v, want %q", err, err, c.want)
			}
		})
	}
}

// raw returns the Admin of a server that calls serve for each connection.
func raw(t *testing.T, serve func(net.Conn)) *envoy.Admin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return admin(t, "http://"+l.Addr().String())
}

func TestDown(t *testing.T) {
	down := func(what string, a *envoy.Admin) {
		t.Helper()
		_, err := a.Read(t.Context(), nil)
		if _, ok := errors.AsType[*envoy.DownError](err); !ok {
			t.Errorf("%s: %T %v", what, err, err)
		}
	}
	down("nobody listens", admin(t, fmt.Sprintf("http://127.0.0.1:%d", envoytest.FreePort(t))))
	down("no socket", admin(t, "unix:"+filepath.Join(t.TempDir(), "no.sock")))
	down("hangs up", raw(t, func(net.Conn) {}))
	down("resets", raw(t, func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }))
	down("hangs up in the middle", raw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}))
	socket := filepath.Join(shortDir(t), "dead.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	down("a socket of one that died", admin(t, "unix:"+socket))

	a := raw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	if _, err := a.Read(t.Context(), nil); !isNotEnvoy(err, "SSH-2.0") {
		t.Errorf("SSH: %T %v", err, err)
	}
}

func isNotEnvoy(err error, saw string) bool {
	_, ok := errors.AsType[*envoy.UnexpectedResponseError](err)
	return ok && strings.Contains(err.Error(), saw)
}

func TestSilent(t *testing.T) {
	silent := func(what string, a *envoy.Admin) {
		t.Helper()
		_, err := a.Read(t.Context(), nil)
		if _, ok := errors.AsType[*envoy.TimeoutError](err); !ok {
			t.Errorf("%s: %T %v", what, err, err)
		}
	}
	hold := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	silent("takes the request and says nothing", raw(t, hold))
	silent("drips", raw(t, func(conn net.Conn) {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
		for tick := time.NewTicker(50 * time.Millisecond); err == nil; <-tick.C {
			_, err = conn.Write([]byte{' '})
		}
	}))

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := raw(t, hold).Read(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a deadline of its own: %T %v", err, err)
	}
}

// shortDir returns a directory for sockets, whose paths have at most 107 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "xdspub-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
