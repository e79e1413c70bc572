package envoytest

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Get sends one request over a new connection, and follows no redirect. An old connection would stay at its
// listener after Envoy has replaced the listener.
func Get(t testing.TB, url string) (status int, body string, err error) {
	t.Helper()
	return GetHost(t, url, "")
}

// GetHost is Get with another Host header, for virtual hosts. An empty host means the host of the URL.
func GetHost(t testing.TB, url, host string) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	client := &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return do(client, request)
}

// Upstream is an HTTP server on 127.0.0.1 that answers every request with its name.
type Upstream struct {
	server   *httptest.Server
	requests atomic.Int64
}

// NewUpstream starts an Upstream that ends with the test.
func NewUpstream(t testing.TB, name string) *Upstream {
	u := new(Upstream)
	u.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		u.requests.Add(1)
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(u.server.Close)
	return u
}

// Port returns the port that the Upstream listens on.
func (u *Upstream) Port() int { return u.server.Listener.Addr().(*net.TCPAddr).Port }

// Requests returns the number of requests so far.
func (u *Upstream) Requests() int64 { return u.requests.Load() }

// FreePort returns an unused TCP port of 127.0.0.1 for a listener of Envoy. No other test gets the port at the
// same time, even in another process: FreePort holds the UDP port of the same number until the end of the
// test, and the kernel releases that port if the process dies. Two Envoys on one port would not collide but
// silently share the port (SO_REUSEPORT).
//
// Ports lie below the range of ephemeral ports, which any connection may take at any time.
func FreePort(t testing.TB) int {
	t.Helper()
	const low, high, attempts = 20000, 32000, 1000
	for range attempts {
		port := low + rand.IntN(high-low)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		twin, err := net.ListenPacket("udp4", address)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			twin.Close()
			continue
		}
		listener.Close()
		t.Cleanup(func() { twin.Close() })
		return port
	}
	t.Fatalf("no free port in %d attempts between %d and %d", attempts, low, high)
	return 0
}
