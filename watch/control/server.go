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

	"xdspub/xds/clients"
)

const (
	// patience is how long a client may take to say what it wants, and to take in
	// what it is told.
	patience = 5 * time.Second
	// maxConnections is how many clients are listened to at a time.
	maxConnections = 64
	// maxWaiting is how many requests wait for the watch. Each is a reconcile.
	maxWaiting = 8
	// maxRequest is beyond what a request has to say.
	maxRequest = 64 << 10
	// maxHeader as well.
	maxHeader = 16 << 10
)

// Server answers on the socket of an output directory. Bind and Close are for one
// goroutine, all else for any.
type Server struct {
	http     http.Server
	slots    chan struct{}
	requests chan *Request
	watch    atomic.Pointer[Watch]
	clients  func() []clients.Client // nil where none are served
	closed   chan struct{}

	bound   *bound         // nil while there is no socket
	serving sync.WaitGroup // one for each socket that there was
}

// New returns a Server that does not listen yet.
func New() *Server {
	s := &Server{slots: make(chan struct{}, maxConnections), requests: make(chan *Request, maxWaiting), closed: make(chan struct{})}
	s.watch.Store(&Watch{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+watchPath, s.getWatch)
	mux.HandleFunc("GET "+clientsPath, s.getClients)
	mux.HandleFunc("POST "+retryPath, s.postRetry)
	s.http = http.Server{
		Handler: mux, ReadTimeout: patience, MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ErrorLog: log.New(io.Discard, "", 0), // what a client does wrong it is told itself
	}
	s.http.SetKeepAlivesEnabled(false) // a slot is for one request
	return s
}

// Bind makes the socket of the directory out, which the caller has locked. It does nothing while
// the socket that it made last is still there.
func (s *Server) Bind(out string) error {
	if s.bound != nil && s.bound.stands(out) {
		return nil
	}
	s.Unbind()
	b, err := bind(out)
	if err != nil {
		return err
	}
	s.bound = b
	s.serving.Go(func() {
		defer close(b.ended)
		_ = s.http.Serve(newConnections(b.UnixListener, s.slots)) // why it ended the next Bind finds out
	})
	return nil
}

// Unbind removes the socket, until the next Bind.
func (s *Server) Unbind() { s.unbind(false) }

func (s *Server) unbind(keep bool) {
	if s.bound != nil {
		s.bound.close(keep)
		s.bound = nil
	}
}

// Close tells everyone who waits that the watch has ended. Ask returns an *EndedError from then on, until
// the next Bind or Forget.
func (s *Server) Close() {
	s.unbind(true)
	close(s.closed)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil { // a client that hangs is not waited for
		s.http.Close()
	}
	s.serving.Wait()
}

// connectionKey is for the connection in the context of a request.
type connectionKey struct{}

// TellClients says how to list the clients that are served. Call it before Bind.
func (s *Server) TellClients(list func() []clients.Client) { s.clients = list }

// Tell replaces the state that clients get. Nobody may change w afterwards.
func (s *Server) Tell(w Watch) { s.watch.Store(&w) }

// Requests returns the channel of the requests. Each request must be answered.
func (s *Server) Requests() <-chan *Request { return s.requests }

// Request is a request of a client that waits for its Result.
type Request struct {
	RetryHeld
	ctx    context.Context // of the connection
	result chan Result
	reason chan string
}

// Gone reports whether nobody waits for the answer any more.
func (r *Request) Gone() bool { return r.ctx.Err() != nil }

// Answer sends the Result to the client.
func (r *Request) Answer(result Result) { r.result <- result }

// Conflict answers that the watch is not the one that the request describes.
func (r *Request) Conflict(reason string) { r.reason <- reason }

func (s *Server) getWatch(w http.ResponseWriter, _ *http.Request) { write(w, s.watch.Load()) }

func (s *Server) getClients(w http.ResponseWriter, _ *http.Request) {
	list := []clients.Client{}
	if s.clients != nil {
		list = s.clients()
	}
	write(w, list)
}

func (s *Server) postRetry(w http.ResponseWriter, r *http.Request) {
	request := &Request{ctx: r.Context(), result: make(chan Result, 1), reason: make(chan string, 1)}
	if err := read(w, r, &request.RetryHeld); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		if !c.wait(true) {
			panic(http.ErrAbortHandler) // no answer, so that the client asks again
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
		case result := <-request.result: // the last thing that the watch did
			write(w, result)
		default:
			refuse(w, http.StatusServiceUnavailable, "the watch has ended")
		}
	}
}

// read takes the body of a request, which may be empty. From its end on the client
// may wait for as long as it likes: ReadTimeout ends with it.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return err
	}
	if len(data) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(data))
		// What is not understood might be a condition.
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

// write answers with JSON. A client that does not take it in loses its connection.
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

// limit gives the client its time to read. It fails where the connection is gone.
func limit(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
}
