package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

const answerTimeout = patience

// connection is one to Envoy, over which a request at a time goes. It is no
// http.Client: that one sends a request again when its connection was closed, and
// nobody would see it.
type connection struct {
	net.Conn
	read       *bufio.Reader
	answered   int  // requests
	generation int  // that gave the last answer
	closing    bool // no further request can go over it
}

func dial(port int) (*connection, error) {
	conn, err := net.DialTimeout("tcp4", address(port), answerTimeout)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, read: bufio.NewReader(conn)}, nil
}

func (c *connection) close() {
	if c != nil {
		c.Close()
	}
}

// idle waits until that time, or until Envoy closes the connection, which it may do
// between two requests. Without a connection it does not wait.
func (c *connection) idle(until time.Time) (closed bool) {
	if c == nil {
		return false
	}
	if err := c.SetReadDeadline(until); err != nil {
		return true
	}
	_, err := c.read.Peek(1)
	timeout, ok := errors.AsType[net.Error](err)
	return !ok || !timeout.Timeout()
}

// exchange sends a request and reads the answer: it is the upstream's, and tells by
// the routes of which generation it went there.
func (c *connection) exchange(keep bool) error {
	c.closing = true // but for an answer that says otherwise
	if err := c.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	option := "close"
	if keep {
		option = "keep-alive"
	}
	_, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: envoy\r\nConnection: %s\r\n\r\n", option)
	if err == nil {
		_, err = c.read.Peek(1)
	}
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case closed && c.answered > 0:
		return &crossedError{err}
	case err != nil:
		return err
	}
	response, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	c.closing = response.Close
	if response.StatusCode != http.StatusOK || string(body) != "upstream" {
		return fmt.Errorf("status %d, %s", response.StatusCode, body)
	}
	c.answered++
	c.generation, err = strconv.Atoi(response.Header.Get("X-Generation"))
	return err
}

// crossedError is of a request on a connection that Envoy closed, idle as it was,
// while the request was on its way.
type crossedError struct{ err error }

func (e *crossedError) Error() string { return "crossed by a close: " + e.err.Error() }
func (e *crossedError) Unwrap() error { return e.err }
