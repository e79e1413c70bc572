package cache

import (
	"maps"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

// A client removes a resource with a TTL once that is over. A heartbeat makes it begin again: an
// incremental one is the resource's wrapper, mostly without the resource. By state of the world it is all
// that the client has of it again, since Envoy does not count wrappers without a resource there,
// and removes the listeners and clusters that are not in a response. Each view has one timer for
// each TTL that a client of it counts; it ends with the last of them.
// https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol#ttl

// Heartbeats come three times a TTL, so that one may be lost, but not more often than each
// shortestBeat.
const (
	beatsPerTTL  = 3
	shortestBeat = 100 * time.Millisecond
)

// Features of a client, as its node names them. Envoy has both, and names neither.
const (
	countsTTL = "xds.config.supports-resource-ttl"
	unwraps   = "xds.config.resource-in-sotw"
	envoy     = "envoy"
)

// features returns those of these that a node names.
func features(node *corev3.Node) (known []string) {
	for _, f := range []string{countsTTL, unwraps} {
		if slices.Contains(node.GetClientFeatures(), f) {
			known = append(known, f)
		}
	}
	return known
}

// countsTTLs reports whether a client removes resources whose TTL is over, and by state of the
// world takes them in wrappers. Others may take a heartbeat for a resource that is broken.
func countsTTLs(node *corev3.Node, delta bool) bool {
	has := features(node)
	return node.GetUserAgentName() == envoy || slices.Contains(has, countsTTL) && (delta || slices.Contains(has, unwraps))
}

// countsTTLs reports whether the client gets the TTLs of a type.
func (s *Stream) countsTTLs(sub *subscription) bool {
	return s.ttls && (s.kind.delta() || sub.of.TTLs)
}

// wrapped returns a wrapper as a resource of a response by state of the world.
func wrapped(r *discoveryv3.Resource) *anypb.Any {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return r.GetResource() // a name that is no text, which the resource in it has too
	}
	return &anypb.Any{TypeUrl: xds.URLPrefix + "envoy.service.discovery.v3.Resource", Value: value}
}

// ttl is how long the client keeps the resource; 0 for as long as it likes.
func (e *encoded) ttl() time.Duration { return e.delta.GetTtl().AsDuration() }

// beat returns the heartbeat of a resource. If the client asks only for the collection of the resource, the heartbeat
// has the resource: Envoy rejects a wrapper without a resource if Envoy did not ask for the name in the wrapper.
func (s *subscription) beat(e *encoded) *encoded {
	if _, named := s.names[e.Name]; !named && !s.wildcard {
		return e
	}
	return &encoded{
		Resource: e.Resource,
		world:    e.world,
		wrapped:  e.wrapped,
		delta:    &discoveryv3.Resource{Name: e.delta.GetName(), ResourceName: e.delta.GetResourceName(), Version: e.delta.GetVersion(), Ttl: e.delta.GetTtl()},
	}
}

// keepsAlive has the view send heartbeats of a TTL as long as a client counts it.
func (v *view) keepsAlive(ttl time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.beats[ttl] == nil {
		v.beats[ttl] = time.AfterFunc(betweenBeats(ttl), func() { v.beat(ttl) })
	}
}

func betweenBeats(ttl time.Duration) time.Duration { return max(ttl/beatsPerTTL, shortestBeat) }

// beat sends the heartbeats of a TTL to all streams.
func (v *view) beat(ttl time.Duration) {
	counted := false
	for _, s := range v.all() {
		counted = s.beat(ttl) || counted
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !counted {
		delete(v.beats, ttl)
		return
	}
	v.beats[ttl].Reset(betweenBeats(ttl))
}

// beat sends the heartbeats of a TTL, and reports whether the client counts it.
func (s *Stream) beat(ttl time.Duration) (counted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subscriptions {
		for name, e := range sub.heartbeats.alive {
			if e.ttl() == ttl {
				sub.heartbeats.due[name] = struct{}{}
				counted = !s.gone
			}
		}
	}
	s.push()
	return counted
}

// counts takes down that the client has a resource like that, and counts its TTL.
func (s *Stream) counts(sub *subscription, e *encoded) {
	delete(sub.heartbeats.due, e.Name)
	if e.ttl() == 0 {
		delete(sub.heartbeats.alive, e.Name)
		return
	}
	sub.heartbeats.alive[e.Name] = e
	s.view.keepsAlive(e.ttl())
}

// took takes down what the client counts, once it has taken a response.
func (s *Stream) took(sub *subscription, r *response) {
	if !s.countsTTLs(sub) || len(sub.heartbeats.alive) == 0 && r.state.mortal[sub.of] == 0 {
		sub.heartbeats.state = nil
		return
	}
	sub.heartbeats.state = r.state
	if s.holdsAll(sub) {
		clear(sub.heartbeats.alive)
	}
	for _, e := range r.resources {
		s.counts(sub, e)
	}
	for _, name := range r.removed {
		delete(sub.heartbeats.alive, name)
	}
}

// resumes takes down that the client has resources of a state from the stream before, whose TTLs
// it has counted ever since: it is told at once that they live on.
func (s *Stream) resumes(sub *subscription, now *state) {
	if now == nil || !s.countsTTLs(sub) || now.mortal[sub.of] == 0 {
		return
	}
	sub.heartbeats.state = now
	for _, e := range now.all(sub.of) {
		if sub.asks(e.Name) && sub.known(e.Name) == e.delta.GetVersion() && e.ttl() != 0 {
			s.counts(sub, e)
			sub.heartbeats.due[e.Name] = struct{}{}
		}
	}
}

// holdsAll reports whether the client removes what a response does not have.
func (s *Stream) holdsAll(sub *subscription) bool {
	return HoldsAll(sub.of) && !s.kind.delta()
}

// heartbeat returns the heartbeats that are due, nil for none: of what the client has, be it what
// it keeps instead of what it refused, as long as there is such a resource. whole says that a
// response holds all resources.
func (s *subscription) heartbeat(now *state, whole bool) *response {
	r := &response{state: now, version: s.last.acknowledged, beat: true}
	for _, name := range slices.Sorted(maps.Keys(s.heartbeats.due)) {
		if e := s.heartbeats.alive[name]; e != nil && s.asks(name) && now.find(s.of, name) != nil {
			r.resources = append(r.resources, s.beat(e))
		} else {
			delete(s.heartbeats.alive, name)
		}
	}
	clear(s.heartbeats.due)
	switch {
	case len(r.resources) == 0:
		return nil
	case whole:
		r.held = s.held
		r.resources = slices.DeleteFunc(slices.Clone(r.instead(s.asked(s.heartbeats.state))), func(e *encoded) bool { return !s.mayHave(e.Name) })
	}
	return r
}
