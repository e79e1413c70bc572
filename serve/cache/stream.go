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
	"xdspub/internal/crash"
	"xdspub/validate/transition"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/xdstp"
)

// first are the types whose responses the client must have answered, by ACK or NACK, before it gets later types. Envoy
// acknowledges clusters only after warming them, and requests their endpoints and secrets before that.
var first = xds.TypesThat(func(t *xds.Type) bool { return t.Upstream })

// behindFirst reports whether a type comes after all first types.
func behindFirst(t *xds.Type) bool {
	return !slices.ContainsFunc(first, func(of *xds.Type) bool { return t.Turn <= of.Turn })
}

// patience is the longest time that a response, a removal or a listener waits for the client to acknowledge
// other types.
const patience = 30 * time.Second

// Stream is one stream of a client. A Stream implements the cache.ConfigWatcher and the callbacks of
// go-control-plane's server for that stream.
type Stream struct {
	cache *Cache
	kind  Kind
	only  *xds.Type // nil for the aggregated service

	peer *peer.Peer // nil if unknown

	// params are the dynamic parameters of the client, set before the view. sets are the client's parameter
	// sets, beginning with params.
	params params.Parameters
	sets   []params.Parameters

	mu      sync.Mutex
	view    *view      // nil before the first request
	changes uint64     // Cache.changes at the last load
	client  *connected // nil before the first request
	reading
	subscriptions map[*xds.Type]*subscription
	spelled       map[*xds.Type]*spelled // by type; only types with xdstp names
	warmup        warmup
	alarm         alarm
	gone          bool
	wait          *wait // expects an answer of the client; nil if none does
	waitFrom      int   // the number of the state to which wait expects an answer
	// authorize reports whether the client with these parameter sets may get a resource with a secret, and
	// otherwise ends the stream. A nil authorize permits all secrets.
	authorize func(*xds.Resource, []params.Parameters) bool
}

// reading says how the client reads resources.
type reading struct {
	located  bool // the client sends resource locators
	verbatim bool // the client accepts ads: {} as written
	ttls     bool // the client counts TTLs
}

// warmup tracks which clusters and listeners the client warms. Responses of later types wait for them.
type warmup struct {
	lastFirst time.Time // time of the last response with a first type
	resumed   time.Time // time of the first claim of resources from an earlier stream; zero for none
	// sent are the clusters and listeners of the first mostWarmed responses after started. The client is
	// warming them.
	sent    [][]*xds.Resource
	started time.Time
}

// alarm calls push at a time.
type alarm struct {
	timer *time.Timer // nil without a pending call
	at    time.Time
}

// AuthorizeSecrets sets the check that runs before a resource with a secret is sent. The check gets the
// client's parameter sets. If the check returns false, the check must end the stream, and the Stream sends
// nothing more. The check must not call the Stream, which is locked.
func (s *Stream) AuthorizeSecrets(check func(*xds.Resource, []params.Parameters) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authorize = check
}

// permits reports whether the client may get all resources of a response.
func (s *Stream) permits(r *response) bool {
	if s.authorize == nil {
		return true
	}
	for _, e := range r.resources {
		if e.Resource != nil && e.HoldsSecret() && !s.authorize(e.Resource, s.sets) {
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
		s.wait.withdraw(&s.client.Client, s)
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

// published sends the client the changes of a new state.
func (s *Stream) published() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push()
}

// push sends the client its next responses. The caller holds the lock.
func (s *Stream) push() {
	now := s.load()
	if s.gone || now == nil {
		return
	}
	s.endsWarming()
	s.reportGaps(now)
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
		if !s.permits(r) {
			s.gone = true
			return
		}
		if slices.Contains(first, t) && !r.beat {
			s.warmup.lastFirst = time.Now()
		}
		if s.located && !r.beat {
			r.gone = sub.removedVariants(r)
		}
		answer := sub.answer
		sub.answer, sub.made = nil, r
		if answer(r); !r.beat {
			s.handedOver(sub, r)
		}
	}
	s.reportAck(now)
}

// load returns the client's current state; nil before the first Publish.
func (s *Stream) load() *state {
	s.changes = s.cache.changes.Load()
	return s.view.current.Load()
}

// between reports whether the loaded state and Cache.all may not belong together, because Publish changes
// both. The reason for a missing resource is then unknown.
func (s *Stream) between() bool {
	changes := s.cache.changes.Load()
	return changes%2 == 1 || changes != s.changes
}

// waits reports whether changes of later types must wait: until the client has answered the first types,
// but at most for patience, and until a reconnecting client has subscribed to clusters, but at most for
// grace. push runs again afterwards.
func (s *Stream) waits() bool {
	if slices.ContainsFunc(first, func(t *xds.Type) bool { sub := s.subscriptions[t]; return sub != nil && sub.busy() }) {
		return s.pushesAt(s.warmup.lastFirst.Add(patience))
	}
	return s.only == nil && s.subscriptions[xds.Cluster] == nil && s.pushesAt(s.warmup.resumed.Add(grace))
}

// pushesAt reports whether a time is in the future, and then schedules push for that time.
func (s *Stream) pushesAt(at time.Time) bool {
	left := time.Until(at)
	if left <= 0 {
		return false
	}
	if s.alarm.timer == nil || at.Before(s.alarm.at) {
		if s.alarm.timer != nil {
			s.alarm.timer.Stop()
		}
		s.alarm.at, s.alarm.timer = at, time.AfterFunc(left, crash.Guard(s.timeout, s.cache.registry.log.Crashed))
	}
	return true
}

// timeout calls push when the timer of alarm fires.
func (s *Stream) timeout() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alarm.timer == nil || time.Now().Before(s.alarm.at) { // the timer was stopped too late
		return
	}
	s.alarm.timer = nil
	s.push()
}

// response returns a response with all that the client lacks in a state, regardless of the order of
// responses; nil if the client lacks nothing. A missing resource that the client may still use (drains)
// doesn't count.
func (s *Stream) response(sub *subscription, now *state) *response {
	r := sub.lacks(now)
	r.removed = slices.DeleteFunc(r.removed, func(name string) bool { _, still := s.drains(sub, name); return still })
	return s.form(sub, r)
}

// next returns the next response for a subscription; nil for none.
func (s *Stream) next(sub *subscription, now *state) *response {
	r := s.unrefused(sub, now)
	if r != nil && s.holdsAll(sub) && len(sub.nack.names)+len(sub.nack.errors) > 0 {
		sub.unpark() // the response repeats the refused resources anyway
		r = s.unrefused(sub, now)
	}
	return r
}

// unrefused is next without the resources and errors that the client refused.
func (s *Stream) unrefused(sub *subscription, now *state) *response {
	r := sub.lacks(now)
	if !s.mustKeep(sub.of, now) {
		s.hold(sub, r)
	} else if !s.keepRemoved(sub, r) {
		return nil
	}
	return s.form(sub, r)
}

// form completes a response for the Stream's Kind. form returns nil for an empty response.
func (s *Stream) form(sub *subscription, r *response) *response {
	if s.kind.delta() {
		return sub.increment(r)
	}
	return sub.completeSotW(r)
}

// recordSent records that the library is sending a response with a nonce, and sends the next responses.
func (s *Stream) recordSent(message any, typeURL, nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscriptions[xds.TypeOfURL(typeURL)]
	if sub == nil || sub.made == nil || sub.made.message != message {
		return
	}
	r := sub.made
	r.nonce, sub.nonce = nonce, nonce
	sub.made, sub.sent = nil, r
	if r.beat { // a heartbeat changes nothing
		s.push()
		return
	}
	sub.last.sent, sub.last.since = r.version, time.Now()
	s.push()
}

// handedOver records that the library has got a response to send, and marks the dependencies of its resources
// pending.
func (s *Stream) handedOver(sub *subscription, r *response) {
	sub.assumeAccepted(r)
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

// followUp marks the dependencies of a changed cluster, assignment or listener pending. Envoy warms the
// resource until its endpoints and routes come again, even unchanged ones.
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
			sub.pending.all = true
		case sub.subscribes(key.Name):
			sub.pending.add(key.Name)
			for _, member := range now.members(key.Type, key.Name) {
				sub.pending.add(member.Name)
			}
		}
	}
}

// allScopes is the Key of a subscription to all scopes, as a listener with scoped routes has.
var allScopes = xds.Key{Type: xds.ScopedRoutes}

// request is a request of either variant of the protocol.
type request interface {
	GetTypeUrl() string
	GetNode() *corev3.Node
	GetResponseNonce() string
	GetErrorDetail() *rpcstatus.Status
}

// handleRequest handles the type of a request, and its ACK or NACK of the last response. handleRequest
// returns the subscription of the type, and whether this is its first request. The subscription is nil for an
// unknown type, which has no resources. The error is a gRPC status: the stream of a singleton service has
// another type.
func (s *Stream) handleRequest(q request) (sub *subscription, first bool, err error) {
	t := xds.TypeOfURL(q.GetTypeUrl())
	if s.only != nil && s.only != t {
		return nil, false, status.Errorf(codes.InvalidArgument, "this service has no resources of type %q: request them through their own service or the aggregated one", q.GetTypeUrl())
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
	s.handleAck(sub, q.GetResponseNonce(), q.GetErrorDetail())
	return sub, first, nil
}

// handleAck handles the ACK or NACK of the response with a nonce. refused is nil for an ACK. handleAck
// ignores a stale nonce.
func (s *Stream) handleAck(sub *subscription, nonce string, refused *rpcstatus.Status) {
	r := sub.sent
	if r == nil || nonce != r.nonce {
		return
	}
	sub.sent = nil
	switch {
	case refused == nil && r.beat:
		return
	case r.beat:
		clear(sub.heartbeats.alive) // the client would refuse the next heartbeat too
	}
	sub.last.since = time.Now()
	sub.answered(r, refused != nil)
	if refused == nil {
		s.view.clients.recordAck(s.client.Node, sub.last.nack)
		sub.last.acknowledged, sub.last.nack, sub.nack.tries, sub.nack.offers, sub.nack.retries = r.version, nil, 0, transition.Offers{}, false
		if !r.foreign {
			s.recordTTLs(sub, r)
		}
		return
	}
	sub.last.nack = &refusal{
		of: sub.of, state: r.state.number, version: r.version, names: r.names(), changed: r.changed, time: sub.last.since,
		message: diag.Hide(diag.ClipLine(refused.GetMessage(), diag.MaxText)),
	}
	pause := s.scheduleFetchRetry(sub, r)
	hope := pause > 0 || sub.nack.offers == (transition.Offers{}) && s.scheduleRetry(sub, r)
	sub.yields = sub.exchanged()
	if r.foreign {
		sub.last.nack.state = -1 // not a state of this view
	} else if r.state == s.view.current.Load() {
		sub.park(r)
	} else if sub.strays {
		sub.pending.all = true
	}
	if !hope {
		s.reportRejection(sub)
	}
	var e event.Event = event.ResponseRejected{Node: s.client.Node, Type: sub.of.API, Version: r.version, Error: sub.last.nack.message}
	if pause > 0 {
		e = event.ResponseRetried{Node: s.client.Node, Type: sub.of.API, Version: r.version, Pause: pause, Error: sub.last.nack.message}
	}
	s.view.clients.recordRejection(rejecting{s.client.Node, sub.of.API}, r.version, e)
}
