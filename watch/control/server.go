package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/xds/clients"
)

const (
	// patience is how long a client may take to send a request, and to read the answer.
	patience = 5 * time.Second
	// maxConnections is the largest number of open connections.
	maxConnections = 64
	// maxWaiting is the largest number of requests that wait for the watch. Each request is a reconcile.
	maxWaiting = 8
	// maxRequest is the largest body of a request in bytes.
	maxRequest = 64 << 10
	// maxHeader is the largest header of a request in bytes.
	maxHeader = 16 << 10
)

// Server answers on the socket of an output directory. Bind, Unbind and Close must be called by one
// goroutine; the other methods are safe for concurrent use.
type Server struct {
	http     http.Server
	log      *event.Log
	slots    chan struct{}
	requests chan *Request
	watch    atomic.Pointer[Watch]
	clients  func() []clients.Client // nil if the watch serves no clients
	events   *event.History          // nil if the watch remembers no events
	closed   chan struct{}

	bound   *bound         // nil without a socket
	serving sync.WaitGroup // one goroutine per socket
}

// New returns a Server that does not listen yet, and logs panics in to.
func New(to *event.Log) *Server {
	s := &Server{log: to, slots: make(chan struct{}, maxConnections), requests: make(chan *Request, maxWaiting), closed: make(chan struct{})}
	s.watch.Store(&Watch{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+watchPath, s.getWatch)
	mux.HandleFunc("GET "+clientsPath, s.getClients)
	mux.HandleFunc("GET "+eventsPath, s.getEvents)
	mux.HandleFunc("POST "+retryPath, handle[RetryHeld](s))
	mux.HandleFunc("POST "+pausePath, handle[Pause](s))
	mux.HandleFunc("POST "+resumePath, handle[Resume](s))
	mux.HandleFunc("POST "+rollbackPath, handle[Rollback](s))
	mux.HandleFunc("POST "+approvePath, handle[Approve](s))
	mux.HandleFunc("POST "+confirmPath, handle[Confirm](s))
	mux.HandleFunc("POST "+cancelPath, handle[Cancel](s))
	mux.HandleFunc("POST "+extendPath, handle[Extend](s))
	s.http = http.Server{
		Handler: guard(mux, to), ReadTimeout: patience, MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ErrorLog: log.New(io.Discard, "", 0), // a client gets the errors about its own requests
	}
	s.http.SetKeepAlivesEnabled(false) // a slot is for one request
	return s
}

// Bind creates the socket in the directory out, which the caller has locked. Bind does nothing if the socket of
// the last Bind still exists there and accepts connections.
func (s *Server) Bind(out string) error {
	if s.bound != nil && s.bound.isCurrent(out) {
		return nil
	}
	s.Unbind()
	b, err := bind(out)
	if err != nil {
		return err
	}
	s.bound = b
	s.serving.Go(crash.Guard(func() {
		defer close(b.ended)
		_ = s.http.Serve(newConnections(b.UnixListener, s.slots)) // the next Bind reports the error
	}, s.log.Crashed))
	return nil
}

// guard returns a handler that logs a panic of next, and ends the request.
func guard(next http.Handler, to *event.Log) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			if value != http.ErrAbortHandler {
				to.Crashed(crash.Of(value))
			}
			panic(http.ErrAbortHandler) // ends the connection
		}()
		next.ServeHTTP(w, r)
	})
}

// Unbind removes the socket, until the next Bind.
func (s *Server) Unbind() { s.unbind(false) }

func (s *Server) unbind(keep bool) {
	if s.bound != nil {
		s.bound.close(keep)
		s.bound = nil
	}
}

// Close removes the socket and answers all waiting requests with an error, because the watch has ended.
// Afterwards Ask returns an *EndedError, until the next Bind or Forget.
func (s *Server) Close() {
	s.unbind(true)
	close(s.closed)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil { // don't wait for clients that hang
		s.http.Close()
	}
	s.serving.Wait()
}

// connectionKey is the context key for the connection of a request.
type connectionKey struct{}

// TellClients sets the function that lists the clients. Call TellClients before Bind.
func (s *Server) TellClients(list func() []clients.Client) { s.clients = list }

// TellEvents sets the events that clients get. Call TellEvents before Bind.
func (s *Server) TellEvents(h *event.History) { s.events = h }

// Tell replaces the state that clients get. The caller must not change w afterwards.
func (s *Server) Tell(w Watch) { s.watch.Store(&w) }

// Requests returns the channel of requests. The receiver must answer each request.
func (s *Server) Requests() <-chan *Request { return s.requests }

// Request is a request whose client waits for a Result.
type Request struct {
	// Asked is what the client asks for: a RetryHeld, a Pause, a Resume, a Rollback, an Approve, a Confirm, a Cancel or
	// an Extend.
	Asked any

	came   time.Time
	ctx    context.Context // of the connection
	result chan Result
	reason chan string
}

// Waited returns how long the request has waited.
func (r *Request) Waited() time.Duration { return time.Since(r.came) }

// Gone reports whether the client has left.
func (r *Request) Gone() bool { return r.ctx.Err() != nil }

// Answer sends the Result to the client.
func (r *Request) Answer(result Result) {
	result.Message = diag.Hide(result.Message)
	r.result <- result
}

// Conflict answers that the watch doesn't match the request.
func (r *Request) Conflict(reason string) { r.reason <- reason }

func (s *Server) getWatch(w http.ResponseWriter, _ *http.Request) { write(w, s.watch.Load()) }

func (s *Server) getClients(w http.ResponseWriter, _ *http.Request) {
	list := []clients.Client{}
	if s.clients != nil {
		list = s.clients()
	}
	write(w, list)
}

// mostEvents is the largest number of events of an answer.
const mostEvents = 1000

func (s *Server) getEvents(w http.ResponseWriter, _ *http.Request) {
	list := []json.RawMessage{}
	if s.events != nil {
		last := s.events.Last()
		_, lines, _ := s.events.Since(last - min(last, mostEvents))
		for _, l := range lines {
			list = append(list, l.JSON)
		}
	}
	write(w, list)
}

// handle returns the handler of requests with a body of type T.
func handle[T any](s *Server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked T
		if err := read(w, r, &asked); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		s.pass(w, r, asked)
	}
}

// pass passes a request on to the watch, and waits for the answer.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, asked any) {
	request := &Request{Asked: asked, came: time.Now(), ctx: r.Context(), result: make(chan Result, 1), reason: make(chan string, 1)}
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		if !c.wait(true) {
			panic(http.ErrAbortHandler) // without an answer the client asks again
		}
		defer c.wait(false)
	}
	select {
	case s.requests <- request:
	default:
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d requests are waiting already: ask again later", maxWaiting))
		return
	}
	select {
	case result := <-request.result:
		write(w, result)
	case reason := <-request.reason:
		refuse(w, http.StatusConflict, reason)
	case <-request.ctx.Done():
	case <-s.closed:
		select {
		case result := <-request.result: // the watch has answered just before its end
			write(w, result)
		default:
			refuse(w, http.StatusServiceUnavailable, "the watch has ended")
		}
	}
}

// read reads the body of a request, which may be empty. ReadTimeout ends with the body, so that the client
// may then wait without limit.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return err
	}
	if len(data) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(data))
		// An unknown field might be a condition.
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			return err
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return errors.New("more than one JSON value")
		}
	}
	return nil
}

// write answers with JSON. A client that doesn't read the answer in time loses its connection.
func write(w http.ResponseWriter, answer any) {
	data, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	if limit(w) == nil {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(data, '\n'))
	}
}

// refuse answers with a sentence.
func refuse(w http.ResponseWriter, status int, reason string) {
	if limit(w) == nil {
		http.Error(w, reason, status)
	}
}

// limit sets the deadline for writing the answer. limit fails if the connection is closed.
func limit(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
}
