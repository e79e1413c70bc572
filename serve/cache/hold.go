package cache

import (
	"maps"
	"slices"
	"strings"
	"time"

	"xdspub/validate/transition"
	"xdspub/xds"
)

// What a client is told waits where its parts have to come one after the other: a listener that
// takes an address, for the one that leaves it; what is gone, for the listeners and routes that the
// client still has; and what it refused for a reason that may pass.

// grace is how long a client that comes back has time to ask for all that it asked for before. Envoy
// does so at once, in any order.
const grace = time.Second

// pauses are those before a client is told once more what it refused for a reason that may pass.
var pauses = []time.Duration{time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}

// warming are the types that listeners warm with, leading those that lead to what else may go, and each
// to those behind it.
var (
	warming = xds.TypesThat(func(t *xds.Type) bool { return t.Warms })
	leading = slices.DeleteFunc(slices.Clone(xds.InTurn), func(t *xds.Type) bool { return t != xds.Listener && !t.Routes })
)

// comesBack takes down that the client has resources of a type from a stream before.
func (s *Stream) comesBack(sub *subscription) {
	sub.resumed = true
	if s.warmup.resumed.IsZero() {
		s.warmup.resumed = time.Now()
	}
}

// warms reports whether a response may have what the client warms with, which it has asked for and
// was never told.
func (s *subscription) warms(r *response) bool { return r.asked && !s.resumed }

// mostWarmed is how many responses a client that comes back may get before it has asked for all that it
// asked for before. It has patience for that.
const mostWarmed = 8

// startsWarming takes down what the client warms first.
func (s *Stream) startsWarming(r *response) {
	if s.warmup.started.IsZero() {
		s.warmup.started = time.Now()
	}
	if len(s.warmup.sent) < mostWarmed && s.pushesAt(s.warmup.started.Add(patience)) {
		s.warmup.sent = append(s.warmup.sent, r.changed)
	}
}

// endsWarming forgets what the client has warmed first, once it had time to ask for what that needs.
func (s *Stream) endsWarming() {
	if len(s.warmup.sent) > 0 && !s.pushesAt(s.warmup.started.Add(patience)) {
		s.warmup.sent = nil
	}
}

// warmsWith returns the names of a type that the client warms clusters and listeners with which it was
// told on this stream; "" stands for all.
func (s *Stream) warmsWith(t *xds.Type) map[string]bool {
	names := make(map[string]bool)
	for _, told := range s.warmup.sent {
		for _, r := range told {
			for _, asks := range r.Facts().Subscriptions {
				if asks.Target == t && xds.FromSnapshot(asks.Source) {
					names[asks.Name] = true
				}
			}
		}
	}
	return names
}

// distrusts has a client told what it warms with, although it says that it has it: an Envoy says so
// of what it got for a listener that is gone, and does not use it for the next one.
func (s *Stream) distrusts(sub *subscription) {
	if len(sub.versions) == 0 {
		return
	}
	names := s.warmsWith(sub.of)
	for name := range sub.versions {
		if names[name] || names[""] && sub.of == xds.ScopedRoutes {
			sub.owed.owe(name)
		}
	}
}

// hold takes from a response what has to wait. push is called again when it no longer has.
func (s *Stream) hold(sub *subscription, r *response) {
	sub.misses(r.state)
	if sub.several != nil { // it is no Envoy
		return
	}
	if sub.of == xds.Listener {
		s.holdTakers(sub, r)
		return
	}
	late := s.removals(sub, r)
	if len(late) == 0 {
		sub.removals.since = time.Time{}
	} else if !s.removesLater(sub) {
		sub.removals.since = time.Time{}
		late = slices.DeleteFunc(late, func(name string) bool {
			until, still := s.drains(sub, name)
			return !still || !s.pushesAt(until)
		})
	}
	s.removeLater(sub, r, late)
}

// removeLater takes removals out of a response.
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
		r.held[name] = sub.runs(name)
	}
	r.version += partly
}

// partly ends the version of a response that is not all of a state.
const partly = "-part"

// removals returns the names of what the client has that a response removes and may leave where it is.
// By state of the world, that has to be sent with the rest.
func (s *Stream) removals(sub *subscription, r *response) (names []string) {
	for _, name := range r.removed {
		if s.holdsAll(sub) && sub.runs(name) != nil || !s.holdsAll(sub) && sub.mayHave(name) {
			names = append(names, name)
		}
	}
	return names
}

// removesLater reports whether the client may have listeners and routes that lead to what is gone.
func (s *Stream) removesLater(sub *subscription) bool {
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

// drains reports whether the client may still use a resource that it has from a stream before and that is not
// there: its listeners and routes may have led to the resource until now. until is when that ends.
func (s *Stream) drains(sub *subscription, name string) (until time.Time, still bool) {
	since, ok := sub.removals.unknown[name]
	if !ok || sub.of == xds.Listener || sub.several != nil {
		return time.Time{}, false
	}
	until = since.Add(s.cache.options.TrimDelay)
	return until, time.Now().Before(until)
}

// misses takes down which of the resources that the client has from a stream before are not there.
func (s *subscription) misses(now *state) {
	for name, since := range s.removals.unknown {
		if now.find(s.of, name) != nil {
			delete(s.removals.unknown, name)
		} else if since.IsZero() {
			s.removals.unknown[name] = time.Now()
		}
	}
}

// lacks reports whether the client lacks, or has not acknowledged, resources of one of the types.
func (s *Stream) lacks(types []*xds.Type) bool {
	now := s.view.current.Load()
	return slices.ContainsFunc(types, func(t *xds.Type) bool {
		sub := s.subscriptions[t]
		return sub != nil && (sub.busy() || len(sub.lacks(now).changed) > 0)
	})
}

// holdTakers holds listeners that take an address which another one leaves by the same change: Envoy
// refuses them until that one is warm.
func (s *Stream) holdTakers(sub *subscription, r *response) {
	if len(sub.held) == 0 && sub.yields == "" && !slices.ContainsFunc(r.changed, sub.movesFrom) {
		return
	}
	r.doubtful = true
	waits, swaps := transition.Moves(sub.listeners(), r.state.Of(xds.Listener))
	warm := len(sub.held) > 0 && s.warmsUp(sub)
	r.held = make(map[string]*xds.Resource)
	r.changed = slices.DeleteFunc(slices.Clone(r.changed), func(l *xds.Resource) bool {
		if l.Name == sub.yields {
			r.removed = append(r.removed, l.Name)
			r.held[l.Name] = nil
			return true
		}
		_, held := sub.held[l.Name]
		if held = held && warm || waits[l.Name] > 0; held {
			r.held[l.Name] = sub.runs(l.Name)
		}
		return held
	})
	if len(r.held) == 0 {
		return
	}
	r.version += partly
	if len(swaps) > 0 && !warm && len(r.changed) == 0 && !slices.ContainsFunc(r.removed, sub.mayHave) {
		// The client was away while they changed one after the other: one of them goes first.
		r.removed = append(r.removed, swaps[0][0])
		r.held[swaps[0][0]] = nil
	}
}

// exchanged returns the listener that goes first of those that a client has refused twice for their
// addresses; "" where there is none. It has them from a server before this one, at addresses that it has
// told nobody: where they exchange these, there is no order in which it would take them.
func (s *subscription) exchanged() string {
	if s.of != xds.Listener || s.nack.again.IsZero() || s.nack.tries < 2 || !strings.Contains(s.last.nack.message, duplicateAddress) {
		return ""
	}
	if meant := s.last.nack.meant(); len(meant) > 1 {
		return slices.Min(meant)
	}
	return ""
}

// duplicateAddress is what Envoy says where another listener has the address.
const duplicateAddress = "has duplicate address"

// warmsUp reports whether the client may still warm the listeners that leave an address.
func (s *Stream) warmsUp(sub *subscription) bool {
	if s.only != nil {
		return s.pushesAt(sub.last.since.Add(grace)) // other streams have what they warm with
	}
	return s.lacks(warming) && s.pushesAt(sub.last.since.Add(patience))
}

// movesFrom reports whether a listener leaves a socket that the client has it at.
func (s *subscription) movesFrom(l *xds.Resource) bool {
	was := s.runs(l.Name)
	return was != nil && !transition.KeepsSockets(was, l)
}

// runs returns a resource as the client has it; nil where it has none, or nobody knows.
func (s *subscription) runs(name string) *xds.Resource {
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

// listeners returns the listeners as the client has them.
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
		if l := s.runs(name); l != nil && s.asks(name) {
			list = append(list, l)
		}
	}
	return list
}

// instead returns resources with those that are held as the client has them.
func (r *response) instead(all []*encoded) []*encoded {
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

// unpark has what the client refused sent once more, in another state or once it is time.
func (s *Stream) unpark(sub *subscription, now *state) {
	if sub.nack.state == nil || sub.nack.state == now && (sub.nack.again.IsZero() || s.pushesAt(sub.nack.again)) {
		return
	}
	if sub.nack.state != now {
		sub.nack.tries, sub.nack.offers, sub.nack.retries = 0, transition.Offers{}, false
	}
	if sub.unpark(); sub.strays {
		sub.owed.all = true
	}
}

// park keeps the resources and errors of a refused response from the client until the next state.
func (s *subscription) park(r *response) {
	s.nack.state = r.state
	for _, name := range r.names() {
		s.nack.names[name] = struct{}{}
	}
	maps.Copy(s.nack.errors, r.absent)
}

// isRefused reports whether a name waits for unpark. If the reason of the error has changed, the name does not wait.
func (s *subscription) isRefused(name string) bool {
	_, refused := s.nack.names[name]
	detail, failed := s.nack.errors[plain(name)]
	return refused && (!failed || detail == s.detail(plain(name)))
}

// unpark lets the client have again the resources and errors that it refused.
func (s *subscription) unpark() {
	clear(s.nack.names)
	clear(s.nack.errors)
	s.nack.state, s.nack.again = nil, time.Time{}
}

// hopes reports whether the reason for a refusal may pass, and has the client told once more then: at an
// address of a new listener there may be another one that still warms or drains; and nobody knows
// how far the streams of the other singleton services are. The first refusal of this kind is none for a
// quorum. Of a response that says nothing there is nothing to tell again.
func (s *Stream) hopes(sub *subscription, r *response) (first bool) {
	if len(r.names()) == 0 || r.state != s.view.current.Load() || s.only == nil && !(sub.of == xds.Listener && (r.doubtful || sub.nack.tries > 0)) || sub.nack.tries == len(pauses) {
		return false
	}
	sub.nack.again = time.Now().Add(pauses[sub.nack.tries])
	sub.nack.tries++
	return sub.nack.tries == 1
}
