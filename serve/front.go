package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"xdspub/event"
	"xdspub/internal/addr"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/serve/csds"
	"xdspub/serve/listen"
	"xdspub/serve/memory"
	"xdspub/serve/rest"
	"xdspub/serve/turns"
	"xdspub/watch/control"
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

// front is the network side of a Server. front admits clients and enforces limits.
type front struct {
	grpc     *grpc.Server
	http     *http.Server
	health   *health.Server
	gate     *listen.Gate
	budget   *memory.Budget
	turns    *turns.Turns
	keys     *listen.Keys // nil for none
	security Security
	judge    *admit.Judge
	metrics  *metrics
	sessions *sessions
	log      *event.Log
	// watch is the state of the source tree. succeeded is the end of the last reconcile that published the
	// source tree; nil before the first.
	watch     atomic.Pointer[control.Watch]
	succeeded atomic.Pointer[time.Time]
	// drain ends streams and waiting requests.
	drain context.CancelFunc
}

func newFront(c *cache.Cache, o Options) (*front, error) {
	o.ClientMemory = cmp.Or(o.ClientMemory, memory.Default)
	limits := o.Limits.orDefault()
	f := &front{log: o.Log, security: o.Security, health: health.NewServer(), metrics: newMetrics()}
	f.budget = memory.New(o.ClientMemory, memory.Options{
		Certificates: o.Security.TLS.ClientCA != "",
		Full:         func() { o.Log.Write(event.ClientMemoryFull{Bytes: o.ClientMemory}) },
		Refused:      func(level string) { f.metrics.refused.WithLabelValues(level).Inc() },
	})
	f.judge = admit.New(admit.Options{
		Nodes: o.Security.Nodes, Default: o.Parameters, NodeParameters: o.NodeParameters, Params: o.Security.Params, Status: o.Security.Status,
		Names: limits.Names, NameLength: limits.NameLength, Resources: c.Resources, Certificates: o.Security.TLS.ClientCA != "", Log: o.Log,
	})
	// Leave one processor for short work, which takes no turn.
	f.turns = turns.New(max(1, runtime.GOMAXPROCS(0)-1))
	f.gate = listen.NewGate(listen.GateOptions{
		Connections: limits.Connections, Rate: limits.ConnectionRate, Budget: f.budget, Turns: f.turns,
		Refused: func(address string, err error) { f.judge.Refused(address, "memory", err) }, Log: o.Log,
	})
	if o.Security.TLS.Cert != "" {
		var err error
		if f.keys, err = listen.OpenKeys(o.Security.TLS, o.Log); err != nil {
			return nil, err
		}
	}
	var draining context.Context
	draining, f.drain = context.WithCancel(context.Background())
	f.sessions = &sessions{limits: limits, turns: f.turns, judge: f.judge, metrics: f.metrics, draining: draining, drain: o.DrainTime}
	f.showWatch(control.Watch{})
	f.metrics.watch(c, f, f.sessions, f.gate, f.budget, f.keys)
	f.grpc = grpc.NewServer(append(limits.options(),
		grpc.Creds(newDoor(f.keys, f.judge)), grpc.ForceServerCodecV2(newCodec()),
		grpc.StreamInterceptor(f.sessions.intercept), grpc.UnaryInterceptor(f.sessions.interceptCall))...)
	Register(f.grpc, c)
	csds.Register(f.grpc, func(ctx context.Context) (csds.Answer, error) {
		if err := f.judge.Status(arrivalOf(ctx).client); err != nil {
			return csds.Answer{}, err
		}
		return csds.Answer{Server: f.itself(), Clients: c.Clients()}, nil
	})
	grpc_health_v1.RegisterHealthServer(f.grpc, f.health)
	reflection.Register(f.grpc)
	f.tell(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	discovery := rest.New(c, rest.Options{Judge: f.judge, Client: admit.OfHTTP, Counter: restMetrics{f.metrics}})
	f.http = newHTTP(f, discovery, limits)
	context.AfterFunc(draining, discovery.EndWaits)
	return f, nil
}

// tell sets the status of all services in the gRPC health service.
func (f *front) tell(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	f.health.SetServingStatus("", status)
	for service := range f.grpc.GetServiceInfo() {
		f.health.SetServingStatus(service, status)
	}
}

// published marks the server ready, and records how long Publish took, including the wait for clients.
func (f *front) published(took time.Duration) {
	f.tell(grpc_health_v1.HealthCheckResponse_SERVING)
	f.metrics.pushes.Observe(took.Seconds())
	f.metrics.published.SetToCurrentTime()
}

// showWatch sets the state of the source tree that status, probes and metrics show.
func (f *front) showWatch(w control.Watch) {
	f.watch.Store(&w)
	if w.Last != nil && w.Last.Outcome == control.Published {
		f.succeeded.Store(&w.Last.Ended)
	}
}

// itself returns the server's own part of a status answer.
func (f *front) itself() csds.Server {
	s := csds.Server{Watch: *f.watch.Load()}
	if f.keys != nil {
		s.Certificate, s.ClientCA = f.keys.Certificate(), f.keys.ClientCA()
	}
	return s
}

// isReady reports whether the health service answers SERVING.
func (f *front) isReady() bool {
	r, err := f.health.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	return err == nil && r.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
}

// listen opens an address, HOST:PORT or unix:PATH.
func (f *front) listen(ctx context.Context, address string) (net.Listener, error) {
	a, err := addr.Parse(address)
	if err != nil {
		return nil, err
	}
	return listen.Listen(ctx, a, listen.Options{Keys: f.keys, Insecure: f.security.Insecure, Group: f.security.Group, Gate: f.gate, Log: f.log})
}

// serveHTTP serves HTTP on a listener until close. Listeners speak TLS if the server has a certificate,
// except Unix sockets. The certificate of a client is optional, because health and metrics reveal no
// resources. The Judge decides which requests for resources need a certificate.
func (f *front) serveHTTP(l net.Listener) error {
	if f.keys != nil && l.Addr().Network() != "unix" {
		l = tls.NewListener(l, f.keys.Config(true, "h2", "http/1.1"))
	}
	if err := f.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

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
	if f.http.Shutdown(ctx) != nil {
		f.http.Close()
	}
}

const (
	// lookAgain is the interval at which giveBack checks the budget.
	lookAgain = 5 * time.Second
	// worthwhile is how many bytes clients must have freed since a peak before giveBack returns memory to the
	// system.
	worthwhile = 8 << 20
	// looksAfter is the number of checks after a peak that return memory. One check is too few: a connection
	// gives its bytes back to the budget before its memory is free.
	looksAfter = 4
)

// giveBack returns memory to the system after clients have freed it, until ctx ends. The runtime alone waits
// up to two minutes for the next garbage collection if nothing is allocated, and returns memory slowly.
func (f *front) giveBack(ctx context.Context) {
	ticks := time.NewTicker(lookAgain)
	defer ticks.Stop()
	for most, left := int64(0), 0; ; {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		held := f.budget.Held()
		if most = max(most, f.budget.Peak()); most-held > worthwhile && held < most/2 {
			most, left = held, looksAfter
		}
		if left > 0 {
			left--
			runtime.GC() // pools keep their buffers until the second collection
			debug.FreeOSMemory()
		}
	}
}

// newHTTP returns the server for --http.
func newHTTP(f *front, discovery http.Handler, limits Limits) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/v3/", discovery)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, true, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		itself := f.itself()
		answer(w, f.isReady(), itself.Faults(time.Now()))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.metrics.registry, promhttp.HandlerOpts{}))
	// Accept HTTP/2 without TLS as well: an Envoy uses it for REST if its cluster says so.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:   f.known(mux),
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: limits.ConnectionStreams, MaxReceiveBufferPerConnection: 4 * window, MaxReceiveBufferPerStream: window,
			SendPingTimeout: limits.Ping, PingTimeout: limits.PingAnswer, WriteByteTimeout: limits.Send,
		},
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:          log.New(io.Discard, "", 0), // a client gets the errors about its own requests
		ReadHeaderTimeout: limits.Handshake, ReadTimeout: 2 * limits.Handshake, WriteTimeout: limits.Send,
		IdleTimeout: limits.Idle, MaxHeaderBytes: limits.Header,
	}
}

// answer answers a probe with a line for ok and a line for each fault. A server can be ready with faults: the
// server keeps serving the last valid snapshot while the source tree is invalid.
func answer(w http.ResponseWriter, ok bool, faults []string) {
	if !ok {
		http.Error(w, strings.Join(append([]string{"not ready"}, faults...), "\n"), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, strings.Join(append([]string{"ok"}, faults...), "\n")+"\n") // an error means that the client has left
}

// connKey is the context key for the connection of a request.
type connKey struct{}

// known charges a request's memory to its client. known marks the connection Known if the client may request
// resources. Otherwise, clients need a certificate and the client has none: the client gets only health and
// metrics, and the Gate may close its connection for another one.
func (f *front) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := admit.OfHTTP(r)
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		if err := identify(conn, client); err != nil {
			rest.Refuse(w, err)
			return
		}
		if client.Local || client.Certificate != nil || f.security.TLS.ClientCA == "" {
			listen.Known(conn)
		}
		account := listen.Account(conn).Open()
		defer account.Close()
		if err := account.Take(heldByRequest + heldByHeaders(r.Header)); err != nil {
			f.judge.Refused(client.Address, "memory", err)
			rest.Refuse(w, err)
			return
		}
		_, peer := client.Peer()
		next.ServeHTTP(w, r.WithContext(turns.With(memory.With(r.Context(), account), f.turns.Client(peer))))
	})
}
