package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/serve/csds"
	"xdspub/xds/clients"
)

// aggregates are the Aggregates of a Server. The first client of an Aggregate starts the Aggregate. An Aggregate ends
// after Limits.AggregateIdle without clients, but not while Aggregate.hasLastValid is true.
type aggregates struct {
	options Options
	limits  Limits
	own     *Aggregate
	front   *front
	ctx     context.Context // of Options.Follow
	end     context.CancelFunc
	running sync.WaitGroup // calls of Options.Follow

	mu      sync.Mutex
	ended   bool
	byKey   map[string]*Aggregate // without own
	numbers map[int]bool          // of the Aggregates whose Options.Follow has not returned
	started int                   // the number of Aggregates so far
}

// newAggregates returns the aggregates of a Server, with its front.
func newAggregates(ctx context.Context, o Options) (*aggregates, error) {
	a := &aggregates{options: o, limits: o.Limits.orDefault(), byKey: make(map[string]*Aggregate), numbers: make(map[int]bool)}
	a.ctx, a.end = context.WithCancel(ctx)
	node, key := a.nodeOf(o.Node)
	a.own = newAggregate(o, 0, key, node)
	var err error
	if a.front, err = newFront(a, o); err != nil {
		return nil, err
	}
	a.own.front = a.front
	return a, nil
}

// nodeOf returns the node of the Aggregate to which a client belongs, and the hash of this node.
func (a *aggregates) nodeOf(client *corev3.Node) (node *corev3.Node, key string) {
	node = admit.NodeWith(cmp.Or(a.options.Node, &corev3.Node{}), client, a.options.AggregateBy)
	data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(node) // a decoded node has valid text
	sum := sha256.Sum256(data)
	return node, string(sum[:])
}

// member is a stream, or a request by REST, that an Aggregate serves.
type member struct {
	end func(error) // ends the stream with a gRPC status
}

// join returns the Aggregate to which a client with a node belongs, and starts the Aggregate if there is none. The
// caller calls leave when the client has left. If the Aggregate loses its place to another client, end gets the reason
// as a gRPC status. The error is a gRPC status, too.
func (a *aggregates) join(client admit.Client, node *corev3.Node, end func(error)) (of *Aggregate, leave func(), err error) {
	if len(a.options.AggregateBy) == 0 {
		return a.own, func() {}, nil
	}
	if proto.Size(node) == 0 {
		return nil, nil, status.Error(codes.InvalidArgument, "the first request has no node, and the server chooses the resources by the node "+
			"(--aggregate-by): send a node")
	}
	m := &member{end: end}
	of, displaced, err := a.joinLocked(m, client, node)
	if displaced != nil {
		a.endDisplaced(displaced)
	}
	if err != nil {
		return nil, nil, err
	}
	return of, func() { a.leave(of, m) }, nil
}

// joinLocked is join without the end of the displaced Aggregate, which is nil for none.
func (a *aggregates) joinLocked(m *member, client admit.Client, node *corev3.Node) (of, displaced *Aggregate, err error) {
	shared, key := a.nodeOf(node)
	by := ownerOf(client)
	a.mu.Lock()
	defer a.mu.Unlock()
	of = a.byKey[key]
	switch {
	case key == a.own.key:
		of = a.own
	case of != nil:
	case a.ended:
		return nil, nil, status.Error(codes.Unavailable, "the server ends")
	case len(a.numbers) >= 2*a.limits.Aggregates:
		return nil, nil, status.Error(codes.Unavailable, "earlier aggregates have not ended yet: try again later")
	default:
		if len(a.byKey) >= a.limits.Aggregates {
			if displaced = a.displaceable(by); displaced == nil {
				return nil, nil, status.Errorf(codes.ResourceExhausted, "the clients form %d aggregates, and no more are allowed: try again later, "+
					"aggregate by fewer fields (--aggregate-by), or see --limit aggregates", len(a.byKey))
			}
			delete(a.byKey, displaced.key)
		}
		of = a.start(key, shared)
		of.owner = by
	}
	of.members[m] = true
	return of, displaced, nil
}

// start starts an Aggregate. The caller holds mu.
func (a *aggregates) start(key string, node *corev3.Node) *Aggregate {
	number := 1
	for a.numbers[number] {
		number++
	}
	of := newAggregate(a.options, number, key, node)
	a.started++
	of.front, of.order = a.front, a.started
	var ctx context.Context
	ctx, of.end = context.WithCancel(a.ctx)
	of.idle = time.AfterFunc(time.Hour, crash.Guard(func() { a.retire(of) }, of.Log().Crashed))
	of.idle.Stop()
	a.byKey[key], a.numbers[number] = of, true
	follow := crash.Again(ctx.Done(), func() { a.options.Follow(ctx, of) }, of.Log().Crashed)
	a.running.Go(crash.Guard(func() {
		defer a.free(of)
		of.Log().Write(event.AggregateStarted{Node: of.String()})
		follow()
	}, of.Log().Crashed))
	return of
}

// leave records that a client of an Aggregate has left.
func (a *aggregates) leave(of *Aggregate, m *member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(of.members, m)
	if len(of.members) == 0 && a.byKey[of.key] == of {
		of.idle.Reset(a.limits.AggregateIdle)
	}
}

// retire ends an Aggregate without clients. If hasLastValid is true, retire runs again after Limits.AggregateIdle. The
// idle timer may fire twice: a client may join and leave while retire waits for mu.
func (a *aggregates) retire(of *Aggregate) {
	a.mu.Lock()
	free := len(of.members) == 0 && a.byKey[of.key] == of && !a.ended
	retired := free && !of.hasLastValid()
	switch {
	case retired:
		delete(a.byKey, of.key)
	case free:
		of.idle.Reset(a.limits.AggregateIdle)
	}
	a.mu.Unlock()
	if retired {
		of.Log().Write(event.AggregateRetired{Node: of.String()})
		of.end()
	}
}

// free frees the number of an Aggregate.
func (a *aggregates) free(of *Aggregate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.numbers, of.number)
}

// close drains the clients, and ends all Aggregates.
func (a *aggregates) close() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.end()
	a.front.close()
	a.running.Wait()
}

// choose returns the Cache for a request with a node (rest.Options.Choose). If the Aggregate loses its place, the
// request still gets its answer.
func (a *aggregates) choose(r *http.Request, node *corev3.Node) (c *cache.Cache, leave func(), err error) {
	client := admit.OfHTTP(r)
	of, leave, err := a.join(client, node, func(error) {})
	if err != nil {
		a.front.refusedAggregate(client, err)
		return nil, nil, err
	}
	return of.cache, leave, nil
}

// others returns all Aggregates but the own one, sorted by number.
func (a *aggregates) others() []*Aggregate {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Values(a.byKey), func(x, y *Aggregate) int { return x.number - y.number })
}

// all returns all Aggregates.
func (a *aggregates) all() []*Aggregate { return append([]*Aggregate{a.own}, a.others()...) }

// clients returns the clients of all Aggregates, the connected ones first; never nil.
func (a *aggregates) clients() []clients.Client {
	list := []clients.Client{}
	for _, of := range a.all() {
		list = append(list, of.cache.Clients()...)
	}
	slices.SortStableFunc(list, func(x, y clients.Client) int {
		switch {
		case x.Gone.IsZero() == y.Gone.IsZero():
			return 0
		case x.Gone.IsZero():
			return -1
		}
		return 1
	})
	return list
}

// states returns the state of each Aggregate but the own one.
func (a *aggregates) states(now time.Time) (list []csds.Aggregate) {
	for _, of := range a.others() {
		w := of.watch.Load()
		connected, _ := clients.Counts(of.cache.Clients())
		list = append(list, csds.Aggregate{
			Name: of.Name(), Node: of.String(), State: w.State, Clients: connected, Snapshot: w.Snapshot, Faults: w.Faults(now),
		})
	}
	return list
}

// resources returns the largest number of resources in a published Snapshot.
func (a *aggregates) resources() (most int) {
	for _, of := range a.all() {
		most = max(most, of.cache.Resources())
	}
	return most
}

// gaps returns the gaps of the clients by API.
func (a *aggregates) gaps() map[string]int {
	sum := make(map[string]int)
	for _, of := range a.all() {
		for api, n := range of.cache.Gaps() {
			sum[api] += n
		}
	}
	return sum
}
