// Package unixhttp asks HTTP servers behind Unix sockets, for tests and tools.
package unixhttp

import (
	"context"
	"net"
	"net/http"
)

// Client returns a client of the server behind a socket. The client ignores the host of a URL, and opens a
// connection for each request.
func Client(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}
