package envoy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// requestTimeout is for one request. Envoy's main thread answers it, and an
	// Envoy of 10,000 clusters is busy for 3 s when all of them are new.
	requestTimeout = 2 * time.Second
	// maxAnswer is beyond what there is to say: with 10,000 clusters that all report
	// updates 1.7 MB of statistics.
	maxAnswer = 32 << 20
)

// Admin is the admin interface of one Envoy. It may be used by several goroutines.
type Admin struct {
	url           string
	network, addr string
	host, prefix  string // of the requests

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
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		return &Admin{url: address, network: "unix", addr: path, host: "envoy"}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("admin %q: want http://HOST:PORT or unix:PATH", address)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return nil, fmt.Errorf("admin %q: want http://HOST:PORT or unix:PATH", address)
	}
	return &Admin{url: address, network: "tcp", addr: u.Host, host: u.Host, prefix: strings.TrimSuffix(u.Path, "/")}, nil
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

// exchange is one request, with the body read whole. It has a connection of its
// own: one that is kept would stay with the Envoy that a hot restart has replaced,
// and from a pool one can't tell who hung up from who talks something else.
func (a *Admin) exchange(ctx context.Context, path string, query url.Values) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, a.network, a.addr)
	if err != nil {
		return 0, nil, a.failed(ctx, path, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	request := &http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: a.host, Path: a.prefix + path, RawQuery: query.Encode()},
		Host:   a.host,
		Header: http.Header{"Connection": {"close"}},
	}
	if err := request.Write(conn); err != nil {
		return 0, nil, a.failed(ctx, path, err)
	}
	answer := &io.LimitedReader{R: conn, N: maxAnswer}
	response, err := http.ReadResponse(bufio.NewReader(answer), request)
	if err == nil {
		status = response.StatusCode
		body, err = io.ReadAll(response.Body)
	}
	switch {
	case answer.N <= 0:
		return 0, nil, a.notEnvoy(path, fmt.Sprintf("more than %d MiB", maxAnswer>>20))
	case err != nil:
		return 0, nil, a.failed(ctx, path, err)
	}
	return status, body, nil
}

// failed sorts the errors of an exchange. One that is none of the network's is
// about what came: it was no HTTP.
func (a *Admin) failed(ctx context.Context, path string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("envoy %s: %w", a.url, ctx.Err())
	}
	failure, isNet := errors.AsType[net.Error](err)
	switch {
	case ctx.Err() != nil:
		return &SilentError{URL: a.url, Err: ctx.Err()}
	case errors.Is(err, fs.ErrPermission): // to a socket
		return a.notEnvoy(path, err.Error())
	case isNet && failure.Timeout():
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
		return "nothing"
	}
	line, _, _ := bytes.Cut(body, []byte("\n"))
	if len(line) > most {
		return fmt.Sprintf("%q…", line[:most])
	}
	return fmt.Sprintf("%q", line)
}
