// Package upstream follows a control plane: a client of the xDS transport protocol. The client subscribes as Envoy
// does, to all clusters and listeners and to the names that resources refer to, and answers each response once the
// resources are judged.
//
//	u := upstream.New(upstream.Options{Name: "xds://127.0.0.1:18000", Servers: []upstream.Server{{Address: "127.0.0.1:18000"}}})
//	go u.Run(ctx)
//	contents, err := u.Read(ctx)
//	u.Judged(load.Judgement{N: contents.N, Accepted: true})
package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/event"
	"xdspub/internal/grpcdial"
	"xdspub/source/load"
	"xdspub/xds"
)

// Codes are the codes of the findings of this package.
var Codes = []diag.Code{codeUpstream}

var codeUpstream = diag.Code{Name: "control-plane", Doc: `A control plane sends a resource that xdspub refuses.

The name around a resource must be the name of the resource, and a response must have each name only once. Secrets, and
resources that subscribe to secrets, must come by TLS or through a Unix socket. Virtual hosts of VHDS and endpoints of
LEDS need an incremental transport.`}

// Options configure an Upstream.
type Options struct {
	// Name is the name of the control plane in findings: the argument of the command.
	Name string
	// Servers are the servers of the control plane. A server is asked if no earlier one answers.
	Servers []Server
	// Transport is the variant of the protocol.
	Transport Transport
	// Clusters are the names of the clusters of Envoy whose endpoints are the control plane. A gRPC config source with
	// such a cluster asks the control plane, as self does. Only singleton transports need Clusters.
	Clusters []string
	// Node identifies the client.
	Node *corev3.Node
	// Params are the dynamic parameters of the client. The client sends them in locators.
	Params map[string]string
	// Runtime are the names of the runtime layers of the bootstrap.
	Runtime []string
	// Envoy is the version of the Envoys that get the resources. Streams is load.Options.Streams.
	Envoy   *envoyapi.Version
	Streams bool
	// QuietPeriod is how long a server must be silent before its resources are judged; 0 means 10ms.
	QuietPeriod time.Duration
	// Judge returns the findings about Contents that are not whole. The client answers by them, because a server may
	// wait for the answer before it sends the rest.
	Judge func(ctx context.Context, c load.Contents) (diag.List, error)
	// Budget bounds the bytes of the resources of several Upstreams together; nil for no such bound.
	Budget *Budget
	// Log receives the log lines; nil discards them.
	Log *event.Log
}

// Server is the address of a server.
type Server struct {
	// Address is HOST:PORT or unix:PATH.
	Address string
	// TLS has the files for TLS; nil for no TLS.
	TLS *grpcdial.Files
}

// secure reports whether secrets may come from the server.
func (s Server) secure() bool { return s.TLS != nil || strings.HasPrefix(s.Address, "unix:") }

// bounds are the limits of an Upstream. Tests have smaller ones.
type bounds struct {
	// absentAfter is how long a name may stay without an answer until the client goes on without the resource. It is
	// Envoy's initial_fetch_timeout.
	absentAfter time.Duration
	// answerWithin is how long a server may take for its first response, and for reading a request.
	answerWithin time.Duration
	// wholeWithin is the longest time that a server may take for all resources, if the list has other servers.
	wholeWithin time.Duration
	// failbackEvery is how often the client asks the servers before the one that it follows.
	failbackEvery time.Duration
	// repeatEvery is how long a response that repeats a refused response waits for its NACK.
	repeatEvery time.Duration
	// steadyAfter is how long a connection must last to end an outage.
	steadyAfter time.Duration
	// leastPause and longestPause bound the pause after all servers have failed.
	leastPause, longestPause time.Duration
	// maxDelay is how long a server that is never silent delays the judgement.
	maxDelay time.Duration
	// startQuiet is how long a server must be silent before its first resources are taken over: a server may split
	// them among responses.
	startQuiet time.Duration
	// response is the size in bytes of the largest response, total that of all resources, and resources their number.
	response  int
	total     int64
	resources int
	// pending is the size in bytes of the responses without an answer at which the client stops reading.
	pending int
}

// usual are the bounds of each Upstream.
var usual = bounds{
	absentAfter: 15 * time.Second, answerWithin: 15 * time.Second, wholeWithin: 30 * time.Second, failbackEvery: 10 * time.Second,
	repeatEvery: 2 * time.Second, steadyAfter: 10 * time.Second, leastPause: 500 * time.Millisecond, longestPause: 30 * time.Second,
	maxDelay: 2 * time.Second, startQuiet: 500 * time.Millisecond,
	response: 128 << 20, total: load.MaxTotal, resources: load.MaxResources, pending: 32 << 20,
}

// Upstream is a load.Remote.
type Upstream struct {
	options Options
	bounds  bounds
	changed chan struct{}
	first   chan struct{} // closed after the first contents, or after all servers have failed

	mu       sync.Mutex
	contents *load.Contents // nil before the first
	entries  map[xds.Key]*entry
	current  *session // the session of contents; nil before, and after its end
	kept     *world   // the world of contents; nil before
	state    load.State
	began    time.Time // when state.Connected became true last
	outage   time.Time // when the last outage began
	errs     []error   // the last error of each server; nil for none
	missing  []string
	told     map[xds.Key]bool // resources whose on-demand names were logged
	answered bool             // first is closed
}

// New returns an Upstream.
func New(o Options) *Upstream {
	o.QuietPeriod = cmp.Or(o.QuietPeriod, 10*time.Millisecond)
	now := time.Now()
	return &Upstream{
		options: o, bounds: usual, changed: make(chan struct{}, 1), first: make(chan struct{}), errs: make([]error, len(o.Servers)),
		state: load.State{Since: now}, outage: now, told: make(map[xds.Key]bool),
	}
}

// Run implements load.Remote.
func (u *Upstream) Run(ctx context.Context) {
	pause := u.bounds.leastPause
	defer u.keep(nil)
	for ctx.Err() == nil {
		for i := range u.options.Servers {
			if u.follow(ctx, i) {
				pause = u.bounds.leastPause
				break // begin with the first server
			}
		}
		u.tried()
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, u.bounds.longestPause)
	}
}

// follow follows a server until its stream ends. Meanwhile follow asks the earlier servers, and changes to the first
// one that has sent all resources. followed means that the contents of a server were taken over.
func (u *Upstream) follow(ctx context.Context, i int) (followed bool) {
	s := newSession(u, i)
	s.start(ctx)
	var earlier *session // asked for failback; nil for none
	var whole, failed <-chan struct{}
	failback := time.NewTicker(u.bounds.failbackEvery)
	defer failback.Stop()
	for next := 0; ; {
		select {
		case <-s.ended:
			if earlier != nil {
				earlier.end(errReplaced)
				<-earlier.ended
			}
			return followed || s.taken
		case <-whole:
			s.end(errReplaced)
			<-s.ended
			followed, s, earlier, whole, failed = true, earlier, nil, nil, nil
		case <-failed:
			earlier, whole, failed = nil, nil, nil
		case <-failback.C:
			if earlier == nil && s.index > 0 {
				earlier = newSession(u, next%s.index)
				earlier.start(ctx)
				whole, failed, next = earlier.whole, earlier.ended, next+1
			}
		}
	}
}

// errReplaced ends the session of a server that an earlier server replaces.
var errReplaced = errors.New("an earlier server answers")

// tried records that all servers have failed.
func (u *Upstream) tried() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer()
}

// answer lets Read return.
func (u *Upstream) answer() {
	if !u.answered {
		u.answered = true
		close(u.first)
	}
}

// Read implements load.Reader. The error has the last error of each server.
func (u *Upstream) Read(ctx context.Context) (load.Contents, error) {
	late := time.NewTimer(u.bounds.absentAfter + u.bounds.answerWithin)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return load.Contents{}, ctx.Err()
	case <-late.C:
	case <-u.first:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.contents != nil {
		return *u.contents, nil
	}
	return load.Contents{}, fmt.Errorf("%s has not sent all resources: %s", u.options.Name, u.why())
}

// why returns why no server is followed.
func (u *Upstream) why() string {
	var reasons []string
	for i, err := range u.errs {
		if err != nil {
			reasons = append(reasons, u.options.Servers[i].Address+": "+diag.Hide(err.Error()))
		}
	}
	if len(u.missing) > 0 {
		reasons = append(reasons, "it still has to send "+diag.Few(u.missing, 5))
	}
	return cmp.Or(diag.Clip(strings.Join(reasons, "; "), diag.MaxText), "it has not answered")
}

// Changed implements load.Remote.
func (u *Upstream) Changed() <-chan struct{} { return u.changed }

// Kind implements load.Remote.
func (u *Upstream) Kind() string { return "control plane" }

// State implements load.Remote.
func (u *Upstream) State() load.State {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

// Judged implements load.Remote.
func (u *Upstream) Judged(j load.Judgement) {
	u.mu.Lock()
	s := u.current
	u.mu.Unlock()
	if s == nil {
		return
	}
	select { // the newer judgement includes the older one
	case <-s.judged:
	default:
	}
	select {
	case s.judged <- j:
	default:
	}
}

// signal wakes the reader after a change.
func (u *Upstream) signal() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// take replaces the contents by those of a session, and returns their number. If an earlier server has replaced the
// server of the session, take returns 0.
func (u *Upstream) take(s *session) uint64 {
	c := s.world.contents(false)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.current != nil && u.current.index < s.index {
		return 0
	}
	u.keepLocked(s.world)
	c.N = 1
	if u.contents != nil {
		c.N = u.contents.N + 1
	}
	u.contents, u.entries, u.current, u.missing = &c, s.world.entries(), s, nil
	u.errs[s.index] = nil
	address := u.options.Servers[s.index].Address
	if !u.state.Connected {
		u.began = time.Now()
	}
	if !u.state.Connected || u.state.Server != address {
		u.state = load.State{Connected: true, Server: address, Since: time.Now()}
		u.options.Log.Write(event.UpstreamConnected{Server: address})
	}
	for k, e := range u.entries {
		if e.demand != "" && !u.told[k] {
			u.told[k] = true
			u.options.Log.Write(event.UpstreamOnDemand{Resource: diag.Printable(k.Type.API + "/" + k.Name), Path: string(e.demand)})
		}
	}
	u.answer()
	u.signal()
	return c.N
}

// lost records the end of a session, whose error is err.
func (u *Upstream) lost(ctx context.Context, s *session, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.errs[s.index] = err
	if ctx.Err() != nil || u.state.Connected && u.current != s {
		return
	}
	was := u.state
	if u.current == s {
		if now := time.Now(); now.Sub(u.began) >= u.bounds.steadyAfter {
			u.outage = now
		}
		u.current, u.state = nil, load.State{Since: u.outage}
		u.options.Log.Write(event.UpstreamLost{Server: u.options.Servers[s.index].Address, Error: err})
	}
	if u.state.Error = u.why(); u.state != was {
		u.signal()
	}
}

// waits records what a server has not sent.
func (u *Upstream) waits(missing []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.contents == nil {
		u.missing = missing
	}
}
