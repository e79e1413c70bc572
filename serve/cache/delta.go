package cache

import (
	"context"
	"maps"
	"slices"
	"time"

	"xdspub/xds"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// increment completes an incremental response. increment returns nil if the response would be empty.
func (s *subscription) increment(r *response) *response {
	r.absent = s.absence(r)
	if r.whole {
		r.resources = r.state.all(s.of)
		return r
	}
	if len(r.changed)+len(r.removed)+len(r.absent) == 0 && (len(s.versions) > 0 || !s.isFirst()) {
		return nil
	}
	for _, changed := range r.changed {
		r.resources = append(r.resources, r.state.encode(changed))
	}
	if s.of == xds.VirtualHost {
		reported := make(map[string]bool)
		r.removed = slices.DeleteFunc(r.removed, func(name string) bool {
			pending := s.isPending(name)
			if pending && !reported[plain(name)] && !s.hasOther(name, r.state) {
				reported[plain(name)] = true
				r.resources = append(r.resources, noHost(plain(name)))
			}
			return pending
		})
	}
	return r
}

// noHost returns a virtual host without a body. Envoy holds a request until a response has the name that it
// subscribed to, with or without a body.
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_conn_man/vhds
func noHost(name string) *encoded {
	return &encoded{delta: &discoveryv3.Resource{Name: name, Aliases: []string{name}}}
}

// CreateDeltaWatch handles an incremental request, and answers when the client lacks resources. A request of
// an unknown type gets no answer.
func (s *Stream) CreateDeltaWatch(q *discoveryv3.DeltaDiscoveryRequest, of cache.Subscription, answers chan cache.DeltaResponse) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, first, err := s.handleRequest(q)
	if sub == nil {
		return nil, err
	}
	if first || len(q.GetResourceNamesSubscribe())+len(q.GetResourceNamesUnsubscribe()) > 0 {
		s.subscribe(sub, maps.Clone(of.SubscribedResources()), of.IsWildcard()) // the library changes its own map
	}
	if first {
		for name, version := range q.GetInitialResourceVersions() {
			if sub.versions[name] = version; version == "" {
				sub.doubt(name)
			}
			sub.removals.unknown[name] = time.Time{}
		}
		if len(sub.versions) > 0 {
			s.recordResumed(sub)
		}
		s.requeueWarming(sub)
		s.resumeHeartbeats(sub, s.view.current.Load())
	} else {
		sub.renew(q.GetResourceNamesSubscribe(), q.GetResourceNamesUnsubscribe())
	}
	// Don't pass q to the library, which keeps the request: no memory account counts q.
	asks := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: q.GetTypeUrl()}
	sub.answer = func(r *response) {
		m := &discoveryv3.DeltaDiscoveryResponse{SystemVersionInfo: r.version, TypeUrl: asks.GetTypeUrl(), ResourceErrors: s.errors(sub, r)}
		if !s.located {
			m.RemovedResources = r.removed
		} else {
			sub.tellRemoved(m, r.state, r.gone)
		}
		if r.message = m; r.whole {
			m.ProtoReflect().SetUnknown(r.state.whole[sub.of].delta()) // sent unchanged
		} else {
			for _, e := range r.resources {
				m.Resources = append(m.Resources, e.delta)
			}
			s.asAsked(sub.of, m)
		}
		answers <- &cache.DeltaPassthroughResponse{DeltaRequest: asks, DeltaDiscoveryResponse: m, NextVersionMap: make(map[string]string)}
	}
	s.push()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		sub.answer = nil // the library still sends a response in its channel
	}, nil
}

// renew marks the names that a request subscribes to pending, even if the client already subscribes to them.
// With a wildcard, the names that the request unsubscribes from are pending too.
func (s *subscription) renew(subscribed, unsubscribed []string) {
	for _, name := range subscribed {
		if name == "*" {
			s.pending.all = true
		} else {
			s.pending.add(name)
			s.requeueError(plain(name))
		}
	}
	for _, name := range unsubscribed {
		if delete(s.pending.names, name); s.wildcard && name != "*" {
			s.pending.add(name)
		}
	}
}

// OnDeltaStreamOpen records the peer of the client.
func (s *Stream) OnDeltaStreamOpen(ctx context.Context, id int64, url string) error {
	return s.OnStreamOpen(ctx, id, url)
}

// OnDeltaStreamClosed does nothing.
func (s *Stream) OnDeltaStreamClosed(int64, *corev3.Node) {}

// OnStreamDeltaRequest prepares a request for the library: it moves the names of locators to the other names,
// gives names their canonical spelling, and removes unused parts of the node. The first request also puts the
// client into its class. The error is a gRPC status, and ends the stream.
func (s *Stream) OnStreamDeltaRequest(_ int64, q *discoveryv3.DeltaDiscoveryRequest) error {
	subscribed := len(q.GetResourceLocatorsSubscribe())
	names, sets, err := s.introduce(q.GetNode(), slices.Concat(q.GetResourceLocatorsSubscribe(), q.GetResourceLocatorsUnsubscribe()))
	if err != nil {
		return err
	}
	shorten(q.GetNode())
	q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, names[:subscribed]...)
	q.ResourceNamesUnsubscribe = append(q.ResourceNamesUnsubscribe, names[subscribed:]...)
	s.unspell(q.GetTypeUrl(), q.GetResourceNamesUnsubscribe())
	s.spell(q.GetTypeUrl(), q.GetResourceNamesSubscribe())
	inSets(q.ResourceNamesSubscribe[len(q.ResourceNamesSubscribe)-subscribed:], sets[:subscribed])
	inSets(q.ResourceNamesUnsubscribe[len(q.ResourceNamesUnsubscribe)-len(names)+subscribed:], sets[subscribed:])
	spellVersions(q.GetTypeUrl(), q.GetInitialResourceVersions())
	return nil
}

// OnStreamDeltaResponse records that the library is sending a response, and sends the next responses.
func (s *Stream) OnStreamDeltaResponse(_ int64, q *discoveryv3.DeltaDiscoveryRequest, r *discoveryv3.DeltaDiscoveryResponse) {
	s.recordSent(r, q.GetTypeUrl(), r.GetNonce())
}
