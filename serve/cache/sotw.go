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

// HoldsAll reports whether a state-of-the-world response must hold all subscribed resources of a type,
// because clients remove missing resources. Clients keep missing resources of other types. An empty list of
// names in a request over REST subscribes to all resources if HoldsAll, and to no resources otherwise.
func HoldsAll(t *xds.Type) bool {
	return t.Asked == xds.AsWhole
}

// completeSotW completes a state-of-the-world response. completeSotW returns nil if the client lacks nothing.
func (s *subscription) completeSotW(r *response) *response {
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
		r.resources, r.whole = r.withHeld(s.asked(r.state)), s.wildcard && len(r.held) == 0
		return r
	}
	for _, changed := range r.changed {
		r.resources = append(r.resources, r.state.encode(changed))
	}
	return r
}

// sotwResources returns the resources of a state-of-the-world response. wraps puts resources with a TTL into
// wrappers.
func (r *response) sotwResources(wraps bool) []*anypb.Any {
	list := make([]*anypb.Any, 0, len(r.resources))
	for _, e := range r.resources {
		if wraps {
			list = append(list, e.wrapped)
		} else {
			list = append(list, e.sotw)
		}
	}
	return list
}

// asked returns the subscribed resources of a state, sorted by name. The caller must not change the list.
func (s *subscription) asked(now *state) []*encoded {
	all := now.all(s.of)
	if s.wildcard {
		return all
	}
	var list []*encoded
	for _, e := range all {
		if s.subscribes(e.Name) {
			list = append(list, e)
		}
	}
	return list
}

// CreateWatch handles a state-of-the-world request, and answers when the client lacks resources. A request of
// an unknown type gets no answer.
func (s *Stream) CreateWatch(q *discoveryv3.DiscoveryRequest, of cache.Subscription, answers chan cache.Response) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, first, err := s.handleRequest(q)
	if sub == nil {
		return nil, err
	}
	s.subscribe(sub, of.SubscribedResources(), of.IsWildcard())
	sub.legacy = sub.wildcard && len(q.GetResourceNames()) == 0
	if first && q.GetVersionInfo() != "" {
		sub.strays = true
		s.recordResumed(sub)
		if !HoldsAll(sub.of) { // the client may have any of them
			for name := range sub.names {
				sub.doubt(name)
				sub.removals.unknown[name] = time.Time{}
			}
		}
	}
	// After a subscription by names or "*", the same version may cover fewer resources.
	if now := s.view.current.Load(); first && sub.legacy && now != nil && q.GetVersionInfo() == now.Version(sub.of) && !s.neededForWarming(sub.of)[""] {
		sub.at = now // the client has this state from an earlier stream
		sub.last.acknowledged = q.GetVersionInfo()
		s.resumeHeartbeats(sub, now)
	}
	wraps := s.countsTTLs(sub)
	// Don't pass q to the library, which keeps the request: no memory account counts q.
	asks := &discoveryv3.DiscoveryRequest{TypeUrl: q.GetTypeUrl()}
	sub.answer = func(r *response) {
		m := &discoveryv3.DiscoveryResponse{VersionInfo: r.version, TypeUrl: asks.GetTypeUrl(), ResourceErrors: s.errors(sub, r)}
		if r.message = m; r.whole && (!wraps || r.state.mortal[sub.of] == 0) {
			m.ProtoReflect().SetUnknown(r.state.whole[sub.of].sotw()) // sent unchanged
		} else {
			m.Resources = r.sotwResources(wraps)
		}
		answers <- &cache.PassthroughResponse{Request: asks, DiscoveryResponse: m, ReturnedResources: make(map[string]string)}
	}
	s.push()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		sub.answer = nil
		sub.drop() // the library drops the response too
	}, nil
}

// OnStreamOpen records the peer of the client.
func (s *Stream) OnStreamOpen(ctx context.Context, _ int64, _ string) error {
	s.peer, _ = peer.FromContext(ctx)
	return nil
}

// OnStreamClosed does nothing.
func (s *Stream) OnStreamClosed(int64, *corev3.Node) {}

// OnStreamRequest prepares a request for the library: it moves the names of locators to the other names,
// gives names their canonical spelling, and removes unused parts of the node. The first request also puts the
// client into its class. The error is a gRPC status, and ends the stream.
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
	q.ResourceNames = slices.Compact(q.ResourceNames) // the library allocates memory for each name
	s.overtaken(q)
	return nil
}

// overtaken handles a request with a stale nonce, which the library ignores. The client drops the resources
// that the request no longer names. The next request may name them again, and would then look like an
// unchanged subscription, so overtaken marks these names pending.
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
			sub.pending.add(name)
		}
		if !plainNames[plain(name)] {
			sub.requeueError(plain(name))
		}
	}
	if sub.wildcard && !names["*"] && (len(names) > 0 || !sub.legacy) {
		sub.pending.all = true
	}
}

// shorten removes most of a node. The library keeps the node as long as the stream, and an Envoy lists a
// thousand extensions.
func shorten(n *corev3.Node) {
	if n != nil {
		n.Extensions, n.Metadata, n.DynamicParameters, n.ClientFeatures = nil, nil, nil, features(n)
		n.ProtoReflect().SetUnknown(nil)
	}
}

// OnStreamResponse records that the library is sending a response, and sends the next responses.
func (s *Stream) OnStreamResponse(_ context.Context, _ int64, q *discoveryv3.DiscoveryRequest, r *discoveryv3.DiscoveryResponse) {
	s.recordSent(r, q.GetTypeUrl(), r.GetNonce())
}
