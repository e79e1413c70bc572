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
	// requestTimeout bounds one question. Envoy's main thread answers, and may be busy: for 3 s if 10,000 clusters
	// are new.
	requestTimeout = 2 * time.Second
	// maxHeader exceeds the headers that Envoy and a proxy in front of Envoy send.
	maxHeader = 64 << 10
	// maxStats exceeds the statistics of any Envoy: 10,000 clusters that all report updates have 1.7 MB of
	// statistics.
	maxStats = 32 << 20
	// maxDump exceeds a bootstrap of 10,000 static clusters. It is lower than maxStats, since a dump is decoded as
	// a tree, which takes 30 times the space of the text.
	maxDump = 8 << 20
)

// session is one connection for all requests of an observation. A balancer of connections sends them to one
// process. Each observation has its own session: an old connection would stay with the Envoy that a hot restart has
// replaced.
//
// A session does not use http.Transport, which reads before it sends a request. It would write up to 4 KiB of an
// answer without a request to the standard log, and would sometimes hide whether the peer closed the connection or
// speaks another protocol.
type session struct {
	*Admin
	timeout time.Duration // of one question
	conn    net.Conn      // nil if the next question has to connect
	answer  io.LimitedReader
	reader  *bufio.Reader // reads answer
}

func (a *Admin) session() *session { return &session{Admin: a, timeout: requestTimeout} }

func (s *session) close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// get returns the body of the answer to a path with a query. A body of more than limit bytes is an error, and so is
// any status but 200.
func (s *session) get(ctx context.Context, path string, query url.Values, limit int64) ([]byte, error) {
	status, body, err := s.exchange(ctx, path, query, limit)
	if err == nil && status != http.StatusOK {
		err = s.unexpected(path, fmt.Sprintf("status %d %s", status, sample(body)))
	}
	return body, err
}

// exchange sends a request, and reads the body of the answer, which may have up to limit bytes. exchange connects
// if necessary, and closes the connection after an error. It follows no redirections, and asks for no compression.
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
	case status == http.StatusForbidden && bytes.HasPrefix(body, []byte("request to path ")): // Envoy's message about allow_paths
		return 0, nil, &ForbiddenError{URL: s.url, Path: path, Query: len(query) > 0}
	}
	return status, body, nil
}

// roundTrip sends a request and reads the answer up to the limits. If the headers can't be read, body is nil. again
// reports whether the connection stays open.
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

// failed returns the error type for an error of an exchange. An error that is not of the network means that the
// answer was no HTTP.
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
	return a.unexpected(path, diag.Hide(diag.Clip(err.Error(), diag.MaxWord)))
}

// unexpected returns an *UnexpectedResponseError.
func (a *Admin) unexpected(path, saw string) error {
	return &UnexpectedResponseError{URL: a.url, Path: path, Saw: saw}
}

// sample returns the first bytes of a body in quotes, for an error.
func sample(body []byte) string {
	const most = 80
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return "nothing"
	}
	line, _, _ := bytes.Cut(body, []byte("\n"))
	if len(line) > most {
		return fmt.Sprintf("%q…", diag.Hide(string(line[:most])))
	}
	return fmt.Sprintf("%q", diag.Hide(string(line)))
}
