package serve

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/variants"
)

// Aggregate serves Snapshots to the clients whose nodes have equal values of the fields Options.AggregateBy. A Server
// has an own Aggregate. Its clients have the values of Options.Node. Without AggregateBy, all clients belong to the own
// Aggregate. Publish, Retry and Trim may be called before and while the Server runs; clients that connect before the
// first Publish wait for it.
type Aggregate struct {
	options       *Options // with the Log of the Aggregate
	cache         *cache.Cache
	front         *front
	confirmation  atomic.Pointer[confirmation] // of the last published Snapshot; nil before
	confirmedLate chan struct{}                // buffers one signal
	watch         atomic.Pointer[control.Watch]

	number int          // 0 for the own Aggregate
	key    string       // the hash of node
	node   *corev3.Node // Options.Node with the fields AggregateBy of the clients
	// The fields below belong to aggregates.
	owner   owner              // the client that has started the Aggregate
	order   int                // a later Aggregate has a larger order
	members map[*member]bool   // open streams, and requests by REST
	idle    *time.Timer        // retires an Aggregate without members
	end     context.CancelFunc // ends Options.Follow
}

// newAggregate returns an Aggregate without a front.
func newAggregate(o Options, number int, key string, node *corev3.Node) *Aggregate {
	a := &Aggregate{options: &o, number: number, key: key, node: node, members: make(map[*member]bool), confirmedLate: make(chan struct{}, 1)}
	o.Log = o.Log.For(a.Name())
	a.cache = cache.New(cache.Options{
		Cluster: o.Cluster, Parameters: admit.Options{Default: o.Parameters, NodeParameters: o.NodeParameters}.Parameters,
		TrimDelay: o.TrimDelay, Log: o.Log,
	})
	a.watch.Store(&control.Watch{})
	return a
}

// Name returns the name of the Aggregate in the log and in metrics, such as aggregate-3; empty for the own Aggregate of
// a Server and for nil. After the end of the Aggregate, another Aggregate may get the name. So the number of names is
// bounded, although clients choose their nodes.
func (a *Aggregate) Name() string {
	if a == nil || a.number == 0 {
		return ""
	}
	return fmt.Sprintf("aggregate-%d", a.number)
}

// Key returns the name of the directory of the Aggregate: 32 hexadecimal digits. Equal nodes have equal names, also in
// a later process.
func (a *Aggregate) Key() string { return fmt.Sprintf("%x", a.key[:16]) }

// Node returns Options.Node with the fields Options.AggregateBy of the clients.
func (a *Aggregate) Node() *corev3.Node { return a.node }

// Log returns the Log of the Aggregate.
func (a *Aggregate) Log() *event.Log { return a.options.Log }

// String returns the values of the fields Options.AggregateBy, as admit.Describe does; empty for nil.
func (a *Aggregate) String() string {
	if a == nil {
		return ""
	}
	return diag.Hide(diag.Clip(admit.Describe(a.node, a.options.AggregateBy), diag.MaxText))
}

// hasLastValid reports whether the Aggregate has the last valid Snapshot of a source that is gone or invalid. Such an
// Aggregate must stay: a new Aggregate of the same node would get no Snapshot.
func (a *Aggregate) hasLastValid() bool {
	w := a.watch.Load()
	return w.Snapshot != "" && (w.Refused != nil || w.Upstream != nil && !w.Upstream.Connected)
}

// Publish serves a Snapshot and sends each client the changes. Publish of the served Snapshot changes
// nothing. With Options.Confirm, Publish waits for the clients, and returns a *clients.RefusedError if they
// rejected the Snapshot. If ctx ends before all resources are bound, Publish returns its error and sends
// nothing. If ctx ends during the wait for clients, Publish returns its error, and the Aggregate keeps
// serving the Snapshot.
func (a *Aggregate) Publish(ctx context.Context, snapshot *xds.Snapshot) error {
	return a.publish(ctx, snapshot, a.confirmed)
}

// Restore publishes a Snapshot that clients may have from an earlier server. Restore waits for no client.
func (a *Aggregate) Restore(ctx context.Context, snapshot *xds.Snapshot) error {
	return a.publish(ctx, snapshot, a.cache.Publish)
}

func (a *Aggregate) publish(ctx context.Context, snapshot *xds.Snapshot, by func(context.Context, *xds.Snapshot) error) error {
	began := time.Now()
	if err := by(ctx, snapshot); err != nil {
		return err
	}
	a.front.published(a, time.Since(began))
	return nil
}

// confirmed publishes a Snapshot, and waits for the clients as Options.Confirm says.
func (a *Aggregate) confirmed(ctx context.Context, snapshot *xds.Snapshot) error {
	if a.options.Confirm == nil {
		return a.cache.Publish(ctx, snapshot)
	}
	answers, err := a.cache.Confirm(ctx, snapshot, *a.options.Confirm)
	if answers.Unchanged || answers.TakenBack {
		return refusal(answers, err) // what is known about the served Snapshot stays true
	}
	is := &confirmation{acknowledged: answers.Confirmed && answers.Acknowledged > 0}
	if !answers.Confirmed {
		is.unconfirmed = fmt.Sprintf("%d of the %s that the snapshot concerns have acknowledged it", answers.Acknowledged, diag.Count(answers.Concerned, "client"))
	}
	a.confirmation.Store(is)
	if err == nil && !answers.Confirmed && !answers.Refused {
		go crash.Guard(func() { a.awaitLate(is) }, a.options.Log.Crashed)()
	}
	return refusal(answers, err)
}

// confirmation has the results of Unconfirmed and Acknowledged.
type confirmation struct {
	unconfirmed  string
	acknowledged bool
}

// refusal returns err, or a *clients.RefusedError if the clients have rejected a Snapshot.
func refusal(answers cache.Answers, err error) error {
	if err == nil && answers.Refused {
		err = &clients.RefusedError{Findings: answers.Findings, TakenBack: answers.TakenBack}
	}
	return err
}

// awaitLate clears the result of Unconfirmed when the quorum has acknowledged the Snapshot after the Timeout.
func (a *Aggregate) awaitLate(was *confirmation) {
	answers := a.cache.AwaitLate()
	if answers.Confirmed && a.confirmation.CompareAndSwap(was, &confirmation{acknowledged: answers.Acknowledged > 0}) {
		select {
		case a.confirmedLate <- struct{}{}:
		default:
		}
	}
}

// ConfirmedLate receives a value when the quorum has acknowledged the published Snapshot after the Timeout of
// Options.Confirm.
func (a *Aggregate) ConfirmedLate() <-chan struct{} { return a.confirmedLate }

// Confirms reports whether the Server has Options.Confirm.
func (a *Aggregate) Confirms() bool { return a.options.Confirm != nil }

// Unconfirmed returns how many clients have acknowledged the last published Snapshot, as text; "" if the
// quorum has acknowledged the Snapshot, or without Options.Confirm.
func (a *Aggregate) Unconfirmed() string {
	if is := a.confirmation.Load(); is != nil {
		return is.unconfirmed
	}
	return ""
}

// Acknowledged reports whether the quorum, and at least one client, has acknowledged the last published Snapshot.
func (a *Aggregate) Acknowledged() bool {
	is := a.confirmation.Load()
	return is != nil && is.acknowledged
}

// Served returns the published Snapshot for a client without a node, with the retired resources that stay
// until Trim. Served returns nil before the first Publish.
func (a *Aggregate) Served() *xds.Snapshot { return a.cache.Served() }

// Transitions returns the changes that a Snapshot would make, for one client of each class whose resources
// change. A class is the connected clients with the same variants; clients with several parameter sets are
// left out. From includes the retired resources that stay until Trim. Transitions returns nil before the
// first Publish.
func (a *Aggregate) Transitions(to *xds.Snapshot) []variants.Transition {
	return a.cache.Transitions(to)
}

// Retry sends clients again the resources that they rejected. If ctx ends first, Retry returns its error.
func (a *Aggregate) Retry(ctx context.Context) error { return a.cache.Retry(ctx) }

// Clients returns the connected clients, followed by clients that have disconnected within an hour.
func (a *Aggregate) Clients() []clients.Client { return a.cache.Clients() }

// Tell sets the state of the source tree. Status answers show the state; the gRPC health service shows the state
// of the own Aggregate of a Server. The caller must not change what w refers to afterwards.
func (a *Aggregate) Tell(w control.Watch) {
	a.watch.Store(&w)
	a.front.showHealth()
}

// Trim removes the retired resources whose TrimDelay is over at now. removed is the number of these
// resources: a resource counts once for each class of clients that had it. next is the time for the next
// call; zero if no retired resource remains. If ctx ends first, Trim returns its error.
func (a *Aggregate) Trim(ctx context.Context, now time.Time) (removed int, next time.Time, err error) {
	removed, oldest, err := a.cache.Trim(ctx, now.Add(-a.options.TrimDelay))
	if !oldest.IsZero() {
		next = oldest.Add(a.options.TrimDelay)
	}
	return removed, next, err
}
