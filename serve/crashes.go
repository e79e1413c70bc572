package serve

import (
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"xdspub/event"
	"xdspub/internal/crash"
)

// crashes ends a request that panics, and logs the panic.
type crashes struct{ log *event.Log }

// write logs a panic. doing is what the function that panicked did, if the panic itself does not say.
func (c crashes) write(e *crash.Error, doing string) {
	if e.While == "" {
		e.While = doing
	}
	c.log.Crashed(e)
}

// errCrashed is the answer to a client whose request panicked.
var errCrashed = status.Error(codes.Internal, "an internal error of xdspub; the log of the server has more")

// status logs the panic of the function that defers status, and sets *err to errCrashed. doing is what the function
// did.
func (c crashes) status(doing string, err *error) {
	if value := recover(); value != nil {
		c.write(crash.Of(value), doing)
		*err = errCrashed
	}
}

// guard returns a handler that answers a request with the status 500 if next panics. If next has begun to answer,
// the answer ends early.
func (c crashes) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answering{ResponseWriter: w}
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			if value == http.ErrAbortHandler {
				panic(value)
			}
			c.write(crash.Of(value), "answering an HTTP request")
			if a.began {
				panic(http.ErrAbortHandler)
			}
			http.Error(w, status.Convert(errCrashed).Message(), http.StatusInternalServerError)
		}()
		next.ServeHTTP(a, r)
	})
}

// answering is a ResponseWriter that records the beginning of the answer.
type answering struct {
	http.ResponseWriter
	began bool
}

// WriteHeader begins the answer.
func (a *answering) WriteHeader(code int) {
	a.began = true
	a.ResponseWriter.WriteHeader(code)
}

// Write begins the answer.
func (a *answering) Write(p []byte) (int, error) {
	a.began = true
	return a.ResponseWriter.Write(p)
}

// Unwrap returns the writer for http.ResponseController.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }
