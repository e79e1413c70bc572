package serve

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"xdspub/internal/crash"
	"xdspub/serve/admit"
	"xdspub/serve/csds"
	"xdspub/serve/listen"
	"xdspub/serve/rest"
)

// Security configures who may connect and what a client may request.
type Security struct {
	// TLS are the certificate files. Without TLS.Cert the server speaks plain TCP.
	TLS listen.Files
	// Insecure allows plain TCP from other machines.
	Insecure bool
	// Group is the name or number of the group that may connect to Unix sockets. Empty means the group of the
	// process.
	Group string
	// Nodes lists the node ids that a client may use, by the client's certificate. Empty permits any node id.
	Nodes []admit.NodeRule
	// Params lists the dynamic parameters that a client may send, by the client's certificate. A parameter
	// without a rule may have any value, but usually selects no secret with constraints
	// (admit.Stream.SecretOf).
	Params []admit.ParamRule
	// Status lists names in certificates; a client with such a name may request the status of all clients.
	Status []admit.NamePattern
}

// front is the network side of a Server: gRPC services, REST, and the handler Options.Operations.
type front struct {
	*web
	grpc     *grpc.Server
	health   *health.Server
	metrics  *metrics
	sessions *sessions
	// served means that the clients of the own Aggregate get a Snapshot.
	served     atomic.Bool
	aggregates *aggregates
	// draining ends with drain, which ends streams and waiting requests.
	draining context.Context
	drain    context.CancelFunc
}

func newFront(all *aggregates, o Options) (*front, error) {
	f := &front{health: health.NewServer(), metrics: newMetrics(o.Registry), aggregates: all}
	var err error
	if f.web, err = newWeb(o, all.resources, func(level string) { f.metrics.refused.WithLabelValues(level).Inc() }); err != nil {
		return nil, err
	}
	draining, drain := context.WithCancel(context.Background())
	f.draining, f.drain = draining, drain
	f.sessions = &sessions{
		limits: f.limits, turns: f.turns, judge: f.judge, metrics: f.metrics, aggregates: all, draining: draining, drain: o.DrainTime, crashes: f.crashes,
	}
	f.metrics.watch(all, f.sessions, f.web)
	f.grpc = grpc.NewServer(append(f.limits.options(),
		grpc.Creds(newDoor(f.keys, f.judge, f.crashes)), grpc.ForceServerCodecV2(newCodec()),
		grpc.StreamInterceptor(f.sessions.intercept), grpc.UnaryInterceptor(f.sessions.interceptCall))...)
	Register(f.grpc, all.own.cache)
	csds.Register(f.grpc, func(ctx context.Context) (csds.Answer, error) {
		if err := f.judge.Status(arrivalOf(ctx).client); err != nil {
			return csds.Answer{}, err
		}
		itself := f.serverStatus()
		itself.Aggregates = all.states(time.Now())
		return csds.Answer{Server: itself, Clients: all.clients()}, nil
	})
	grpc_health_v1.RegisterHealthServer(f.grpc, f.health)
	reflection.Register(f.grpc)
	f.showHealth()
	discovery := rest.New(all.own.cache, rest.Options{Judge: f.judge, Client: admit.OfHTTP, Choose: all.choose, Counter: restMetrics{f.metrics}})
	mux := http.NewServeMux()
	mux.Handle("/v3/", discovery)
	if o.Operations != nil {
		mux.Handle("/", until(draining, o.Operations))
	}
	f.serve(mux)
	context.AfterFunc(draining, crash.Guard(discovery.EndWaits, o.Log.Crashed))
	return f, nil
}

// refusedAggregate logs that a client gets no Aggregate.
func (f *front) refusedAggregate(client admit.Client, err error) {
	f.judge.Refused(client.Address, "aggregate: "+status.Code(err).String(), err)
}

// until returns a handler that ends the context of each request when ctx ends.
func until(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		next.ServeHTTP(w, r.WithContext(of))
	})
}

// setHealth sets the state of the server and of all its services in the gRPC health service.
func (f *front) setHealth(is grpc_health_v1.HealthCheckResponse_ServingStatus) {
	f.health.SetServingStatus("", is)
	for service := range f.grpc.GetServiceInfo() {
		f.health.SetServingStatus(service, is)
	}
}

// published records that the clients of an Aggregate get a Snapshot, and how long Publish took, including the wait for
// clients.
func (f *front) published(of *Aggregate, took time.Duration) {
	f.metrics.pushes.Observe(took.Seconds())
	if of == f.aggregates.own {
		f.served.Store(true)
		f.showHealth()
	}
}

// showHealth sets the status in the gRPC health service, which is the answer of /readyz: the server and the watch of
// its own Aggregate are ready. Clients choose the nodes of the other Aggregates, and must not make the server
// unready.
func (f *front) showHealth() {
	if f.isReady() && f.aggregates.own.watch.Load().Ready() {
		f.setHealth(grpc_health_v1.HealthCheckResponse_SERVING)
	} else {
		f.setHealth(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	}
}

// serverStatus returns the server's own part of a status answer, without the other Aggregates.
func (f *front) serverStatus() csds.Server {
	s := csds.Server{Watch: *f.aggregates.own.watch.Load()}
	if f.keys != nil {
		s.Certificate, s.ClientCA = f.keys.Certificate(), f.keys.ClientCA()
	}
	return s
}

// isReady reports whether a Snapshot is published and the server doesn't drain.
func (f *front) isReady() bool { return f.served.Load() && f.draining.Err() == nil }

// close sends GOAWAY to clients, ends their streams within the drain time, and closes the remaining
// connections a second later.
func (f *front) close() {
	f.health.Shutdown()
	f.drain()
	f.gate.Close()
	ctx, cancel := context.WithTimeout(context.Background(), f.sessions.drain+time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, f.grpc.Stop)
	defer stop()
	f.grpc.GracefulStop()
	f.shutdown(ctx)
}
