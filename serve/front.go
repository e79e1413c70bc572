package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"xdspub/clients"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/serve/csds"
	"xdspub/serve/listen"
	"xdspub/serve/rest"
)

// Security says who may connect, and as what.
type Security struct {
	// TLS are the files of certificates; without a Cert there is no TLS.
	TLS listen.Files
	// Insecure allows plain TCP from other machines.
	Insecure bool
	// Group is the name or number of the group that may connect to Unix sockets. Empty means
	// that of the process.
	Group string
	// Nodes are the nodes that clients may be, by their certificates; empty lets all be any.
	Nodes []admit.NodeRule
	// Params are the dynamic parameters that clients may have, by their certificates; one that none is about may
	// be any, but gets no secret that is for some clients only.
	Params []admit.ParamRule
	// Status are the names in certificates whose clients may ask what all clients run.
	Status []admit.NamePattern
}

// front is the side of a Server that clients see: it lets them in, and keeps them within limits.
type front struct {
	grpc     *grpc.Server
	http     *http.Server
	health   *health.Server
	gate     *listen.Gate
	keys     *listen.Keys // nil for none
	security Security
	judge    *admit.Judge
	metrics  *metrics
	sessions *sessions
	// drain ends streams and requests that wait.
	drain context.CancelFunc
}

func newFront(c *cache.Cache, o Options) (*front, error) {
	limits := o.Limits.orDefault()
	f := &front{
		security: o.Security, health: health.NewServer(), metrics: newMetrics(),
		gate:  listen.NewGate(limits.Connections, limits.ConnectionRate, o.Log),
		judge: admit.New(admit.Options{Nodes: o.Security.Nodes, Default: o.Parameters, NodeParameters: o.NodeParameters, Params: o.Security.Params, Status: o.Security.Status, Names: limits.Names, NameLength: limits.NameLength, Resources: c.Resources, Certificates: o.Security.TLS.ClientCA != "", Log: o.Log}),
	}
	if o.Security.TLS.Cert != "" {
		var err error
		if f.keys, err = listen.OpenKeys(o.Security.TLS, o.Log); err != nil {
			return nil, err
		}
	}
	var draining context.Context
	draining, f.drain = context.WithCancel(context.Background())
	f.sessions = &sessions{limits: limits, judge: f.judge, metrics: f.metrics, draining: draining, drain: o.DrainTime}
	f.metrics.watch(c, f.sessions, f.gate, f.keys)
	f.grpc = grpc.NewServer(append(limits.options(), grpc.Creds(newDoor(f.keys, f.judge)), grpc.ForceServerCodecV2(newCodec()), grpc.StreamInterceptor(f.sessions.intercept), grpc.UnaryInterceptor(f.sessions.interceptCall))...)
	Register(f.grpc, c)
	csds.Register(f.grpc, func(ctx context.Context) ([]clients.Client, error) {
		if err := f.judge.Status(arrivalOf(ctx).client); err != nil {
			return nil, err
		}
		return c.Clients(), nil
	})
	grpc_health_v1.RegisterHealthServer(f.grpc, f.health)
	reflection.Register(f.grpc)
	f.tell(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	discovery := rest.New(c, rest.Options{Judge: f.judge, Client: admit.OfHTTP, Counter: restMetrics{f.metrics}})
	f.http = newHTTP(f, discovery, limits)
	context.AfterFunc(draining, discovery.EndWaits)
	return f, nil
}

// tell has the health service say whether clients are served.
func (f *front) tell(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	f.health.SetServingStatus("", status)
	for service := range f.grpc.GetServiceInfo() {
		f.health.SetServingStatus(service, status)
	}
}

// published says that there is something to serve, and how long it took to hand it to the streams.
func (f *front) published(took time.Duration) {
	f.tell(grpc_health_v1.HealthCheckResponse_SERVING)
	f.metrics.pushes.Observe(took.Seconds())
	f.metrics.published.SetToCurrentTime()
}

// isReady reports whether the health service says so.
func (f *front) isReady() bool {
	r, err := f.health.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	return err == nil && r.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
}

// listen opens an address, HOST:PORT or unix:PATH.
func (f *front) listen(ctx context.Context, address string) (net.Listener, error) {
	a, err := listen.Parse(address)
	if err != nil {
		return nil, err
	}
	return listen.Listen(ctx, a, listen.Options{Keys: f.keys, Insecure: f.security.Insecure, Group: f.security.Group, Gate: f.gate})
}

// serveHTTP serves HTTP on a listener: with TLS, but for Unix sockets. A client without a
// certificate gets health and metrics, which tell nothing of resources.
func (f *front) serveHTTP(l net.Listener) error {
	if f.keys != nil && l.Addr().Network() != "unix" {
		l = tls.NewListener(l, f.keys.Config(true, "h2", "http/1.1"))
	}
	if err := f.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// close asks clients to leave (GOAWAY), ends their streams within the drain time, and after that
// their connections.
func (f *front) close() {
	f.health.Shutdown()
	f.drain()
	f.gate.Close()
	ctx, cancel := context.WithTimeout(context.Background(), f.sessions.drain+time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, f.grpc.Stop)
	defer stop()
	f.grpc.GracefulStop()
	if f.http.Shutdown(ctx) != nil {
		f.http.Close()
	}
}

// newHTTP returns the server of --http.
func newHTTP(f *front, discovery http.Handler, limits Limits) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/v3/", discovery)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, true) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, f.isReady()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.metrics.registry, promhttp.HandlerOpts{}))
	// Without TLS too, for those that begin with it: an Envoy by REST speaks what its cluster says.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           known(mux),
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: limits.ConnectionStreams, SendPingTimeout: limits.Ping, PingTimeout: limits.PingAnswer, WriteByteTimeout: limits.Send},
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:          log.New(io.Discard, "", 0), // what a client does wrong it is told itself
		ReadHeaderTimeout: limits.Handshake, ReadTimeout: 2 * limits.Handshake, WriteTimeout: limits.Send, IdleTimeout: limits.Idle, MaxHeaderBytes: limits.Header,
	}
}

func answer(w http.ResponseWriter, ok bool) {
	if !ok {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // nobody else cares whether it arrives
}

// connKey is for the connection in the context of a request.
type connKey struct{}

// known makes the connection of a request one that stays: it has asked for something.
func known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			listen.Known(conn)
		}
		next.ServeHTTP(w, r)
	})
}
