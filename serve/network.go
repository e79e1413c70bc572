package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"xdspub/event"
	"xdspub/internal/crash"
)

// network holds the open addresses of a Server or of an Operations.
type network struct {
	*web
	listeners []listener
	end       func() // drains the clients and ends the services
}

// listener is an open address. serve accepts its connections.
type listener struct {
	net.Listener
	serve func(net.Listener) error
}

// open opens addresses. If an address fails, open closes all addresses of the network and returns an error.
func (n *network) open(ctx context.Context, protocol string, addresses []string, serve func(net.Listener) error) error {
	for _, address := range addresses {
		opened, err := n.listen(ctx, address)
		if err != nil {
			for _, open := range n.listeners {
				open.Close()
			}
			return fmt.Errorf("--%s: %w", protocol, err)
		}
		for _, l := range opened {
			n.listeners = append(n.listeners, listener{l, serve})
			n.log.Write(event.Serving{Protocol: protocol, Address: l.Addr().String()})
		}
	}
	return nil
}

// Run answers clients until ctx ends, drains the clients, and returns nil. A Server drains them for at most
// DrainTime, an Operations for a second. If an address fails, Run also drains the clients, and returns an
// error.
func (n *network) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	for _, l := range n.listeners {
		running.Go(crash.Guard(func() {
			if err := l.serve(l); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("serve %s: %w", l.Addr(), err))
			}
		}, func(e *crash.Error) { // nobody accepts connections any more
			n.log.Crashed(e)
			fail(e)
		}))
	}
	running.Go(crash.Again(ctx.Done(), func() { n.giveBack(ctx) }, n.log.Crashed))
	if n.keys != nil {
		running.Go(crash.Again(ctx.Done(), func() { n.keys.Watch(ctx) }, n.log.Crashed))
	}
	<-ctx.Done()
	n.end()
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}

// RunWhile runs until publish returns. The context of publish ends if Run ends, because a Server without
// clients has no use for a Snapshot. RunWhile returns the errors of publish and Run.
func (n *network) RunWhile(ctx context.Context, publish func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go crash.Guard(func() {
		defer cancel()
		ended <- n.Run(ctx)
	}, func(e *crash.Error) {
		n.log.Crashed(e)
		ended <- e
	})()
	err := publish(ctx)
	cancel()
	return errors.Join(err, <-ended)
}
