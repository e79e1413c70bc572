// Package listen opens the sockets for clients, loads TLS certificates and limits the number of connections.
//
//	address, err := addr.Parse("unix:/run/xdspub/xds.sock")
//	…
//	l, err := listen.Listen(ctx, address, listen.Options{})
//
// Connections through a Unix socket or TLS are private. Listen accepts plain TCP only on loopback addresses,
// unless Options.Insecure is set.
package listen

import (
	"context"
	"fmt"
	"net"

	"xdspub/event"
	"xdspub/internal/addr"
)

// Options configure Listen.
type Options struct {
	// Keys are the certificates for TLS, which the caller adds; nil means plain TCP. A Unix socket uses no
	// TLS: its mode restricts who may connect.
	Keys *Keys
	// Insecure permits plain TCP from other machines.
	Insecure bool
	// Group is the name or number of the group that may connect to a Unix socket. Empty means the group of
	// the process.
	Group string
	// Gate limits connections; nil sets no limit.
	Gate *Gate
	// Log receives the log lines; nil discards them.
	Log *event.Log
}

// Listen listens on an Address. The accepted connections are plain; the caller adds TLS with Keys.Config.
func Listen(ctx context.Context, a addr.Address, o Options) (net.Listener, error) {
	if err := o.permits(a); err != nil {
		return nil, err
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

// permits returns an error if clients of an address would need TLS, and there is none.
func (o Options) permits(a addr.Address) error {
	if o.Keys == nil && !o.Insecure && !a.Local() {
		return fmt.Errorf("listen on %s: other machines can connect, and there is no TLS: give --tls-cert and --tls-key, "+
			"or a loopback address, or a Unix socket; --insecure allows it", a)
	}
	return nil
}

// reason returns the cause in an error of package net, without the address, which the caller adds.
func reason(err error) error {
	if op, ok := err.(*net.OpError); ok {
		return op.Err
	}
	return err
}
