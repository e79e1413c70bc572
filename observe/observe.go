// Package observe shows what a watch or a server does: metrics for Prometheus, probes, and an HTTP API with the
// status, the findings and the events. An Observer is a sink: the log passes events to it, the watch its state, and
// the server answers which clients it has.
//
//	o := observe.New(observe.Options{Version: "1.0.0"})
//	log := event.New(handler, o.Event)
//	err := watch.Watch(ctx, []watch.Options{{Options: options}}, watch.WatchOptions{Log: log, Observer: o})
//	http.Handle("/", o.Handler())
package observe

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"xdspub/event"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// Options configure an Observer.
type Options struct {
	// Version is the version of the program.
	Version string
	// Profiles makes the Handler answer /debug/pprof/.
	Profiles bool
	// Hosts are the names in URLs under which browsers may reach the Handler, besides localhost and IP addresses.
	Hosts []string
}

// Observer collects events and states, and shows them over HTTP. An Observer is safe for concurrent use, and
// implements watch.Observer.
type Observer struct {
	options  Options
	began    time.Time
	registry *prometheus.Registry
	metrics  *metrics
	events   *history
	streams  atomic.Int64 // open streams of events
	drawings *drawings

	mu      sync.Mutex
	targets map[string]*target
	server  Server                    // nil without a server
	mayAsk  func(*http.Request) error // nil permits every request
}

// Server is a server of xDS clients.
type Server interface {
	// Clients returns the clients of the server.
	Clients() []clients.Client
	// Ready reports whether the server answers clients, with the faults of the server itself.
	Ready(now time.Time) (ready bool, faults []string)
	// MayAsk returns an error if an HTTP request may not see names and places of resources.
	MayAsk(*http.Request) error
}

// Observe makes the Observer show a server, too.
func (o *Observer) Observe(s Server) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.server, o.mayAsk = s, s.MayAsk
}

// Protect sets which requests may see names and places of resources. mayAsk returns an error for the others.
func (o *Observer) Protect(mayAsk func(*http.Request) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mayAsk = mayAsk
}

// Registry returns the metrics of /metrics. A server adds its own.
func (o *Observer) Registry() *prometheus.Registry { return o.registry }

// served returns the server; nil for none.
func (o *Observer) served() Server {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.server
}

// target is the state of one target.
type target struct {
	watch     control.Watch
	succeeded time.Time // end of the last pass that found the source tree published; zero before
	// read is the source tree as read last, live the published snapshot, and before the snapshot that was published
	// before live. Each is nil if absent.
	read, live, before *xds.Snapshot
	published          *event.Published // the last event; nil before
	change             *change          // nil before the first change of a published snapshot
}

// change is the last change of the published snapshot.
type change struct {
	Time time.Time
	Part bool // of a refused source tree
	event.OnEnvoy
}

// More returns the number of effects beyond Effects.
func (c *change) More() int { return max(0, c.Count()-len(c.Effects)) }

// New returns an Observer.
func New(o Options) *Observer {
	obs := &Observer{
		options: o, began: time.Now(), registry: prometheus.NewRegistry(), events: newHistory(), targets: make(map[string]*target),
		drawings: newDrawings(),
	}
	obs.metrics = newMetrics(obs)
	return obs
}

// Event takes an event of the log.
func (o *Observer) Event(r event.Record) {
	o.metrics.events.WithLabelValues(event.KindOf(r.Event).Name).Inc()
	o.events.Add(r)
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.targets[r.Target]
	if t == nil {
		return
	}
	switch e := r.Event.(type) {
	case event.Published:
		t.published = &e
		if e.ResourcesChanged != nil { // otherwise, the snapshot before is unknown
			t.change = &change{r.Time, false, e.OnEnvoy}
		}
	case event.PartPublished:
		if e.ResourcesChanged != nil {
			t.change = &change{r.Time, true, e.OnEnvoy}
		}
	}
}

// Events returns the remembered events.
func (o *Observer) Events() *event.History { return o.events.History }

// Tell sets the state of the watch of a target.
func (o *Observer) Tell(name string, w control.Watch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.targets[name]
	if t == nil {
		t = &target{}
		o.targets[name] = t
	}
	last := t.watch.Last
	t.watch = w
	if w.Last == nil || w.Last == last {
		return
	}
	o.metrics.passed(name, w.Last)
	if w.Last.Outcome == control.Published {
		t.succeeded = w.Last.Ended
	}
}

// Read sets the snapshot of the source tree as read last, which may be invalid.
func (o *Observer) Read(name string, s *xds.Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.targets[name]; t != nil {
		t.read = s
	}
}

// Published sets the published snapshot of a target.
func (o *Observer) Published(name string, s *xds.Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.targets[name]; t != nil && t.live != s {
		t.before, t.live = t.live, s
	}
}

// Removed forgets a target.
func (o *Observer) Removed(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.targets, name)
	o.metrics.forget(name)
	o.drawings.forget(name)
}

// view is the state of a target at a time.
type view struct {
	name string
	target
}

// views returns the states of all targets, sorted by name.
func (o *Observer) views() (list []view) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, t := range o.targets {
		list = append(list, view{name, *t})
	}
	slices.SortFunc(list, func(a, b view) int { return strings.Compare(a.name, b.name) })
	return list
}
