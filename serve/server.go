package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"xdspub/event"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// Options configure a Server.
type Options struct {
	// GRPC and HTTP are the addresses to listen on, host:port or unix:PATH.
	GRPC, HTTP []string
	// Cluster is the static cluster in the clients' bootstraps through which they reach a singleton service
	// of the server.
	Cluster string
	// Parameters are the dynamic parameters of a client that sends none. NodeParameters derive parameters
	// from the node of such a client, and override Parameters.
	Parameters     params.Parameters
	NodeParameters []admit.NodeParameter
	// Confirm says how clients confirm a Snapshot; nil if Publish doesn't wait for clients.
	Confirm *cache.Confirmation
	// TrimDelay is how long a resource stays that the Snapshot has dropped, before Trim removes it.
	TrimDelay time.Duration
	// DrainTime is how long clients may take to leave after the Server ends.
	DrainTime time.Duration
	// Security configures who may connect and what a client may request. Limits bound the cost of clients.
	Security Security
	Limits   Limits
	// ClientMemory is the memory in bytes that clients may make the server hold; 0 means memory.Default.
	ClientMemory int64
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Server serves Snapshots to clients over the network. Publish, Retry and Trim may be called
// before and while Run runs; clients that connect before the first Publish wait for it.
type Server struct {
	options Options
	cache   *cache.Cache
	front   *front
	open    []listener
}

// listener is an address that the Server listens on.
type listener struct {
	net.Listener
	serve func(net.Listener) error
}

// Listen opens the addresses. Run serves and closes them, and must be called.
func Listen(ctx context.Context, o Options) (*Server, error) {
	s := &Server{options: o, cache: cache.New(cache.Options{
		Cluster: o.Cluster, Parameters: admit.Options{Default: o.Parameters, NodeParameters: o.NodeParameters}.Parameters,
		TrimDelay: o.TrimDelay, Log: o.Log,
	})}
	var err error
	if s.front, err = newFront(s.cache, o); err != nil {
		return nil, err
	}
	for _, of := range []struct {
		protocol  string
		addresses []string
		serve     func(net.Listener) error
	}{{"grpc", o.GRPC, s.front.grpc.Serve}, {"http", o.HTTP, s.front.serveHTTP}} {
		for _, address := range of.addresses {
			l, err := s.front.listen(ctx, address)
			if err != nil {
				s.close()
				return nil, fmt.Errorf("--%s: %w", of.protocol, err)
			}
			s.open = append(s.open, listener{l, of.serve})
			o.Log.Write(event.Serving{Protocol: of.protocol, Address: l.Addr().String()})
		}
	}
	return s, nil
}

func (s *Server) close() {
	for _, l := range s.open {
		l.Close()
	}
}

// Run answers clients until ctx ends, drains them for at most DrainTime, and returns nil. Run also drains the
// clients if an address fails, and then returns an error.
func (s *Server) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	for _, l := range s.open {
		running.Go(func() {
			if err := l.serve(l); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("serve %s: %w", l.Addr(), err))
			}
		})
	}
	running.Go(func() { s.front.giveBack(ctx) })
	if s.front.keys != nil {
		running.Go(func() { s.front.keys.Watch(ctx) })
	}
	<-ctx.Done()
	s.front.close()
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}

// RunWhile runs the Server until publish returns. The context of publish ends if the Server ends, because a
// Server without clients has no use for a Snapshot. RunWhile returns the errors of both.
func (s *Server) RunWhile(ctx context.Context, publish func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- s.Run(ctx)
	}()
	err := publish(ctx)
	cancel()
	return errors.Join(err, <-ended)
}

// Publish serves a Snapshot and sends each client the changes. Publish of the served Snapshot changes
// nothing. With Options.Confirm, Publish waits for the clients, and returns a *clients.RefusedError if they
// rejected the Snapshot. If ctx ends before all resources are bound, Publish returns its error and sends
// nothing. If ctx ends during the wait for clients, Publish returns its error, and the Server keeps serving
// the Snapshot.
func (s *Server) Publish(ctx context.Context, snapshot *xds.Snapshot) error {
	return s.publish(ctx, snapshot, s.confirmed)
}

// Restore publishes a Snapshot that clients may have from an earlier server. Restore waits for no client.
func (s *Server) Restore(ctx context.Context, snapshot *xds.Snapshot) error {
	return s.publish(ctx, snapshot, s.cache.Publish)
}

func (s *Server) publish(ctx context.Context, snapshot *xds.Snapshot, by func(context.Context, *xds.Snapshot) error) error {
	began := time.Now()
	if err := by(ctx, snapshot); err != nil {
		return err
	}
	s.front.published(time.Since(began))
	return nil
}

// confirmed publishes a Snapshot and waits for the clients that Options.Confirm selects.
func (s *Server) confirmed(ctx context.Context, snapshot *xds.Snapshot) error {
	if s.options.Confirm == nil {
		return s.cache.Publish(ctx, snapshot)
	}
	answers, err := s.cache.Confirm(ctx, snapshot, *s.options.Confirm)
	if err == nil && answers.Refused {
		err = &clients.RefusedError{Findings: answers.Findings, TakenBack: answers.TakenBack}
	}
	return err
}

// Served returns the published Snapshot for a client without a node, with the retired resources that stay
// until Trim. Served returns nil before the first Publish.
func (s *Server) Served() *xds.Snapshot { return s.cache.Served() }

// Transitions returns the changes that a Snapshot would make, for one client of each class whose resources
// change. A class is the connected clients with the same variants; clients with several parameter sets are
// left out. From includes the retired resources that stay until Trim. Transitions returns nil before the
// first Publish.
func (s *Server) Transitions(to *xds.Snapshot) []variants.Transition { return s.cache.Transitions(to) }

// Retry sends clients again the resources that they rejected. If ctx ends first, Retry returns its error.
func (s *Server) Retry(ctx context.Context) error { return s.cache.Retry(ctx) }

// Clients returns the connected clients, followed by clients that have disconnected within an hour.
func (s *Server) Clients() []clients.Client { return s.cache.Clients() }

// Tell sets the state of the source tree that status answers, probes and metrics show. The caller must not
// change what w refers to afterwards.
func (s *Server) Tell(w control.Watch) { s.front.showWatch(w) }

// Trim removes the retired resources whose TrimDelay is over at now. removed is the number of these
// resources: a resource counts once for each class of clients that had it. next is the time for the next
// call; zero if no retired resource remains. If ctx ends first, Trim returns its error.
func (s *Server) Trim(ctx context.Context, now time.Time) (removed int, next time.Time, err error) {
	removed, oldest, err := s.cache.Trim(ctx, now.Add(-s.options.TrimDelay))
	if !oldest.IsZero() {
		next = oldest.Add(s.options.TrimDelay)
	}
	return removed, next, err
}
