// Package rest answers REST clients of the xDS transport protocol: a POST of a DiscoveryRequest as JSON gets
// a DiscoveryResponse as JSON.
//
//	http.Handle("/v3/", rest.New(cache, rest.Options{}))
//
// If a client already has the current version, its request waits for a change, and gets 304 Not Modified
// after a timeout. Envoy sends its own timeout with each request, and gets the answer a little earlier.
package rest

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/serve/memory"
	"xdspub/xds"
	"xdspub/xds/params"
)

// types are the served types by request path. Virtual hosts are missing: Envoy requests them only over
// incremental xDS.
var types = typesByPath()

func typesByPath() map[string]*xds.Type {
	byPath := make(map[string]*xds.Type)
	for _, t := range xds.Types {
		if t.Plural != "" {
			byPath["/v3/discovery:"+t.Plural] = t
		}
	}
	return byPath
}

// Options configure a Handler.
type Options struct {
	// Wait is the longest time that a request waits for a change; 0 means 30 seconds. The client's own
	// timeout may be shorter.
	Wait time.Duration
	// Judge judges the requests of the clients that Client returns. A nil Judge permits all requests, and
	// needs no Client.
	Judge  *admit.Judge
	Client func(*http.Request) admit.Client
	// Choose returns the Cache for a request with a node. The Handler calls leave after the answer. The error is a gRPC
	// status. With a nil Choose, all clients get the Cache that New got.
	Choose func(*http.Request, *corev3.Node) (c *cache.Cache, leave func(), err error)
	// Counter counts requests and responses; may be nil.
	Counter Counter
}

// Counter counts requests, by type.
type Counter interface {
	// Asked counts a request, Answered a response with its size, Rejected a NACK.
	Asked(*xds.Type)
	Answered(t *xds.Type, bytes int)
	Rejected(*xds.Type)
}

// none is the Counter of a Handler without Options.Counter.
type none struct{}

func (none) Asked(*xds.Type)         {}
func (none) Answered(*xds.Type, int) {}
func (none) Rejected(*xds.Type)      {}

// slowest is how long a client may take to read a response.
const slowest = time.Minute

// Handler answers REST clients. Handler is safe for concurrent use.
type Handler struct {
	options Options
	ended   chan struct{} // EndWaits closes ended
	end     sync.Once

	mu sync.Mutex
	// now caches the last content of each class of clients. The keys are classes of Poll.Watch.
	now map[any]*content
}

// New returns a Handler for the resources of a Cache.
func New(c *cache.Cache, o Options) *Handler {
	if o.Wait == 0 {
		o.Wait = 30 * time.Second
	}
	if o.Counter == nil {
		o.Counter = none{}
	}
	if o.Choose == nil {
		o.Choose = func(*http.Request, *corev3.Node) (*cache.Cache, func(), error) { return c, func() {}, nil }
	}
	return &Handler{options: o, ended: make(chan struct{}), now: make(map[any]*content)}
}

// EndWaits answers all waiting requests, and from then on each request at once. Call EndWaits when the server
// shuts down.
func (h *Handler) EndWaits() { h.end.Do(func() { close(h.ended) }) }

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of := types[r.URL.Path]
	if of == nil {
		http.Error(w, "no discovery service has this path; the paths are /v3/discovery:"+
			"clusters, endpoints, listeners, routes, scoped-routes, secrets, runtime and extension_configs", http.StatusNotFound)
		return
	}
	q, code, err := read(w, r, of)
	if _, noMemory := errors.AsType[*memory.Refusal](err); noMemory {
		h.refused(r, err)
		Refuse(w, err)
		return
	}
	if err != nil {
		if code == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		http.Error(w, err.Error(), code)
		return
	}
	client, err := h.admit(r, q)
	if err != nil {
		Refuse(w, err)
		return
	}
	h.answer(w, r, q, client)
}

// refused logs that a request was refused memory.
func (h *Handler) refused(r *http.Request, err error) {
	if h.options.Judge != nil {
		h.options.Judge.Refused(r.RemoteAddr, "memory", err)
	}
}

// admit judges a request. The returned Stream judges later whether the client may receive secrets; nil
// without a Judge.
func (h *Handler) admit(r *http.Request, q *request) (asks *admit.Stream, err error) {
	if h.options.Judge == nil {
		return nil, nil
	}
	client := h.options.Client(r)
	asks = h.options.Judge.Stream(client)
	if err = asks.Ask(admit.Request{Node: q.Node, TypeURL: q.Type.URL(), Names: q.Names}); err == nil {
		err = asks.Count(q.Type.URL(), len(q.Names))
	}
	return asks, err
}

// Refuse answers a request with the message of a gRPC status, and with the HTTP status for its code.
func Refuse(w http.ResponseWriter, err error) {
	is, code := status.Convert(err), http.StatusBadRequest
	_, noMemory := errors.AsType[*memory.Refusal](err)
	switch {
	case noMemory || is.Code() == codes.Unavailable:
		code = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "10")
	case is.Code() == codes.PermissionDenied:
		code = http.StatusForbidden
	case is.Code() == codes.ResourceExhausted:
		code = http.StatusRequestEntityTooLarge
	}
	http.Error(w, is.Message(), code)
}

// answer answers a request when its resources have changed, or with 304 after the request's patience, and
// with 503 before the first Publish.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, q *request, client *admit.Stream) {
	// The server's own deadlines are too short for requests that wait.
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Time{})
	_ = deadlines.SetWriteDeadline(time.Now().Add(h.options.Wait + slowest))
	h.options.Counter.Asked(q.Type)
	c, leave, err := h.options.Choose(r, q.Node)
	if err != nil {
		Refuse(w, err)
		return
	}
	defer leave()
	poll, rejected, err := c.Reader().Poll(q.Question)
	if err != nil {
		Refuse(w, err)
		return
	}
	h.countRejection(q, rejected)
	patience := time.NewTimer(q.patience(r.Header, h.options.Wait))
	defer patience.Stop()
	for {
		now, changed := h.read(poll)
		if now == nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "no snapshot is published yet: try again later", http.StatusServiceUnavailable)
			return
		}
		s := now.selected(q)
		verdict := poll.Judge(s.version, now.Snapshot)
		h.countRejection(q, verdict.Rejected)
		if verdict.Send {
			if bytes, sent := h.send(w, r, s, poll, client); sent {
				poll.Sent(s.version)
				h.options.Counter.Answered(q.Type, bytes)
			}
			return
		}
		var again <-chan time.Time
		if verdict.Pause > 0 {
			again = time.After(verdict.Pause)
		}
		select {
		case <-changed:
			continue
		case <-again:
			continue
		case <-patience.C:
		case <-h.ended:
		case <-r.Context().Done():
		}
		break
	}
	w.WriteHeader(http.StatusNotModified)
}

// mostContents is the largest number of contents in Handler.now. Some may be of classes without clients.
const mostContents = 2 * cache.MostClasses

// read returns the content for a client, nil before the first Publish, and a channel that is closed when
// resources of the type change.
func (h *Handler) read(p *cache.Poll) (*content, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	snapshot, class, changed := p.Watch()
	if snapshot == nil {
		return nil, changed
	}
	was := h.now[class]
	if was != nil && was.Snapshot == snapshot {
		return was, changed
	}
	if was == nil && len(h.now) >= mostContents {
		clear(h.now)
	}
	h.now[class] = was.next(snapshot)
	return h.now[class], changed
}

// countRejection counts a NACK.
func (h *Handler) countRejection(q *request, rejected bool) {
	if rejected {
		h.options.Counter.Rejected(q.Type)
	}
}

// send sends a DiscoveryResponse or an error. It returns the size of the response, and whether the whole response was
// written.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, s selected, poll *cache.Poll, client *admit.Stream) (bytes int, sent bool) {
	if client != nil {
		for _, secret := range s.secret() {
			if err := client.SecretOf(secret, []params.Parameters{poll.Parameters()}); err != nil {
				Refuse(w, err)
				return 0, false
			}
		}
	}
	body, err := s.body()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return 0, false
	}
	if !poll.All { // responses with all resources share one body
		if err := memory.Of(r.Context()).Take(len(body)); err != nil {
			h.refused(r, err)
			Refuse(w, err)
			return 0, false
		}
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, err = w.Write(body)
	return len(body), err == nil
}
