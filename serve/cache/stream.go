package cache

import (
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/validate/transition"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/xdstp"
)

// first are the types that the client must have acknowledged before it gets changes of those
// behind them: Envoy acknowledges clusters once they are warm, and asks for their endpoints and
// secrets before.
var first = xds.TypesThat(func(t *xds.Type) bool { return t.Upstream })

// behindFirst reports whether a type comes after all that are first.
func behindFirst(t *xds.Type) bool {
	return !slices.ContainsFunc(first, func(of *xds.Type) bool { return t.Turn <= of.Turn })
}

// patience is how long changes of other types wait for that.
const patience = 30 * time.Second

// Stream is one stream of a client. It answers the server of go-control-plane that reads the
// stream, as its cache.ConfigWatcher and its callbacks.
type Stream struct {
	cache *Cache
	kind  Kind
	only  *xds.Type // of a singleton service

	peer *peer.Peer // nil where the server does not tell

	// params are the dynamic parameters of the client; they are there before the view is. sets are those that
	// it sends, params first.
	params params.Parameters
	sets   []params.Parameters

	mu      sync.Mutex
	view    *view      // nil before the first request
	changes uint64     // Cache.changes before the state was loaded
	client  *connected // nil before the first request
	reading
	subscriptions map[*xds.Type]*subscription
	spelled       map[*xds.Type]*spelled // of the types of which it asks for xdstp names
	warmup        warmup
	alarm         alarm
	gone          bool
	wait          *wait // for the answer of the client; nil where nobody waits
	// maySecret reports whether the client may have a resource that holds a secret, by its sets of parameters,
	// and ends the stream if it may not; nil lets it have all.
	maySecret func(*xds.Resource, []params.Parameters) bool
}

// reading is how the client reads resources.
type reading struct {
	located  bool // by resource locators
	verbatim bool // with ads: {} as it is written
	ttls     bool // with TTLs, which it counts
}

// warmup holds the times and resources of warming, by which the server orders the types.
type warmup struct {
	told    time.Time // when the last response of one of the first types was sent
	resumed time.Time // when the client said that it has resources from a stream before
	// sent are the clusters and listeners of the first responses, in the time after started: the client
	// warms them.
	sent    [][]*xds.Resource
	started time.Time
}

// alarm calls push at a time.
type alarm struct {
	timer *time.Timer // nil if nothing waits
	at    time.Time
}

// Secrets has may called before the client is sent a resource that holds a secret, with the sets of its
// dynamic parameters. If may returns false, no more is sent; may ends the stream.
func (s *Stream) Secrets(may func(*xds.Resource, []params.Parameters) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maySecret = may
}

// mayHave reports whether the client may have all resources of a response.
func (s *Stream) mayHave(r *response) bool {
	if s.maySecret == nil {
		return true
	}
	for _, e := range r.resources {
		if e.Resource != nil && e.HoldsSecret() && !s.maySecret(e.Resource, s.sets) {
			return false
		}
	}
	return true
}

// Close ends the Stream.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone = true; s.view == nil {
		return
	}
	s.view.remove(s)
	if s.alarm.timer != nil {
		s.alarm.timer.Stop()
	}
	if s.wait != nil {
		s.wait.ends(&s.client.Client, s)
		s.wait = nil
	}
	if s.client != nil {
		s.view.clients.leave(s, s.client, s.statuses())
	}
	for _, sub := range s.subscriptions {
		if sub.gap {
			s.view.clients.gapCloses(s.client.Node, sub.of, false)
		}
	}
}

// published sends what a new state of the view has changed for the client.
func (s *Stream) published() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push()
}

// push sends what the client is to be told next.
func (s *Stream) push() {
	now := s.load()
	if s.gone || now == nil {
		return
	}
	s.endsWarming()
	s.notesGaps(now)
	for _, t := range xds.InTurn {
		sub := s.subscriptions[t]
		if sub == nil || sub.busy() || sub.answer == nil {
			continue
		}
		s.unpark(sub, now)
		r := s.next(sub, now)
		if r != nil && behindFirst(t) && !sub.warms(r) && s.waits() {
			r = nil
		}
		if r == nil {
			r = sub.heartbeat(now, s.holdsAll(sub))
		}
		if r == nil {
			continue
		}
		if !s.mayHave(r) {
			s.gone = true
			return
		}
		if slices.Contains(first, t) && !r.beat {
			s.warmup.told = time.Now()
		}
		if s.located && !r.beat {
			r.gone = sub.removes(r)
		}
		answer := sub.answer
		sub.answer, sub.made = nil, r
		if answer(r); !r.beat {
			s.tells(sub, r)
		}
	}
	s.settles(now)
}

// load returns the state that the client gets.
func (s *Stream) load() *state {
	s.changes = s.cache.changes.Load()
	return s.view.current.Load()
}

// between reports whether the state that was loaded may not belong to the resources of all clients, because Publish
// changes both. The reason why the client lacks a resource is not known then.
func (s *Stream) between() bool {
	changes := s.cache.changes.Load()
	return changes%2 == 1 || changes != s.changes
}

// waits reports whether changes of other types have to wait for the first types: until the client
// has acknowledged these, or has asked for them where it comes back. push is called again when it
// has, or when that takes too long.
func (s *Stream) waits() bool {
	if slices.ContainsFunc(first, func(t *xds.Type) bool { sub := s.subscriptions[t]; return sub != nil && sub.busy() }) {
		return s.pushesAt(s.warmup.told.Add(patience))
	}
	return s.only == nil && s.subscriptions[xds.Cluster] == nil && s.pushesAt(s.warmup.resumed.Add(grace))
}

// pushesAt has push called at a time, and reports whether that is still to come.
func (s *Stream) pushesAt(at time.Time) bool {
	left := time.Until(at)
	if left <= 0 {
		return false
	}
	if s.alarm.timer == nil || at.Before(s.alarm.at) {
		if s.alarm.timer != nil {
			s.alarm.timer.Stop()
		}
		s.alarm.at, s.alarm.timer = at, time.AfterFunc(left, s.timeout)
	}
	return true
}

// timeout is called by the timer.
func (s *Stream) timeout() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alarm.timer == nil || time.Now().Before(s.alarm.at) { // it was stopped too late
		return
	}
	s.alarm.timer = nil
	s.push()
}

// response returns what the client lacks of a subscription, but for removals that wait until the client no
// longer uses the resources; nil for nothing.
func (s *Stream) response(sub *subscription, now *state) *response {
	r := sub.lacks(now)
	r.removed = slices.DeleteFunc(r.removed, func(name string) bool { _, still := s.drains(sub, name); return still })
	return s.form(sub, r)
}

// next returns what the client is to be told of a subscription now; nil for nothing.
func (s *Stream) next(sub *subscription, now *state) *response {
	r := s.unrefused(sub, now)
	if r != nil && s.holdsAll(sub) && len(sub.nack.names)+len(sub.nack.errors) > 0 {
		sub.unpark() // the response repeats the refused resources in any case
		r = s.unrefused(sub, now)
	}
	return r
}

// unrefused does the work of next, without the resources and errors that the client refused.
func (s *Stream) unrefused(sub *subscription, now *state) *response {
	r := sub.lacks(now)
	if !s.keeps(sub.of, now) {
		s.hold(sub, r)
	} else if !s.keep(sub, r) {
		return nil
	}
	return s.form(sub, r)
}

// form makes a response of the variant of the Stream; nil where it says nothing.
func (s *Stream) form(sub *subscription, r *response) *response {
	if s.kind.delta() {
		return sub.increment(r)
	}
	return sub.world(r)
}

// leaves takes down that a response leaves for the client, with a nonce.
func (s *Stream) leaves(message any, typeURL, nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscriptions[xds.TypeOfURL(typeURL)]
	if sub == nil || sub.made == nil || sub.made.message != message {
		return
	}
	r := sub.made
	r.nonce, sub.nonce = nonce, nonce
	sub.made, sub.sent = nil, r
	if r.beat { // tells nothing
		s.push()
		return
	}
	sub.last.sent, sub.last.since = r.version, time.Now()
	s.push()
}

// tells takes down that a response was handed over to be sent.
func (s *Stream) tells(sub *subscription, r *response) {
	sub.tells(r)
	if s.only != nil || sub.several != nil {
		return
	}
	if slices.Contains(xds.Entrypoints, sub.of) {
		s.startsWarming(r)
	} else if sub.of != xds.Endpoints {
		return
	}
	for _, e := range r.changed {
		s.followUp(e, r.state)
	}
}

// followUp has a client told again what it needs once it has a changed cluster, assignment or listener: Envoy warms it until endpoints and routes come, be they as before.
// https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol#resource-warming
func (s *Stream) followUp(r *xds.Resource, now *state) {
	for _, asks := range r.Facts().Subscriptions {
		key := xds.Key{Type: asks.Target, Name: asks.Name}
		all, group := key == allScopes, xdstp.IsCollection(key.Name)
		if !xds.FromSnapshot(asks.Source) || !all && !group && now.Lookup(key.Type, key.Name) == nil {
			continue
		}
		switch sub := s.subscriptions[key.Type]; {
		case sub == nil:
		case all:
			sub.owed.all = true
		case sub.asks(key.Name):
			sub.owed.owe(key.Name)
			for _, member := range now.members(key.Type, key.Name) {
				sub.owed.owe(member.Name)
			}
		}
	}
}

// allScopes is what a listener asks for that has scopes.
var allScopes = xds.Key{Type: xds.ScopedRoutes}

// request is one of either variant.
type request interface {
	GetTypeUrl() string
	GetNode() *corev3.Node
	GetResponseNonce() string
	GetErrorDetail() *rpcstatus.Status
}

// takes takes down a request as an answer to the response before. It returns the subscription of its
// type, and whether this is the first request for that; nil for a type that nobody knows, which has no
// resources. A singleton service has one type.
func (s *Stream) takes(q request) (sub *subscription, first bool, err error) {
	t := xds.TypeOfURL(q.GetTypeUrl())
	if s.only != nil && s.only != t {
		return nil, false, status.Errorf(codes.InvalidArgument, "this service has no resources of type %q", q.GetTypeUrl())
	}
	if t == nil {
		return nil, false, nil
	}
	if s.client == nil {
		s.client = s.view.clients.join(s, q.GetNode())
		s.ttls = countsTTLs(q.GetNode(), s.kind.delta())
	}
	if sub = s.subscriptions[t]; sub == nil {
		sub, first = newSubscription(t, s), true
		s.subscriptions[t] = sub
	}
	s.hears(sub, q.GetResponseNonce(), q.GetErrorDetail())
	return sub, first, nil
}

// hears takes down the answer of a client to the response with a nonce: why it does not take
// that, or nil.
func (s *Stream) hears(sub *subscription, nonce string, refused *rpcstatus.Status) {
	r := sub.sent
	if r == nil || nonce != r.nonce {
		return
	}
	sub.sent = nil
	switch {
	case refused == nil && r.beat:
		return
	case r.beat:
		clear(sub.heartbeats.alive) // it would refuse the next one too
	}
	sub.last.since = time.Now()
	sub.answered(r, refused != nil)
	if refused == nil {
		s.view.clients.takes(s.client.Node, sub.last.nack)
		sub.last.acknowledged, sub.last.nack, sub.nack.tries, sub.nack.offers, sub.nack.retries = r.version, nil, 0, transition.Offers{}, false
		if !r.foreign {
			s.took(sub, r)
		}
		return
	}
	sub.last.nack = &refusal{of: sub.of, state: r.state.number, version: r.version, names: r.names(), changed: r.changed, time: sub.last.since, message: diag.Hide(diag.ClipLine(refused.GetMessage(), diag.MaxText))}
	pause := s.fetches(sub, r)
	hope := pause > 0 || sub.nack.offers == (transition.Offers{}) && s.hopes(sub, r)
	sub.yields = sub.exchanged()
	if r.foreign {
		sub.last.nack.state = -1 // no state of this view
	} else if r.state == s.view.current.Load() {
		sub.park(r)
	} else if sub.strays {
		sub.owed.all = true
	}
	if !hope {
		s.refuses(sub)
	}
	var e event.Event = event.ResponseRejected{Node: s.client.Node, Type: sub.of.API, Version: r.version, Error: sub.last.nack.message}
	if pause > 0 {
		e = event.ResponseRetried{Node: s.client.Node, Type: sub.of.API, Version: r.version, Pause: pause, Error: sub.last.nack.message}
	}
	s.view.clients.rejected(rejecting{s.client.Node, sub.of.API}, r.version, e)
}
