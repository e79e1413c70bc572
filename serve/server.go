package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
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
	// TrimDelay is how long a dropped resource stays before Trim removes the resource, and how long a
	// reconnecting client keeps a resource that no longer exists.
	TrimDelay time.Duration
	// DrainTime is how long clients may take to leave after the ctx of Run has ended.
	DrainTime time.Duration
	// Security configures who may connect and what a client may request. Limits bound the cost of clients.
	Security Security
	Limits   Limits
	// Operations handles HTTP requests that are not for REST; nil answers them with 404. The contexts of its
	// requests end when the Server drains. Registry gets the metrics of the Server; nil discards them.
	Operations http.Handler
	Registry   *prometheus.Registry
	// ClientMemory is the memory in bytes that clients may make the server hold; 0 means memory.Default.
	ClientMemory int64
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Server serves Snapshots to clients over the network. Publish, Retry and Trim may be called
// before and while Run runs; clients that connect before the first Publish wait for it.
type Server struct {
	network
	options       Options
	cache         *cache.Cache
	front         *front
	confirmation  atomic.Pointer[confirmation] // of the last published Snapshot; nil before
	confirmedLate chan struct{}                // buffers one signal
}

// Listen opens the addresses. Run serves and closes them, and must be called.
func Listen(ctx context.Context, o Options) (*Server, error) {
	s := &Server{options: o, confirmedLate: make(chan struct{}, 1), cache: cache.New(cache.Options{
		Cluster: o.Cluster, Parameters: admit.Options{Default: o.Parameters, NodeParameters: o.NodeParameters}.Parameters,
		TrimDelay: o.TrimDelay, Log: o.Log,
	})}
	var err error
	if s.front, err = newFront(s.cache, o); err != nil {
		return nil, err
	}
	s.network = network{web: s.front.web, end: s.front.close}
	if err := s.open(ctx, "grpc", o.GRPC, s.front.grpc.Serve); err != nil {
		return nil, err
	}
	if err := s.open(ctx, "http", o.HTTP, s.serveHTTP); err != nil {
		return nil, err
	}
	return s, nil
}

// Operations serves the Options.Operations of a process without xDS clients over HTTP, with the certificates and the
// limits of a Server.
type Operations struct{ network }

// ListenOperations opens the addresses of Options.HTTP. Run serves and closes them, and must be called. Of
// the Options, ListenOperations uses HTTP, Operations, Registry, Security, Limits, ClientMemory and Log.
func ListenOperations(ctx context.Context, o Options) (*Operations, error) {
	web, err := newWeb(o, nil, func(string) {})
	if err != nil {
		return nil, err
	}
	if o.Registry != nil {
		watchCertificate(o.Registry, web)
	}
	draining, drain := context.WithCancel(context.Background())
	web.serve(until(draining, o.Operations))
	s := &Operations{network{web: web, end: func() {
		drain()
		web.gate.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		web.shutdown(ctx)
	}}}
	if err := s.open(ctx, "http", o.HTTP, s.serveHTTP); err != nil {
		return nil, err
	}
	return s, nil
}

// MayAsk returns an error if an HTTP request may not see the status of all clients, by the same rules as CSDS.
func (n *network) MayAsk(r *http.Request) error {
	if err := n.judge.Status(admit.OfHTTP(r)); err != nil {
		return errors.New(status.Convert(err).Message())
	}
	return nil
}

// Ready reports whether a Snapshot is published and the Server doesn't drain. Ready also returns the faults
// of the certificates at a time, as text for people.
func (s *Server) Ready(now time.Time) (ready bool, faults []string) {
	itself := s.front.serverStatus()
	return s.front.isReady(), itself.CertificateFaults(now)
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

// confirmed publishes a Snapshot, and waits for the clients as Options.Confirm says.
func (s *Server) confirmed(ctx context.Context, snapshot *xds.Snapshot) error {
	if s.options.Confirm == nil {
		return s.cache.Publish(ctx, snapshot)
	}
	answers, err := s.cache.Confirm(ctx, snapshot, *s.options.Confirm)
	if answers.Unchanged || answers.TakenBack {
		return refusal(answers, err) // what is known about the served Snapshot stays true
	}
	is := &confirmation{acknowledged: answers.Confirmed && answers.Acknowledged > 0}
	if !answers.Confirmed {
		is.unconfirmed = fmt.Sprintf("%d of the %s that the snapshot concerns have acknowledged it", answers.Acknowledged, diag.Count(answers.Concerned, "client"))
	}
	s.confirmation.Store(is)
	if err == nil && !answers.Confirmed && !answers.Refused {
		go crash.Guard(func() { s.awaitLate(is) }, s.options.Log.Crashed)()
	}
	return refusal(answers, err)
}

// confirmation has the results of Unconfirmed and Acknowledged.
type confirmation struct {
	unconfirmed  string
	acknowledged bool
}

// refusal returns err, or a *clients.RefusedError if the clients have rejected a Snapshot.
func refusal(answers cache.Answers, err error) error {
	if err == nil && answers.Refused {
		err = &clients.RefusedError{Findings: answers.Findings, TakenBack: answers.TakenBack}
	}
	return err
}

// awaitLate clears the result of Unconfirmed when the quorum has acknowledged the Snapshot after the Timeout.
func (s *Server) awaitLate(was *confirmation) {
	answers := s.cache.AwaitLate()
	if answers.Confirmed && s.confirmation.CompareAndSwap(was, &confirmation{acknowledged: answers.Acknowledged > 0}) {
		select {
		case s.confirmedLate <- struct{}{}:
		default:
		}
	}
}

// ConfirmedLate receives a value when the quorum has acknowledged the published Snapshot after the Timeout of
// Options.Confirm.
func (s *Server) ConfirmedLate() <-chan struct{} { return s.confirmedLate }

// Confirms reports whether the Server has Options.Confirm.
func (s *Server) Confirms() bool { return s.options.Confirm != nil }

// Unconfirmed returns how many clients have acknowledged the last published Snapshot, as text; "" if the
// quorum has acknowledged the Snapshot, or without Options.Confirm.
func (s *Server) Unconfirmed() string {
	if is := s.confirmation.Load(); is != nil {
		return is.unconfirmed
	}
	return ""
}

// Acknowledged reports whether the quorum, and at least one client, has acknowledged the last published Snapshot.
func (s *Server) Acknowledged() bool {
	is := s.confirmation.Load()
	return is != nil && is.acknowledged
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

// Tell sets the state of the source tree, which status answers and the gRPC health service show. The caller must not
// change what w refers to afterwards.
func (s *Server) Tell(w control.Watch) { s.front.tell(w) }

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
