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
	"time"

	"xdspub/diag"
)

const (
	// requestTimeout is for one question. Envoy's main thread answers it, and an
	// Envoy of 10,000 clusters is busy for 3 s when all of them are new.
	requestTimeout = 2 * time.Second
	// maxHeader exceeds the headers that Envoy and a proxy in front of Envoy send.
	maxHeader = 64 << 10
	// maxStats exceeds the statistics of any Envoy: 10,000 clusters that all report updates have 1.7 MB of
	// statistics.
	maxStats = 32 << 20
	// maxDump is beyond a bootstrap of 10,000 static clusters. It is lower than
	// maxStats, since a dump is read as a tree, which takes 30 times its space.
	maxDump = 8 << 20
)

// session is one connection for the requests of one observation: a balancer of connections
// then sends all of them to one process. It does not outlive the observation: it would stay
// with the Envoy that a hot restart has replaced.
//
// It uses no http.Transport, which reads before it sends a request: it writes up to 4 KiB of
// an answer without a request to the standard log, and sometimes hides whether the peer
// closed the connection or speaks another protocol.
type session struct {
	*Admin
	timeout time.Duration // of one question
	conn    net.Conn      // nil before the first question
	answer  io.LimitedReader
	reader  *bufio.Reader
}

func (a *Admin) session() *session { return &session{Admin: a, timeout: requestTimeout} }

func (s *session) close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// get asks for a path with its query, and reads at most limit bytes of the body. Any
// status but 200 is an error.
func (s *session) get(ctx context.Context, path string, query url.Values, limit int64) ([]byte, error) {
	status, body, err := s.exchange(ctx, path, query, limit)
	if err == nil && status != http.StatusOK {
		err = s.unexpected(path, fmt.Sprintf("status %d %s", status, sample(body)))
	}
	return body, err
}

// exchange sends a request, and reads the whole body of the answer. exchange follows no redirections. exchange
// decompresses nothing, because the request asks for no compression.
func (s *session) exchange(ctx context.Context, path string, query url.Values, limit int64) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.conn == nil {
		if s.conn, err = new(net.Dialer).DialContext(ctx, s.network, s.addr); err != nil {
			s.conn = nil
			return 0, nil, s.failed(ctx, path, err)
		}
		s.answer.R = s.conn
		s.reader = bufio.NewReader(&s.answer)
	}
	conn := s.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	status, body, again, err := s.roundTrip(path, query, limit)
	if !stop() || err != nil || !again {
		s.close()
	}
	switch {
	case s.answer.N <= 0 && body == nil:
		return 0, nil, s.unexpected(path, fmt.Sprintf("more than %d KiB of headers", maxHeader>>10))
	case s.answer.N <= 0:
		return 0, nil, s.unexpected(path, fmt.Sprintf("more than %d MiB", limit>>20))
	case err != nil:
		return 0, nil, s.failed(ctx, path, err)
	case status == http.StatusForbidden && bytes.HasPrefix(body, []byte("request to path ")): // Envoy's words
		return 0, nil, &ForbiddenError{URL: s.url, Path: path, Query: len(query) > 0}
	}
	return status, body, nil
}

// roundTrip sends a request and reads the answer, as far as answer lets it. body is nil
// where it did not come to that; again reports whether the connection stays open.
func (s *session) roundTrip(path string, query url.Values, limit int64) (status int, body []byte, again bool, err error) {
	request := &http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: s.host, Path: s.prefix + path, RawQuery: query.Encode()},
		Host:   s.host,
	}
	s.answer.N = maxHeader
	if err := request.Write(s.conn); err != nil {
		return 0, nil, false, err
	}
	response, err := http.ReadResponse(s.reader, request)
	if err != nil {
		return 0, nil, false, err
	}
	s.answer.N = limit
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, !response.Close, err
}

// failed classifies the errors of an exchange. An error from outside the network means that the answer was no
// HTTP.
func (a *Admin) failed(ctx context.Context, path string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("envoy %s: %w", a.url, ctx.Err())
	}
	failure, isNet := errors.AsType[net.Error](err)
	switch {
	case ctx.Err() != nil:
		return &TimeoutError{URL: a.url, Err: ctx.Err()}
	case errors.Is(err, fs.ErrPermission): // to a socket
		return a.unexpected(path, err.Error())
	case isNet && failure.Timeout():
		return &TimeoutError{URL: a.url, Err: err}
	case isNet, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &DownError{URL: a.url, Err: err}
	}
	return a.unexpected(path, diag.Clip(err.Error(), diag.MaxWord))
}

func (a *Admin) unexpected(path, saw string) error {
	return &UnexpectedResponseError{URL: a.url, Path: path, Saw: saw}
}

// sample returns the beginning of a body, for an error.
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
