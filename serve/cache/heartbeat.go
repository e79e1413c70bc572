package cache

import (
	"maps"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/internal/crash"
	"xdspub/xds"
)

// A client removes a resource with a TTL when the TTL is over. A heartbeat restarts the TTL. An incremental
// heartbeat is the resource's wrapper, usually without the resource. A state-of-the-world heartbeat has the
// resource, because Envoy ignores wrappers without a resource there. If the resource is a listener or a
// cluster, the heartbeat has all of the client's resources of the type, because Envoy removes those that a
// response lacks. Each view has one timer per TTL of its clients.
// https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol#ttl

// Heartbeats come three times per TTL, so that one may get lost, but not more often than shortestBeat.
const (
	beatsPerTTL  = 3
	shortestBeat = 100 * time.Millisecond
)

// Client features, as a node lists them. Envoy has both features and lists neither.
const (
	countsTTL = "xds.config.supports-resource-ttl"
	unwraps   = "xds.config.resource-in-sotw"
	envoy     = "envoy"
)

// features returns the known features that a node lists.
func features(node *corev3.Node) (known []string) {
	for _, f := range []string{countsTTL, unwraps} {
		if slices.Contains(node.GetClientFeatures(), f) {
			known = append(known, f)
		}
	}
	return known
}

// countsTTLs reports whether a client removes resources after their TTL, and accepts the wrappers that have
// TTLs. Other clients may take a heartbeat for a broken resource.
func countsTTLs(node *corev3.Node, delta bool) bool {
	has := features(node)
	return node.GetUserAgentName() == envoy || slices.Contains(has, countsTTL) && (delta || slices.Contains(has, unwraps))
}

// countsTTLs reports whether the client gets the TTLs of a type.
func (s *Stream) countsTTLs(sub *subscription) bool {
	return s.ttls && (s.kind.delta() || sub.of.TTLs)
}

// wrapped returns a wrapper as a resource of a state-of-the-world response, or the bare resource if the
// wrapper can't be encoded.
func wrapped(r *discoveryv3.Resource) *anypb.Any {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return r.GetResource() // invalid UTF-8 in the name
	}
	return &anypb.Any{TypeUrl: xds.URLPrefix + "envoy.service.discovery.v3.Resource", Value: value}
}

// ttl returns the TTL of the resource; 0 for none.
func (e *encoded) ttl() time.Duration { return e.delta.GetTtl().AsDuration() }

// beat returns the heartbeat of a resource: its wrapper, without the resource in an incremental response. If
// the client subscribes only to a collection of the resource, the heartbeat includes the resource: Envoy
// rejects a wrapper without a resource for a name that Envoy didn't subscribe to.
func (s *subscription) beat(e *encoded) *encoded {
	if _, named := s.names[e.Name]; !named && !s.wildcard {
		return e
	}
	return &encoded{
		Resource: e.Resource,
		sotw:     e.sotw,
		wrapped:  e.wrapped,
		delta:    &discoveryv3.Resource{Name: e.delta.GetName(), ResourceName: e.delta.GetResourceName(), Version: e.delta.GetVersion(), Ttl: e.delta.GetTtl()},
	}
}

// startBeats starts the view's heartbeats for a TTL. The heartbeats end when no client has a resource with
// this TTL.
func (v *view) startBeats(ttl time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.beats[ttl] == nil {
		v.beats[ttl] = time.AfterFunc(betweenBeats(ttl), crash.Guard(func() { v.beat(ttl) }, v.clients.log.Crashed))
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

// beat sends the heartbeats of a TTL, and reports whether the client has resources with this TTL.
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

// keepAlive starts the heartbeats of a resource that the client has, if the resource has a TTL.
func (s *Stream) keepAlive(sub *subscription, e *encoded) {
	delete(sub.heartbeats.due, e.Name)
	if e.ttl() == 0 {
		delete(sub.heartbeats.alive, e.Name)
		return
	}
	sub.heartbeats.alive[e.Name] = e
	s.view.startBeats(e.ttl())
}

// recordTTLs keeps the resources of an acknowledged response alive that have a TTL.
func (s *Stream) recordTTLs(sub *subscription, r *response) {
	if !s.countsTTLs(sub) || len(sub.heartbeats.alive) == 0 && r.state.mortal[sub.of] == 0 {
		sub.heartbeats.state = nil
		return
	}
	sub.heartbeats.state = r.state
	if s.holdsAll(sub) {
		clear(sub.heartbeats.alive)
	}
	for _, e := range r.resources {
		s.keepAlive(sub, e)
	}
	for _, name := range r.removed {
		delete(sub.heartbeats.alive, name)
	}
}

// resumeHeartbeats keeps the resources alive that the client has from an earlier stream. Their heartbeats are
// due at once, because the TTLs are running.
func (s *Stream) resumeHeartbeats(sub *subscription, now *state) {
	if now == nil || !s.countsTTLs(sub) || now.mortal[sub.of] == 0 {
		return
	}
	sub.heartbeats.state = now
	for _, e := range now.all(sub.of) {
		if sub.subscribes(e.Name) && sub.known(e.Name) == e.delta.GetVersion() && e.ttl() != 0 {
			s.keepAlive(sub, e)
			sub.heartbeats.due[e.Name] = struct{}{}
		}
	}
}

// holdsAll reports whether a response must hold all resources, because the client removes the others.
func (s *Stream) holdsAll(sub *subscription) bool {
	return HoldsAll(sub.of) && !s.kind.delta()
}

// heartbeat returns a response with the due heartbeats; nil for none. Heartbeats also cover the old version
// of a resource whose new version the client has refused, as long as the state has the resource. whole means
// that a response must hold all resources.
func (s *subscription) heartbeat(now *state, whole bool) *response {
	r := &response{state: now, version: s.last.acknowledged, beat: true}
	for _, name := range slices.Sorted(maps.Keys(s.heartbeats.due)) {
		if e := s.heartbeats.alive[name]; e != nil && s.subscribes(name) && now.find(s.of, name) != nil {
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
		r.resources = slices.DeleteFunc(slices.Clone(r.withHeld(s.asked(s.heartbeats.state))), func(e *encoded) bool { return !s.mayHave(e.Name) })
	}
	return r
}
