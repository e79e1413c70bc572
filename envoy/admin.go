package envoy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// requestTimeout is for one request. Envoy's main thread answers it, and an
	// Envoy of 10,000 clusters is busy for 3 s when all of them are new.
	requestTimeout = 2 * time.Second
	// maxBody is beyond what an Envoy has to say: 1.2 MB of statistics with 10,000
	// clusters that all report updates.
	maxBody = 64 << 20
)

// Admin is the admin interface of one Envoy. It may be used by several goroutines.
type Admin struct {
	url    string
	base   string // of the requests
	client *http.Client

	mu   sync.Mutex
	last process // that answered last
}

// process is what does not change while an Envoy runs.
type process struct {
	boot      Boot
	drainTime time.Duration
	matcher   bool     // the bootstrap has a stats_matcher
	paths     []string // that the bootstrap names
}

// NewAdmin takes http://host:port, where a path that a proxy adds may follow, or
// unix:PATH. It asks nothing yet.
func NewAdmin(address string) (*Admin, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return nil, fmt.Errorf("admin %q: no path after unix:", address)
		}
		return newAdmin(address, "http://envoy", func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}), nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.Port() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("admin %q: want http://HOST:PORT or unix:PATH", address)
	}
	return newAdmin(address, strings.TrimSuffix(address, "/"), new(net.Dialer).DialContext), nil
}

func newAdmin(address, base string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Admin {
	return &Admin{url: address, base: base, client: &http.Client{
		// Never a proxy's of the environment, and a connection for each request: one
		// that is kept would stay with the Envoy that a hot restart has replaced.
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// String is the URL as it was given.
func (a *Admin) String() string { return a.url }

// get asks for a path with its query. Any status but 200 is an error.
func (a *Admin) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	status, body, err := a.exchange(ctx, path, query)
	if err == nil && status != http.StatusOK {
		err = a.notEnvoy(path, fmt.Sprintf("status %d %s", status, sample(body)))
	}
	return body, err
}

// exchange is one request, with the body read whole.
func (a *Admin) exchange(ctx context.Context, path string, query url.Values) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	target := a.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("envoy %s: %w", a.url, err)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0, nil, a.failed(path, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if len(body) > maxBody {
		return 0, nil, a.notEnvoy(path, fmt.Sprintf("more than %d MiB", maxBody>>20))
	}
	if err != nil {
		return 0, nil, a.failed(path, err)
	}
	return response.StatusCode, body, nil
}

// failed sorts the errors of an exchange. An error of the HTTP client's that is
// none of the network's is about what came: it was no HTTP.
func (a *Admin) failed(path string, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the URL is in our errors
	}
	var timeout net.Error
	_, isNet := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("envoy %s: %w", a.url, err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &SilentError{URL: a.url, Err: err}
	case isNet, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &DownError{URL: a.url, Err: err}
	}
	return a.notEnvoy(path, err.Error())
}

func (a *Admin) notEnvoy(path, saw string) error {
	return &NotEnvoyError{URL: a.url, Path: path, Saw: saw}
}

// sample is the beginning of what came, for an error.
func sample(body []byte) string {
	const most = 80
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return "and nothing else"
	}
	line, _, _ := bytes.Cut(body, []byte("\n"))
	if len(line) > most {
		return fmt.Sprintf("%q…", line[:most])
	}
	return fmt.Sprintf("%q", line)
}
