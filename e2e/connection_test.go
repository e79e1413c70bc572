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

// connection is a connection to Envoy, for one request at a time. An http.Client would silently send a request
// again after its connection was closed.
type connection struct {
	net.Conn
	read       *bufio.Reader
	answered   int  // the number of answered requests
	generation int  // the generation that gave the last answer
	closing    bool // no further request is possible
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

// idle waits until a time, or until Envoy closes the connection, which it may do between two requests. A nil
// connection does not wait.
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

// exchange sends a request and reads the answer of the upstream, whose header has the generation of the routes.
func (c *connection) exchange(keep bool) error {
	c.closing = true // unless the answer keeps the connection open
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

// crossedError means that Envoy closed an idle connection while a request was on its way.
type crossedError struct{ err error }

func (e *crossedError) Error() string { return "crossed by a close: " + e.err.Error() }
func (e *crossedError) Unwrap() error { return e.err }
