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
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/internal/grpcdial"
	"xdspub/source/load"
	"xdspub/xds"
	"xdspub/xds/xdstp"
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
	// Servers are the servers of the control plane. The client asks a server if no earlier server answers.
	Servers []Server
	// Authorities are the servers of xdstp names, by the authority of the names. Servers get the requests for all
	// other names.
	Authorities map[string][]Server
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
	// Judge returns the findings about Contents that are not whole. By these findings, the client sends ACKs and NACKs:
	// a server may wait for an answer before it sends the rest.
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

// bounds are the limits of an Upstream. Tests have smaller bounds.
type bounds struct {
	// absentAfter is how long a name may stay without an answer until the client goes on without the resource. It is
	// Envoy's initial_fetch_timeout.
	absentAfter time.Duration
	// answerWithin is how long a server may take for its first response, and for reading a request.
	answerWithin time.Duration
	// wholeWithin is the longest time that a server may take for all resources, if the authority has other servers.
	wholeWithin time.Duration
	// failbackEvery is how often a client that follows a server asks an earlier server of the authority.
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
	options     Options
	bounds      bounds
	changed     chan struct{}
	first       chan struct{} // closed after the first contents, or after all servers have failed
	authorities []*authority  // the first one has Options.Servers

	mu             sync.Mutex
	contents       *load.Contents   // nil before the first publish
	loggedOnDemand map[xds.Key]bool // resources with a logged UpstreamOnDemand
	answered       bool             // first is closed
}

// New returns an Upstream.
func New(o Options) *Upstream {
	o.QuietPeriod = cmp.Or(o.QuietPeriod, 10*time.Millisecond)
	o.Runtime = slices.Clone(o.Runtime)
	for i, name := range o.Runtime {
		o.Runtime[i] = xds.Runtime.Canonical(name)
	}
	u := &Upstream{options: o, bounds: usual, changed: make(chan struct{}, 1), first: make(chan struct{}), loggedOnDemand: make(map[xds.Key]bool)}
	u.authorities = append(u.authorities, newAuthority(u, "", o.Servers))
	for _, name := range slices.Sorted(maps.Keys(o.Authorities)) {
		u.authorities = append(u.authorities, newAuthority(u, name, o.Authorities[name]))
	}
	return u
}

// Run implements load.Remote.
func (u *Upstream) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, a := range u.authorities {
		running.Go(crash.Again(ctx.Done(), func() { a.run(ctx) }, u.options.Log.Crashed))
	}
	running.Wait()
}

// answer lets Read return. The caller holds mu.
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

// why returns the errors of the servers, and the names that servers have not sent. The caller holds mu.
func (u *Upstream) why() string {
	var reasons []string
	for _, a := range u.authorities {
		if text := a.why(); text != "" {
			reasons = append(reasons, text)
		}
	}
	return cmp.Or(diag.Clip(strings.Join(reasons, "; "), diag.MaxText), "it has not answered")
}

// Changed implements load.Remote.
func (u *Upstream) Changed() <-chan struct{} { return u.changed }

// Kind implements load.Remote.
func (u *Upstream) Kind() string { return "control plane" }

// State implements load.Remote. An Upstream is connected if each needed authority is connected.
func (u *Upstream) State() load.State {
	u.mu.Lock()
	defer u.mu.Unlock()
	state := u.authorities[0].state
	for _, a := range u.authorities[1:] {
		if !a.needed() || a.state.Connected {
			continue
		}
		if state.Connected {
			state = a.state
			continue
		}
		if a.state.Since.Before(state.Since) {
			state.Since = a.state.Since
		}
		state.Error = diag.Clip(strings.Trim(state.Error+"; "+a.state.Error, "; "), diag.MaxText)
	}
	return state
}

// Judged implements load.Remote.
func (u *Upstream) Judged(j load.Judgement) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range u.authorities {
		if a.current != nil {
			a.current.judge(j)
		}
	}
}

// publish makes Contents of the parts of all authorities, and returns the number of these Contents. Before
// Options.Servers have sent their part, publish makes no Contents, and returns the number of the first Contents. The
// caller holds mu.
func (u *Upstream) publish() uint64 {
	c := load.Contents{N: 1}
	if u.contents != nil {
		c.N = u.contents.N + 1
	}
	if u.authorities[0].part == nil {
		return c.N
	}
	for _, a := range u.authorities {
		if a.part != nil {
			c.Files, c.Findings = append(c.Files, a.part.Files...), append(c.Findings, a.part.Findings...)
		} else if a.needed() {
			c.Findings = append(c.Findings, diag.Diagnostic{
				Code: codeUpstream.Name, Severity: diag.Warning, Position: diag.Position{File: u.options.Name},
				Message: fmt.Sprintf("no server has sent the resources of the authority %s, to which other resources refer: %s", a.name, cmp.Or(a.why(), "its servers have not answered")),
				Help:    "check the servers in --upstream-authority",
			})
		}
	}
	slices.SortFunc(c.Files, compareFiles)
	u.contents = &c
	u.answer()
	notify(u.changed)
	return c.N
}

// owner returns the authority whose servers the client asks for a name.
func (u *Upstream) owner(name string) *authority {
	if len(u.authorities) == 1 || !xdstp.Is(name) {
		return u.authorities[0]
	}
	of, _, _, _ := xdstp.Split(name)
	for _, a := range u.authorities[1:] {
		if a.name == of {
			return a
		}
	}
	return u.authorities[0]
}
