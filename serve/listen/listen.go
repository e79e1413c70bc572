// Package listen is where clients connect: sockets, their certificates, and how many connections
// there may be.
//
//	address, err := addr.Parse("unix:/run/xdspub/xds.sock")
//	…
//	l, err := listen.Listen(ctx, address, listen.Options{})
//
// A connection by a Unix socket or by TLS is private. One by plain TCP is not, and Listen takes
// only loopback addresses for these unless Options.Insecure says otherwise.
package listen

import (
	"context"
	"fmt"
	"net"

	"xdspub/event"
	"xdspub/internal/addr"
)

// Options say how to listen.
type Options struct {
	// Keys are the certificates of TLS; nil for none. A Unix socket has none: its mode says who
	// may connect.
	Keys *Keys
	// Insecure allows plain TCP from other machines.
	Insecure bool
	// Group is the name or number of the group that may connect to a Unix socket. Empty means
	// that of the process.
	Group string
	// Gate lets connections in; nil lets in all.
	Gate *Gate
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Listen listens on an Address. Its connections are plain: Keys.Config is for whoever serves
// them.
func Listen(ctx context.Context, a addr.Address, o Options) (net.Listener, error) {
	if o.Keys == nil && !o.Insecure && !a.Local() {
		return nil, fmt.Errorf("listen on %s: other machines can connect, and there is no TLS: give --tls-cert and --tls-key, or a loopback address, or a Unix socket; --insecure allows it", a)
	}
	var l net.Listener
	var err error
	if a.Network == "unix" {
		l, err = listenUnix(ctx, a, o.Group, o.Log)
	} else {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", a.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", a, reason(err))
	}
	if o.Gate != nil {
		l = newArrivals(l, o.Gate)
	}
	return l, nil
}

// reason is an error without the address, which whoever calls Listen has named.
func reason(err error) error {
	if op, ok := err.(*net.OpError); ok {
		return op.Err
	}
	return err
}
