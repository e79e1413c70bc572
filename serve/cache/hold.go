package cache

import (
	"maps"
	"slices"
	"strings"
	"time"

	"xdspub/validate/transition"
	"xdspub/xds"
)

// Some parts of a response are delayed to keep an order. A listener that takes over an address waits for the
// listener that leaves it. Removals wait for the listeners and routes that may still use the resource. A
// refused resource is retried if the reason may pass.

// grace is how long a reconnecting client may take to repeat its subscriptions. Envoy repeats them at once,
// in any order.
const grace = time.Second

// pauses are the pauses before the retries of scheduleRetry.
var pauses = []time.Duration{time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}

// warming are the types that listeners need for warming. leading are the types whose resources lead requests
// to other resources: listeners and types with routes, in make-before-break order.
var (
	warming = xds.TypesThat(func(t *xds.Type) bool { return t.Warms })
	leading = slices.DeleteFunc(slices.Clone(xds.InTurn), func(t *xds.Type) bool { return t != xds.Listener && !t.Routes })
)

// recordResumed records that the client has resources of a type from an earlier stream.
func (s *Stream) recordResumed(sub *subscription) {
	sub.resumed = true
	if s.warmup.resumed.IsZero() {
		s.warmup.resumed = time.Now()
	}
}

// warms reports whether a response may contain resources that the client needs for warming and has not got
// yet.
func (s *subscription) warms(r *response) bool { return r.asked && !s.resumed }

// mostWarmed is the largest number of responses in warmup.sent. A client subscribes to the resources that
// they need within patience.
const mostWarmed = 8

// startsWarming records the clusters or listeners of a response, if it is among the first.
func (s *Stream) startsWarming(r *response) {
	if s.warmup.started.IsZero() {
		s.warmup.started = time.Now()
	}
	if len(s.warmup.sent) < mostWarmed && s.pushesAt(s.warmup.started.Add(patience)) {
		s.warmup.sent = append(s.warmup.sent, r.changed)
	}
}

// endsWarming forgets the resources of startsWarming when the client has had patience to subscribe to their
// dependencies.
func (s *Stream) endsWarming() {
	if len(s.warmup.sent) > 0 && !s.pushesAt(s.warmup.started.Add(patience)) {
		s.warmup.sent = nil
	}
}

// neededForWarming returns the names of a type that the clusters and listeners in warmup.sent need for
// warming; "" means all names.
func (s *Stream) neededForWarming(t *xds.Type) map[string]bool {
	names := make(map[string]bool)
	for _, changed := range s.warmup.sent {
		for _, r := range changed {
			for _, asks := range r.Facts().Subscriptions {
				if asks.Target == t && xds.FromSnapshot(asks.Source) {
					names[asks.Name] = true
				}
			}
		}
	}
	return names
}

// requeueWarming marks resources pending that the client needs for warming, even if the client claims to have
// them. An Envoy claims resources of a removed listener, and doesn't use them for the next listener.
func (s *Stream) requeueWarming(sub *subscription) {
	if len(sub.versions) == 0 {
		return
	}
	names := s.neededForWarming(sub.of)
	for name := range sub.versions {
		if names[name] || names[""] && sub.of == xds.ScopedRoutes {
			sub.pending.add(name)
		}
	}
}

// hold removes the delayed parts from a response, and schedules push for the end of their delay.
func (s *Stream) hold(sub *subscription, r *response) {
	sub.recordMissing(r.state)
	if sub.several != nil { // not an Envoy
		return
	}
	if sub.of == xds.Listener {
		s.holdTakers(sub, r)
		return
	}
	late := s.removals(sub, r)
	if len(late) == 0 {
		sub.removals.since = time.Time{}
	} else if !s.delaysRemovals(sub) {
		sub.removals.since = time.Time{}
		late = slices.DeleteFunc(late, func(name string) bool {
			until, still := s.drains(sub, name)
			return !still || !s.pushesAt(until)
		})
	}
	s.removeLater(sub, r, late)
}

// removeLater takes removals out of a response, and records that the client keeps these resources.
func (s *Stream) removeLater(sub *subscription, r *response, late []string) {
	if len(late) == 0 {
		return
	}
	waits := setOf(late)
	r.removed = slices.DeleteFunc(r.removed, func(name string) bool { return waits[name] })
	if !s.holdsAll(sub) {
		r.late = make(map[string]string)
		for _, name := range late {
			r.late[name] = sub.known(name)
		}
		return
	}
	r.held = make(map[string]*xds.Resource)
	for _, name := range late {
		r.held[name] = sub.running(name)
	}
	r.version += partly
}

// partly is the version suffix of a response with only a part of a state.
const partly = "-part"

// removals returns the names of the client's resources that a response removes. A response that holds all
// resources must repeat a resource to delay its removal, so removals then returns only resources whose
// content is known.
func (s *Stream) removals(sub *subscription, r *response) (names []string) {
	for _, name := range r.removed {
		if s.holdsAll(sub) && sub.running(name) != nil || !s.holdsAll(sub) && sub.mayHave(name) {
			names = append(names, name)
		}
	}
	return names
}

// delaysRemovals reports whether the client may still have listeners and routes that use the removed
// resources, and then schedules push. delaysRemovals returns false after patience.
func (s *Stream) delaysRemovals(sub *subscription) bool {
	if s.pushesAt(s.warmup.resumed.Add(grace)) {
		return true
	}
	types := leading
	if i := slices.Index(leading, sub.of); i >= 0 {
		types = leading[:i]
	}
	if !s.lacks(types) {
		return false
	}
	if sub.removals.since.IsZero() {
		sub.removals.since = time.Now()
	}
	return s.pushesAt(sub.removals.since.Add(patience))
}

// drains reports whether the client may still use a missing resource of an earlier stream, because its
// listeners and routes may have led to the resource until now. until is the end of that time.
func (s *Stream) drains(sub *subscription, name string) (until time.Time, still bool) {
	since, ok := sub.removals.unknown[name]
	if !ok || sub.of == xds.Listener || sub.several != nil {
		return time.Time{}, false
	}
	until = since.Add(s.cache.options.TrimDelay)
	return until, time.Now().Before(until)
}

// recordMissing records which resources of an earlier stream don't exist.
func (s *subscription) recordMissing(now *state) {
	for name, since := range s.removals.unknown {
		if now.find(s.of, name) != nil {
			delete(s.removals.unknown, name)
		} else if since.IsZero() {
			s.removals.unknown[name] = time.Now()
		}
	}
}

// lacks reports whether the client lacks, or has not yet acknowledged, resources of any of the types.
func (s *Stream) lacks(types []*xds.Type) bool {
	now := s.view.current.Load()
	return slices.ContainsFunc(types, func(t *xds.Type) bool {
		sub := s.subscriptions[t]
		return sub != nil && (sub.busy() || len(sub.lacks(now).changed) > 0)
	})
}

// holdTakers delays listeners that take over an address from another listener in the same change. Envoy
// refuses them until the other listener has left the address. If listeners exchange their addresses,
// holdTakers removes one of them first.
func (s *Stream) holdTakers(sub *subscription, r *response) {
	if len(sub.held) == 0 && sub.yields == "" && !slices.ContainsFunc(r.changed, sub.movesFrom) {
		return
	}
	r.doubtful = true
	waits, swaps := transition.Moves(sub.listeners(), r.state.Of(xds.Listener))
	warm := len(sub.held) > 0 && s.mayWarm(sub)
	r.held = make(map[string]*xds.Resource)
	r.changed = slices.DeleteFunc(slices.Clone(r.changed), func(l *xds.Resource) bool {
		if l.Name == sub.yields {
			r.removed = append(r.removed, l.Name)
			r.held[l.Name] = nil
			return true
		}
		_, held := sub.held[l.Name]
		if held = held && warm || waits[l.Name] > 0; held {
			r.held[l.Name] = sub.running(l.Name)
		}
		return held
	})
	if len(r.held) == 0 {
		return
	}
	r.version += partly
	if len(swaps) > 0 && !warm && len(r.changed) == 0 && !slices.ContainsFunc(r.removed, sub.mayHave) {
		// The client was away while the listeners exchanged their addresses.
		r.removed = append(r.removed, swaps[0][0])
		r.held[swaps[0][0]] = nil
	}
}

// exchanged returns the listener to remove first after a client has refused listeners twice for their
// addresses; "" for none. The client has the listeners from an earlier server, at addresses that this server
// doesn't know. If the listeners exchange addresses, the client accepts them in no order.
func (s *subscription) exchanged() string {
	if s.of != xds.Listener || s.nack.again.IsZero() || s.nack.tries < 2 || !strings.Contains(s.last.nack.message, duplicateAddress) {
		return ""
	}
	if meant := s.last.nack.meant(); len(meant) > 1 {
		return slices.Min(meant)
	}
	return ""
}

// duplicateAddress is a part of Envoy's message if another listener has the address.
const duplicateAddress = "has duplicate address"

// mayWarm reports whether the client may still warm the listeners that leave an address, and then schedules
// push.
func (s *Stream) mayWarm(sub *subscription) bool {
	if s.only != nil {
		return s.pushesAt(sub.last.since.Add(grace)) // dependencies come over other streams
	}
	return s.lacks(warming) && s.pushesAt(sub.last.since.Add(patience))
}

// movesFrom reports whether a listener leaves a socket that the client's version uses.
func (s *subscription) movesFrom(l *xds.Resource) bool {
	was := s.running(l.Name)
	return was != nil && !transition.KeepsSockets(was, l)
}

// running returns the resource that the client runs under a name; nil if the client runs none, or if the
// server doesn't know which.
func (s *subscription) running(name string) *xds.Resource {
	if was, held := s.held[name]; held {
		return was
	}
	if s.at == nil {
		return nil
	}
	if _, other := s.versions[name]; other {
		return nil
	}
	return s.at.Lookup(s.of, name)
}

// listeners returns the client's versions of the listeners.
func (s *subscription) listeners() []*xds.Resource {
	names := make(map[string]struct{})
	for name := range s.held {
		names[name] = struct{}{}
	}
	if s.at != nil {
		for _, l := range s.at.Of(xds.Listener) {
			names[l.Name] = struct{}{}
		}
	}
	var list []*xds.Resource
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if l := s.running(name); l != nil && s.subscribes(name) {
			list = append(list, l)
		}
	}
	return list
}

// withHeld returns a list in which the client's versions replace the held resources.
func (r *response) withHeld(all []*encoded) []*encoded {
	if len(r.held) == 0 {
		return all
	}
	all = slices.DeleteFunc(slices.Clone(all), func(e *encoded) bool { _, held := r.held[e.Name]; return held })
	for _, name := range slices.Sorted(maps.Keys(r.held)) {
		if was := r.held[name]; was != nil {
			all = append(all, r.state.encode(was))
		}
	}
	return all
}

// unpark lets the next response have the refused resources again, if the state is another or their pause is
// over.
func (s *Stream) unpark(sub *subscription, now *state) {
	if sub.nack.state == nil || sub.nack.state == now && (sub.nack.again.IsZero() || s.pushesAt(sub.nack.again)) {
		return
	}
	if sub.nack.state != now {
		sub.nack.tries, sub.nack.offers, sub.nack.retries = 0, transition.Offers{}, false
	}
	if sub.unpark(); sub.strays {
		sub.pending.all = true
	}
}

// park withholds the resources and errors of a refused response until unpark.
func (s *subscription) park(r *response) {
	s.nack.state = r.state
	for _, name := range r.names() {
		s.nack.names[name] = struct{}{}
	}
	maps.Copy(s.nack.errors, r.absent)
}

// isRefused reports whether a name waits for unpark. A name with a new error detail doesn't wait.
func (s *subscription) isRefused(name string) bool {
	_, refused := s.nack.names[name]
	detail, failed := s.nack.errors[plain(name)]
	return refused && (!failed || detail == s.detail(plain(name)))
}

// unpark clears the refused resources and errors.
func (s *subscription) unpark() {
	clear(s.nack.names)
	clear(s.nack.errors)
	s.nack.state, s.nack.again = nil, time.Time{}
}

// scheduleRetry schedules a retry if the reason for a refusal may pass, and reports whether this retry is the first:
// the first such refusal doesn't count for a quorum. Another listener that still warms or drains may have the
// address of a new listener. The order of the streams of singleton services is unknown. An empty response is
// not retried.
func (s *Stream) scheduleRetry(sub *subscription, r *response) (first bool) {
	addresses := sub.of == xds.Listener && (r.doubtful || sub.nack.tries > 0)
	if len(r.names()) == 0 || r.state != s.view.current.Load() || s.only == nil && !addresses || sub.nack.tries == len(pauses) {
		return false
	}
	sub.nack.again = time.Now().Add(pauses[sub.nack.tries])
	sub.nack.tries++
	return sub.nack.tries == 1
}
