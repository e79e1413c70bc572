package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

// heard is a request of a client, of any transport.
type heard struct {
	of                     *xds.Type
	subscribe, unsubscribe []string
	names                  []string // of the request: those of subscribe, or by state of the world all
	nonce, version, reason string
	node                   *corev3.Node
}

// hearing turns the messages of a client into heard.
type hearing map[*xds.Type][]string // the names in the last request by state of the world

func (h hearing) delta(r *discoveryv3.DeltaDiscoveryRequest) heard {
	return heard{
		of: xds.TypeOfURL(r.GetTypeUrl()), names: r.GetResourceNamesSubscribe(), subscribe: r.GetResourceNamesSubscribe(), unsubscribe: r.GetResourceNamesUnsubscribe(),
		nonce: r.GetResponseNonce(), reason: r.GetErrorDetail().GetMessage(), node: r.GetNode(),
	}
}

func (h hearing) whole(r *discoveryv3.DiscoveryRequest) heard {
	of := xds.TypeOfURL(r.GetTypeUrl())
	without := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return slices.Contains(b, name) })
	}
	is := heard{
		of: of, names: r.GetResourceNames(), subscribe: without(r.GetResourceNames(), h[of]), unsubscribe: without(h[of], r.GetResourceNames()),
		nonce: r.GetResponseNonce(), version: r.GetVersionInfo(), reason: r.GetErrorDetail().GetMessage(), node: r.GetNode(),
	}
	h[of] = r.GetResourceNames()
	return is
}

// scripted is a connection of a client with a control plane that runs a function.
type scripted struct {
	by    Transport
	run   func(*scripted) error
	begin sync.Once
	ended chan struct{}
	err   error
	heard chan heard

	mu      sync.Mutex
	hears   hearing
	streams map[*xds.Type]grpc.ServerStream // by type; under nil for an aggregated transport
	sent    map[*xds.Type]map[string]*discoveryv3.Resource
	version int
}

type connection struct{}

// script returns a server that runs a function for each connection.
func script(by Transport, run func(*scripted) error) *grpc.Server {
	return grpc.NewServer(grpc.StatsHandler(connections{by: by, run: run}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return stream.Context().Value(connection{}).(*scripted).serve(stream)
	}))
}

// connections gives each connection a scripted.
type connections struct {
	stats.Handler
	by  Transport
	run func(*scripted) error
}

func (c connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connection{}, &scripted{
		by: c.by, run: c.run, ended: make(chan struct{}), heard: make(chan heard, 16), hears: make(hearing),
		streams: make(map[*xds.Type]grpc.ServerStream), sent: make(map[*xds.Type]map[string]*discoveryv3.Resource),
	})
}
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (connections) HandleRPC(context.Context, stats.RPCStats)                       {}
func (connections) HandleConn(context.Context, stats.ConnStats)                     {}

// serve serves a stream until the script ends.
func (s *scripted) serve(stream grpc.ServerStream) error {
	var of *xds.Type
	for _, t := range xds.Types {
		if method, _ := grpc.MethodFromServerStream(stream); !s.by.aggregated() && s.by.method(t) == method {
			of = t
		}
	}
	s.mu.Lock()
	s.streams[of] = stream
	s.mu.Unlock()
	s.begin.Do(func() {
		go func() {
			s.err = s.run(s)
			close(s.ended)
		}()
	})
	failed := make(chan error, 1)
	go func() { failed <- s.listen(stream) }()
	select {
	case <-s.ended:
		return s.err
	case err := <-failed:
		return err
	}
}

// listen passes the requests of a stream on.
func (s *scripted) listen(stream grpc.ServerStream) error {
	for {
		var is heard
		if s.by.delta() {
			r := &discoveryv3.DeltaDiscoveryRequest{}
			if err := stream.RecvMsg(r); err != nil {
				return err
			}
			is = s.hears.delta(r)
		} else {
			r := &discoveryv3.DiscoveryRequest{}
			if err := stream.RecvMsg(r); err != nil {
				return err
			}
			s.mu.Lock()
			is = s.hears.whole(r)
			s.mu.Unlock()
		}
		select {
		case s.heard <- is:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// on returns the stream for a type, once the client has opened the stream.
func (s *scripted) on(t *xds.Type) (grpc.ServerStream, error) {
	if s.by.aggregated() {
		t = nil
	}
	for {
		s.mu.Lock()
		is := s.streams[t]
		s.mu.Unlock()
		if is != nil {
			return is, nil
		}
		if _, err := s.next(); err != nil {
			return nil, err
		}
	}
}

// send sends resources. By state of the world, a response of clusters or listeners also has those that were sent
// before.
func (s *scripted) send(t *xds.Type, nonce string, resources ...*discoveryv3.Resource) error {
	return s.misplace(t, t, nonce, resources...)
}

// misplace is send on the stream of another type.
func (s *scripted) misplace(on, t *xds.Type, nonce string, resources ...*discoveryv3.Resource) error {
	stream, err := s.on(on)
	if err != nil {
		return err
	}
	if s.by.delta() {
		return stream.SendMsg(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: t.URL(), Nonce: nonce, Resources: resources})
	}
	if s.sent[t] == nil {
		s.sent[t] = make(map[string]*discoveryv3.Resource)
	}
	all := make(map[string]*discoveryv3.Resource)
	if t.Asked == xds.AsWhole {
		all = s.sent[t]
	}
	for _, r := range resources {
		all[r.GetName()] = r
	}
	return stream.SendMsg(s.state(t, nonce, all))
}

// state returns a response by state of the world.
func (s *scripted) state(t *xds.Type, nonce string, all map[string]*discoveryv3.Resource) *discoveryv3.DiscoveryResponse {
	s.version++
	m := &discoveryv3.DiscoveryResponse{TypeUrl: t.URL(), Nonce: nonce, VersionInfo: fmt.Sprint(s.version)}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m.Resources = append(m.Resources, bare(t, all[name]))
	}
	return m
}

// bare returns a resource for a response by state of the world: without a wrapper, unless the wrapper says more.
func bare(t *xds.Type, r *discoveryv3.Resource) *anypb.Any {
	if r.GetTtl() == nil && r.GetMetadata() == nil && nameIn(t, r.GetResource()) == r.GetName() {
		return r.GetResource()
	}
	return pack(r)
}

// sendAll is send, with names more than once and without names.
func (s *scripted) sendAll(t *xds.Type, nonce string, resources ...*discoveryv3.Resource) error {
	if s.by.delta() {
		return s.send(t, nonce, resources...)
	}
	stream, err := s.on(t)
	if err != nil {
		return err
	}
	m := &discoveryv3.DiscoveryResponse{TypeUrl: t.URL(), Nonce: nonce, VersionInfo: nonce}
	for _, r := range resources {
		m.Resources = append(m.Resources, bare(t, r))
	}
	return stream.SendMsg(m)
}

// beat sends a heartbeat.
func (s *scripted) beat(t *xds.Type, nonce string, r *discoveryv3.Resource) error {
	if s.by.delta() {
		return s.send(t, nonce, r)
	}
	stream, err := s.on(t)
	if err != nil {
		return err
	}
	return stream.SendMsg(s.state(t, nonce, map[string]*discoveryv3.Resource{r.GetName(): r}))
}

// remove removes resources. By state of the world, only clusters and listeners can be removed.
func (s *scripted) remove(t *xds.Type, nonce string, names ...string) error {
	stream, err := s.on(t)
	if err != nil {
		return err
	}
	if s.by.delta() {
		return stream.SendMsg(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: t.URL(), Nonce: nonce, RemovedResources: names})
	}
	for _, name := range names {
		delete(s.sent[t], name)
	}
	return stream.SendMsg(s.state(t, nonce, s.sent[t]))
}

// next returns the next request.
func (s *scripted) next() (heard, error) {
	for {
		s.mu.Lock()
		var ctx context.Context
		for _, stream := range s.streams {
			ctx = stream.Context()
		}
		s.mu.Unlock()
		select {
		case is := <-s.heard:
			return is, nil
		case <-ctx.Done():
			return heard{}, ctx.Err()
		}
	}
}

// answer returns the next ACK or NACK of a nonce.
func (s *scripted) answer(nonce string) (heard, error) {
	for {
		is, err := s.next()
		if err != nil || is.nonce == nonce {
			return is, err
		}
	}
}

// asks waits until the client subscribes to a name.
func (s *scripted) asks(t *xds.Type, name string) error {
	for {
		is, err := s.next()
		if err != nil || is.of == t && slices.Contains(is.subscribe, name) {
			return err
		}
	}
}

// drain reads requests until the connection ends.
func (s *scripted) drain() error {
	for {
		if _, err := s.next(); err != nil {
			return err
		}
	}
}

// serving runs a script at a new socket.
func serving(t *testing.T, by Transport, run func(*scripted) error) (at string) {
	t.Helper()
	at, _ = listen(t, socketOf(t), script(by, run))
	return at
}
