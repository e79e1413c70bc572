package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"

	"xdspub/event"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/xds/clients"
	"xdspub/xds/params"
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
	// AggregateBy are fields of nodes. Clients with equal values of these fields form an Aggregate; without fields, all
	// clients form an Aggregate. Node is the node of the Server for its control plane. The node of an Aggregate has
	// these fields of its clients, and all other fields of Node. Follow publishes Snapshots to an Aggregate until ctx
	// ends.
	AggregateBy []admit.NodeField
	Node        *corev3.Node
	Follow      func(ctx context.Context, a *Aggregate)
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

// Server serves Snapshots to clients over the network. The methods of its own Aggregate are those of the Server.
type Server struct {
	network
	*Aggregate
	aggregates *aggregates
}

// Listen opens the addresses. Run serves and closes them, and must be called.
func Listen(ctx context.Context, o Options) (*Server, error) {
	all, err := newAggregates(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Server{Aggregate: all.own, aggregates: all, network: network{web: all.front.web, end: all.close}}
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

// Clients returns the connected clients of all Aggregates. The clients that have disconnected within an hour follow.
func (s *Server) Clients() []clients.Client { return s.aggregates.clients() }
