package cache

import (
	"context"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

// HoldsAll reports whether a response by state of the world has all resources of a type that the
// client asks for: it removes those that are absent. Of other types it keeps them. An empty list of
// names asks for all resources of these types, and for none of others.
func HoldsAll(t *xds.Type) bool {
	return t.Asked == xds.AsWhole
}

// world makes the response one by state of the world; nil for none.
func (s *subscription) world(r *response) *response {
	r.absent = s.absence(r)
	switch {
	case s.isFirst():
	case len(r.changed)+len(r.absent) > 0:
	case HoldsAll(s.of) && slices.ContainsFunc(r.removed, s.mayHave):
	case HoldsAll(s.of) && len(r.removed) > 0 && s.strays:
	default:
		return nil
	}
	if HoldsAll(s.of) {
		r.resources, r.whole = r.instead(s.asked(r.state)), s.wildcard && len(r.held) == 0
		return r
	}
	for _, changed := range r.changed {
		r.resources = append(r.resources, r.state.encode(changed))
	}
	return r
}

// world returns the resources of a response by state of the world, in wrappers where they have a
// TTL and the client counts it.
func (r *response) world(wraps bool) []*anypb.Any {
	list := make([]*anypb.Any, 0, len(r.resources))
	for _, e := range r.resources {
		if wraps {
			list = append(list, e.wrapped)
		} else {
			list = append(list, e.world)
		}
	}
	return list
}

// asked returns all resources of a state that the client has asked for, by name.
func (s *subscription) asked(now *state) []*encoded {
	all := now.all(s.of)
	if s.wildcard {
		return all
	}
	var list []*encoded
	for _, e := range all {
		if s.asks(e.Name) {
			list = append(list, e)
		}
	}
	return list
}

// CreateWatch takes a request of the client, and answers it once there is something to say.
func (s *Stream) CreateWatch(q *discoveryv3.DiscoveryRequest, of cache.Subscription, answers chan cache.Response) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, first, err := s.takes(q)
	if sub == nil {
		return nil, err
	}
	s.asks(sub, of.SubscribedResources(), of.IsWildcard())
	sub.legacy = sub.wildcard && len(q.GetResourceNames()) == 0
	if first && q.GetVersionInfo() != "" {
		sub.strays = true
		s.comesBack(sub)
		if !HoldsAll(sub.of) { // it may have each of them
			for name := range sub.names {
				sub.doubt(name)
				sub.removals.unknown[name] = time.Time{}
			}
		}
	}
	// A client that has asked by name or by "*" may have the version of fewer resources.
	if now := s.view.current.Load(); first && sub.legacy && now != nil && q.GetVersionInfo() == now.Version(sub.of) && !s.warmsWith(sub.of)[""] {
		sub.at = now // the client has it from the stream before
		sub.last.acknowledged = q.GetVersionInfo()
		s.resumes(sub, now)
	}
	wraps := s.countsTTLs(sub)
	asks := &discoveryv3.DiscoveryRequest{TypeUrl: q.GetTypeUrl()} // a watch would keep q, which no account holds
	sub.answer = func(r *response) {
		m := &discoveryv3.DiscoveryResponse{VersionInfo: r.version, TypeUrl: asks.GetTypeUrl(), ResourceErrors: s.errors(sub, r)}
		if r.message = m; r.whole && (!wraps || r.state.mortal[sub.of] == 0) {
			m.ProtoReflect().SetUnknown(r.state.whole[sub.of].world()) // is sent as it stands
		} else {
			m.Resources = r.world(wraps)
		}
		answers <- &cache.PassthroughResponse{Request: asks, DiscoveryResponse: m, ReturnedResources: make(map[string]string)}
	}
	s.push()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		sub.answer = nil
		sub.drop() // as the server does
	}, nil
}

// OnStreamOpen takes down who the client is.
func (s *Stream) OnStreamOpen(ctx context.Context, _ int64, _ string) error {
	s.peer, _ = peer.FromContext(ctx)
	return nil
}

// OnStreamClosed does nothing.
func (s *Stream) OnStreamClosed(int64, *corev3.Node) {}

// OnStreamRequest removes what nobody needs of a node, and spells names as the Cache does.
func (s *Stream) OnStreamRequest(_ int64, q *discoveryv3.DiscoveryRequest) error {
	names, sets, err := s.introduce(q.GetNode(), q.GetResourceLocators())
	if err != nil {
		return err
	}
	shorten(q.GetNode())
	q.ResourceNames = append(q.ResourceNames, names...)
	s.spell(q.GetTypeUrl(), q.GetResourceNames())
	inSets(q.ResourceNames[len(q.ResourceNames)-len(names):], sets)
	slices.Sort(q.ResourceNames)
	q.ResourceNames = slices.Compact(q.ResourceNames) // the library makes room for as many as there are
	s.overtaken(q)
	return nil
}

// overtaken takes down what a request no longer asks for that the library ignores, because its nonce is not
// that of the last response. The client drops that. It may ask again by the next request that counts, which
// then looks as if the client had asked all the time.
func (s *Stream) overtaken(q *discoveryv3.DiscoveryRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscriptions[xds.TypeOfURL(q.GetTypeUrl())]
	if sub == nil || sub.nonce == "" || sub.nonce == q.GetResponseNonce() {
		return
	}
	names, plainNames := setOf(q.GetResourceNames()), make(map[string]bool)
	for name := range names {
		plainNames[plain(name)] = true
	}
	for name := range sub.names {
		if !names[name] {
			sub.owed.owe(name)
		}
		if !plainNames[plain(name)] {
			sub.repeatsError(plain(name))
		}
	}
	if sub.wildcard && !names["*"] && (len(names) > 0 || !sub.legacy) {
		sub.owed.all = true
	}
}

// shorten removes from a node, which is kept for the time of the stream, all but who it is: an
// Envoy lists a thousand extensions.
func shorten(n *corev3.Node) {
	if n != nil {
		n.Extensions, n.Metadata, n.DynamicParameters, n.ClientFeatures = nil, nil, nil, features(n)
		n.ProtoReflect().SetUnknown(nil)
	}
}

// OnStreamResponse takes down that a response leaves for the client.
func (s *Stream) OnStreamResponse(_ context.Context, _ int64, q *discoveryv3.DiscoveryRequest, r *discoveryv3.DiscoveryResponse) {
	s.leaves(r, q.GetTypeUrl(), r.GetNonce())
}
