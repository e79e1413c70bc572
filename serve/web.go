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
	"time"

	"xdspub/event"
	"xdspub/internal/addr"
	"xdspub/serve/admit"
	"xdspub/serve/listen"
	"xdspub/serve/memory"
	"xdspub/serve/rest"
	"xdspub/serve/turns"
)

// web listens on addresses, admits connections, enforces limits, and serves HTTP.
type web struct {
	http     *http.Server
	gate     *listen.Gate
	budget   *memory.Budget
	turns    *turns.Turns
	keys     *listen.Keys // nil for none
	security Security
	limits   Limits
	judge    *admit.Judge
	log      *event.Log
	crashes  crashes
}

// newWeb returns a web; serve sets its handler. resources returns the number of published resources; may be
// nil. newWeb's Budget calls refused with the level of each refusal of memory.
func newWeb(o Options, resources func() int, refused func(level string)) (*web, error) {
	o.ClientMemory = cmp.Or(o.ClientMemory, memory.Default)
	f := &web{log: o.Log, crashes: crashes{o.Log}, security: o.Security, limits: o.Limits.orDefault()}
	f.budget = memory.New(o.ClientMemory, memory.Options{
		Certificates: o.Security.TLS.ClientCA != "",
		Full:         func() { o.Log.Write(event.ClientMemoryFull{Bytes: o.ClientMemory}) },
		Refused:      refused,
	})
	f.judge = admit.New(admit.Options{
		Nodes: o.Security.Nodes, Default: o.Parameters, NodeParameters: o.NodeParameters, Params: o.Security.Params, Status: o.Security.Status,
		AggregateBy: o.AggregateBy,
		Names:       f.limits.Names, NameLength: f.limits.NameLength, Resources: resources, Certificates: o.Security.TLS.ClientCA != "", Log: o.Log,
	})
	// Leave one processor for short work, which takes no turn.
	f.turns = turns.New(max(1, runtime.GOMAXPROCS(0)-1))
	f.gate = listen.NewGate(listen.GateOptions{
		Connections: f.limits.Connections, Rate: f.limits.ConnectionRate, Budget: f.budget, Turns: f.turns,
		Refused: func(address string, err error) { f.judge.Refused(address, "memory", err) }, Log: o.Log,
	})
	if o.Security.TLS.Cert != "" {
		var err error
		if f.keys, err = listen.OpenKeys(o.Security.TLS, o.Log); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// listen opens an address, HOST:PORT, unix:PATH or fd:NAME. Several sockets may have one NAME.
func (f *web) listen(ctx context.Context, address string) ([]net.Listener, error) {
	a, err := addr.ParseListener(address)
	if err != nil {
		return nil, err
	}
	o := listen.Options{Keys: f.keys, Insecure: f.security.Insecure, Group: f.security.Group, Gate: f.gate, Log: f.log}
	if a.Network == "fd" {
		return listen.Passed(a.Name, o)
	}
	l, err := listen.Listen(ctx, a, o)
	return []net.Listener{l}, err
}

// serveHTTP serves HTTP on a listener until shutdown. Listeners speak TLS if the server has a certificate, except
// Unix sockets. The certificate of a client is optional, because health and metrics reveal no resources. The Judge
// decides which other requests need a certificate.
func (f *web) serveHTTP(l net.Listener) error {
	if f.keys != nil && l.Addr().Network() != "unix" {
		l = tls.NewListener(l, f.keys.Config(true, "h2", "http/1.1"))
	}
	if err := f.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// shutdown ends the HTTP server when its requests have ended, or when ctx ends.
func (f *web) shutdown(ctx context.Context) {
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
func (f *web) giveBack(ctx context.Context) {
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

// serve sets the handler of the HTTP server.
func (f *web) serve(handler http.Handler) {
	limits := f.limits
	// Accept HTTP/2 without TLS as well: an Envoy uses it for REST if its cluster says so.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	f.http = &http.Server{
		Handler:   f.crashes.guard(f.charged(handler)),
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

// connKey is the context key for the connection of a request.
type connKey struct{}

// charged returns a handler that charges the memory of a request to its client, before next handles the
// request. The handler marks the connection Known if the client may request resources. Otherwise, clients
// need a certificate and the client has none: the client gets only health and metrics, and the Gate may close
// its connection for another one.
func (f *web) charged(next http.Handler) http.Handler {
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
