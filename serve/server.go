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

// Options of a Server.
type Options struct {
	// GRPC and HTTP are the addresses to listen on, host:port or unix:PATH.
	GRPC, HTTP []string
	// Cluster is the name of the static cluster through which clients of a singleton service
	// reach the server, as their bootstraps have it.
	Cluster string
	// Parameters are the dynamic parameters of clients that send none, NodeParameters those by their nodes.
	Parameters     params.Parameters
	NodeParameters []admit.NodeParameter
	// Confirm says how clients confirm a Snapshot; nil where nobody waits for their answers.
	Confirm *cache.Confirmation
	// TrimDelay is how long a resource stays served that a Snapshot no longer has.
	TrimDelay time.Duration
	// DrainTime is how long clients may take to leave once the Server ends.
	DrainTime time.Duration
	// Security says who may connect, Limits what clients may cost.
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

// Listen opens the addresses. Call Run, which closes them.
func Listen(ctx context.Context, o Options) (*Server, error) {
	s := &Server{options: o, cache: cache.New(cache.Options{Cluster: o.Cluster, Parameters: admit.Options{Default: o.Parameters, NodeParameters: o.NodeParameters}.Parameters, TrimDelay: o.TrimDelay, Log: o.Log})}
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

// Run answers clients until ctx ends, and then for the DrainTime at most. An error means that an
// address could not be served any more; then it ends, too.
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

// RunWhile runs the Server until publish ends, whose ctx ends with the Server: who can't be reached
// has nothing to publish. It returns the errors of both.
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

// Publish makes a Snapshot what is served, and sends each client what has changed for it; the
// same Snapshot again changes nothing. It returns the error of ctx where that has ended; then all
// is as before. With Options.Confirm it waits for the clients: a *clients.RefusedError means that
// they rejected the Snapshot.
func (s *Server) Publish(ctx context.Context, snapshot *xds.Snapshot) error {
	return s.publish(ctx, snapshot, s.confirmed)
}

// Restore is Publish of a Snapshot that clients may have from a server before this one: it waits
// for none of them.
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

// confirmed publishes a Snapshot, and waits for the clients that Options.Confirm asks.
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

// Served returns the Snapshot that a client gets that says nothing of itself: the one that was published
// last, with the resources that stay until Trim. It is nil before the first Publish.
func (s *Server) Served() *xds.Snapshot { return s.cache.Served() }

// Transitions returns what clients get, with the resources that stay until Trim, and what they would get
// of a Snapshot: one of each kind that the variants of resources tell apart. It is empty before the first
// Publish.
func (s *Server) Transitions(to *xds.Snapshot) []variants.Transition { return s.cache.Transitions(to) }

// Retry sends clients once more what they refused.
func (s *Server) Retry(ctx context.Context) error { return s.cache.Retry(ctx) }

// Clients returns who is served.
func (s *Server) Clients() []clients.Client { return s.cache.Clients() }

// Tell has the Server show what becomes of the source tree, to who asks for its status, to probes and in its
// metrics. Nobody may change w afterwards.
func (s *Server) Tell(w control.Watch) { s.front.showWatch(w) }

// Trim removes resources that no Snapshot has had for the TrimDelay, and returns how many. next is
// when to call it again; zero where nothing waits.
func (s *Server) Trim(ctx context.Context, now time.Time) (removed int, next time.Time, err error) {
	removed, oldest, err := s.cache.Trim(ctx, now.Add(-s.options.TrimDelay))
	if !oldest.IsZero() {
		next = oldest.Add(s.options.TrimDelay)
	}
	return removed, next, err
}
