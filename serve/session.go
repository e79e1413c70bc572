package serve

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/internal/crash"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/serve/listen"
	"xdspub/serve/memory"
	"xdspub/serve/turns"
	"xdspub/xds"
	"xdspub/xds/params"
)

// sessions limits the number of streams, and ends all streams when the server drains.
type sessions struct {
	limits  Limits
	judge   *admit.Judge
	metrics *metrics
	turns   *turns.Turns
	crashes crashes
	open    atomic.Int64
	// aggregates finds the Aggregate of a client.
	aggregates *aggregates
	// draining ends when the server begins to drain. Each stream then ends at a random time within drain.
	draining context.Context
	drain    time.Duration
}

// session is a stream of a client.
type session struct {
	of     *sessions
	client admit.Client
	ctx    context.Context
	end    context.CancelCauseFunc // with the status that the client gets
	// account holds the memory of the stream.
	account *memory.Account
	// turns are the client's turns on the processors.
	turns *turns.Client
}

type sessionKey struct{}

// sessionOf returns the session of a stream; nil if sessions did not intercept the stream.
func sessionOf(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

// intercept is the gRPC interceptor for streams.
func (s *sessions) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	a := arrivalOf(stream.Context())
	defer func() { s.uncount(err) }()
	defer s.crashes.status("serving a gRPC stream", &err)
	if err := s.count(a); err != nil {
		return err
	}
	account := listen.Account(a.conn).Open()
	defer account.Close()
	headers, _ := metadata.FromIncomingContext(stream.Context())
	if err := account.Take(heldByStream + heldByHeaders(headers)); err != nil {
		s.judge.Refused(a.client.Address, "memory", err)
		return err
	}
	a.transit.addStreams(1)
	defer a.transit.addStreams(-1)
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	stop := context.AfterFunc(s.draining, crash.Guard(func() {
		// Spread the ends, because the clients then connect to another server.
		time.AfterFunc(rand.N(s.drain+1), crash.Guard(func() { end(status.Error(codes.Unavailable, "the server ends")) }, s.crashes.log.Crashed))
	}, s.crashes.log.Crashed))
	defer stop()
	_, peer := a.client.Peer()
	c := &session{of: s, client: a.client, end: end, account: account, turns: s.turns.Client(peer)}
	c.ctx = context.WithValue(ctx, sessionKey{}, c)
	b := &bounded{ServerStream: stream, session: c, arrival: a}
	defer b.stopTimer()
	err = handler(srv, b)
	if cause, ok := status.FromError(context.Cause(ctx)); ok && stream.Context().Err() == nil && cause.Code() != codes.OK {
		return cause.Err()
	}
	return err
}

// interceptCall is the gRPC interceptor for unary calls. A call counts as a stream.
func (s *sessions) interceptCall(ctx context.Context, q any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	defer func() { s.uncount(err) }()
	defer s.crashes.status("answering a gRPC request", &err)
	a := arrivalOf(ctx)
	if err := s.count(a); err != nil {
		return nil, err
	}
	a.transit.addStreams(1)
	defer a.transit.addStreams(-1)
	a.transit.received(proto.Size(q.(proto.Message)))
	answer, err = handler(ctx, q)
	if err != nil {
		return nil, err
	}
	out := newOutgoing(answer.(proto.Message), listen.Account(a.conn))
	return out, s.takeResponse(ctx, a.client, out)
}

// count counts a stream, and marks its connection Known. count returns a gRPC status if too many streams are
// open. Call uncount in both cases.
func (s *sessions) count(a arrival) error {
	if s.open.Add(1) > int64(s.limits.Streams) {
		err := status.Errorf(codes.ResourceExhausted, "%d streams are open, and no more are allowed: try again later, or see --limit streams", s.limits.Streams)
		s.judge.Refused(a.client.Address, "streams", err)
		return err
	}
	listen.Known(a.conn)
	return nil
}

// uncount ends the count of a stream. err is the error that the client gets.
func (s *sessions) uncount(err error) {
	s.open.Add(-1)
	s.metrics.ended.WithLabelValues(status.Code(err).String()).Inc()
}

// bounded is a stream whose client must read each response in time.
type bounded struct {
	grpc.ServerStream
	*session
	arrival arrival
	stuck   *time.Timer // runs since the last response; nil before the first
	decoded int         // memory of the last request, in bytes
	asked   bool        // the stream has received a request
}

// Context returns the context of the session.
func (b *bounded) Context() context.Context { return b.session.ctx }

// RecvMsg receives a message. The library would hide an error from the client, and just end the stream. So
// RecvMsg ends the session with the error, and the client learns that its message was too large or malformed.
func (b *bounded) RecvMsg(m any) (err error) {
	defer func() { // the library calls RecvMsg on a goroutine of its own
		if err == errCrashed {
			b.end(err)
		}
	}()
	defer b.of.crashes.status("reading a gRPC request", &err)
	b.account.Give(b.decoded) // the library is done with the last request
	in := incoming{message: m, account: b.account, transit: b.arrival.transit, turns: b.turns, ctx: b.ServerStream.Context()}
	err = b.ServerStream.RecvMsg(&in)
	b.decoded = in.held
	if b.asked {
		dropNode(m)
	}
	b.asked = true
	if in.refused != nil {
		err = in.refused
	}
	if err != nil && !errors.Is(err, io.EOF) && b.ServerStream.Context().Err() == nil {
		b.of.judge.Refused(b.client.Address, "message", err)
		b.end(err)
	}
	return err
}

// dropNode removes the node from a request after the first request of its stream. Only the first node counts,
// but the library would keep the last node in memory.
func dropNode(m any) {
	switch q := m.(type) {
	case *discoveryv3.DiscoveryRequest:
		q.Node = nil
	case *discoveryv3.DeltaDiscoveryRequest:
		q.Node = nil
	}
}

// SendMsg sends a message. If the client doesn't read the message within Limits.Send, a timer closes the
// connection, even if the client answers pings. The library buffers the whole first message, and waits for
// the client only at the next message.
func (b *bounded) SendMsg(m any) error {
	if b.stuck != nil {
		b.stuck.Stop()
	}
	out := newOutgoing(m.(proto.Message), listen.Account(b.arrival.conn))
	if err := b.of.takeResponse(b.ctx, b.client, out); err != nil {
		b.end(err)
		return err
	}
	var sent atomic.Bool
	until := listen.Written(b.arrival.conn) + int64(out.size+len(out.shared))
	b.stuck = time.AfterFunc(b.of.limits.Send, crash.Guard(func() {
		if !sent.Load() || listen.Written(b.arrival.conn) < until {
			b.of.judge.Refused(b.client.Address, "send", status.Errorf(codes.DeadlineExceeded, "the client has not read a response for %v, and loses its connection", b.of.limits.Send))
			b.arrival.conn.Close()
		}
	}, b.of.crashes.log.Crashed))
	err := b.ServerStream.SendMsg(out)
	sent.Store(true)
	if err == nil {
		b.of.metrics.sent(m, out.size+len(out.shared))
	}
	return err
}

// takeResponse takes the memory of a response from the account of the connection. A publish sends to all clients at
// once, so a discovery response waits for memory, at most for Limits.Send. takeResponse refuses any other response
// at once, because that response would stay in memory while it waits. The error is a gRPC status.
func (s *sessions) takeResponse(ctx context.Context, client admit.Client, out *outgoing) (err error) {
	if out.size <= smallest {
		return nil
	}
	out.held = min(out.size, out.account.Half())
	switch out.own.(type) {
	case *discoveryv3.DiscoveryResponse, *discoveryv3.DeltaDiscoveryResponse:
		late, cancel := context.WithTimeout(ctx, s.limits.Send)
		defer cancel()
		err = out.account.Wait(late.Done(), out.held)
	default:
		err = out.account.Take(out.held)
	}
	if err != nil {
		s.judge.Refused(client.Address, "memory", err)
	}
	return err
}

// stopTimer stops the timer of the last SendMsg.
func (b *bounded) stopTimer() {
	if b.stuck != nil {
		b.stuck.Stop()
	}
}

// guard sits between the library's server and the cache's Stream. guard judges the requests of the client,
// and charges their memory to the account of the stream.
type guard struct {
	*cache.Stream // nil before the first permitted request
	session       *session
	kind          cache.Kind
	only          *xds.Type
	leave         func() // leaves the Aggregate of the client; nil before the first permitted request
	asks          *admit.Stream
	silent        *time.Timer // ends the session; the first permitted request stops it
	// pending counts the names of incremental requests that the cache keeps until the next response, by type:
	// unsubscribed names and initial resource versions.
	pending map[string]int
	// held are the bytes that the account holds for names, by type. heldPending is the part of held for
	// pending names. heldSets are the bytes of the parameter sets.
	held        map[string]int
	heldPending map[string]int
	heldSets    int
	// pendingNonce is the nonce of the response whose ACK frees heldPending, by type.
	pendingNonce map[string]string
	// heldNode are the bytes of the node, heldReason the bytes of the last NACK's reason, by type.
	heldNode   int
	heldReason map[string]int
}

// guarded returns the guard of a stream. only is the type of a singleton service; nil for the aggregated service.
func (s *session) guarded(kind cache.Kind, only *xds.Type) *guard {
	g := &guard{
		session: s, kind: kind, only: only, asks: s.of.judge.Stream(s.client),
		pending: make(map[string]int), held: make(map[string]int), heldPending: make(map[string]int),
		heldReason: make(map[string]int), pendingNonce: make(map[string]string),
	}
	g.silent = time.AfterFunc(s.of.limits.FirstRequest, crash.Guard(func() {
		s.end(status.Errorf(codes.DeadlineExceeded, "no request within %v: send a request on each new stream", s.of.limits.FirstRequest))
	}, s.of.crashes.log.Crashed))
	return g
}

// OnStreamOpen does nothing: ask opens the Stream.
func (g *guard) OnStreamOpen(context.Context, int64, string) error { return nil }

// OnDeltaStreamOpen does nothing: ask opens the Stream.
func (g *guard) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

// Close ends the Stream.
func (g *guard) Close() {
	g.silent.Stop()
	if g.Stream == nil {
		return
	}
	g.leave()
	g.Stream.Close()
}

// ask judges a request. The first permitted request opens a Stream of the Aggregate to which the node of the request
// belongs. The error is a gRPC status.
func (g *guard) ask(r admit.Request) error {
	if err := g.asks.Ask(r); err != nil {
		return err
	}
	g.silent.Stop()
	if g.Stream != nil {
		return nil
	}
	client, all := g.session.client, g.session.of.aggregates
	of, leave, err := all.join(client, r.Node, func(err error) {
		all.front.refusedAggregate(client, err)
		g.session.end(err)
	})
	if err != nil {
		all.front.refusedAggregate(client, err)
		return err
	}
	g.leave, g.Stream = leave, of.cache.Open(g.kind, g.only)
	g.Stream.AuthorizeSecrets(func(r *xds.Resource, sets []params.Parameters) bool {
		err := g.asks.SecretOf(r, sets)
		if err != nil {
			g.session.end(err)
		}
		return err == nil
	})
	return g.Stream.OnStreamOpen(g.session.ctx, 0, "")
}

// OnStreamRequest judges a request and forwards it to the Stream.
func (g *guard) OnStreamRequest(id int64, q *discoveryv3.DiscoveryRequest) error {
	turn, err := g.session.turns.Take(g.session.ctx)
	if err != nil {
		return err
	}
	defer turn.Give()
	if err := g.ask(admit.Request{Node: q.GetNode(), TypeURL: q.GetTypeUrl(), Names: q.GetResourceNames(), Locators: q.GetResourceLocators()}); err != nil {
		return err
	}
	g.session.of.metrics.asked(q.GetTypeUrl(), q.GetErrorDetail())
	if err := g.Stream.OnStreamRequest(id, q); err != nil {
		return err
	}
	return g.chargeNode(q.GetTypeUrl(), q.GetNode(), q.GetErrorDetail().GetMessage())
}

// OnStreamDeltaRequest judges an incremental request and forwards it to the Stream.
func (g *guard) OnStreamDeltaRequest(id int64, q *discoveryv3.DeltaDiscoveryRequest) error {
	turn, err := g.session.turns.Take(g.session.ctx)
	if err != nil {
		return err
	}
	defer turn.Give()
	names := slices.Concat(q.GetResourceNamesSubscribe(), q.GetResourceNamesUnsubscribe(), slices.Collect(maps.Keys(q.GetInitialResourceVersions())))
	locators := slices.Concat(q.GetResourceLocatorsSubscribe(), q.GetResourceLocatorsUnsubscribe())
	if err := g.ask(admit.Request{Node: q.GetNode(), TypeURL: q.GetTypeUrl(), Names: names, Locators: locators}); err != nil {
		return err
	}
	g.session.of.metrics.asked(q.GetTypeUrl(), q.GetErrorDetail())
	if err := g.Stream.OnStreamDeltaRequest(id, q); err != nil {
		return err
	}
	if nonce := q.GetResponseNonce(); nonce != "" && nonce == g.pendingNonce[q.GetTypeUrl()] && q.GetErrorDetail() == nil {
		g.forgetPending(q.GetTypeUrl())
	}
	return g.chargeNode(q.GetTypeUrl(), q.GetNode(), q.GetErrorDetail().GetMessage())
}

// chargeNode charges for the parts of a request, besides names, that the library and the cache keep: the node
// of the client and the reason of a NACK.
func (g *guard) chargeNode(typeURL string, node *corev3.Node, refused string) error {
	size := max(g.heldNode, proto.Size(node))
	reason := max(g.heldReason[typeURL], min(len(refused), diag.MaxText))
	if err := g.setCharge(g.heldNode+g.heldReason[typeURL], size+reason); err != nil {
		return err
	}
	g.heldNode, g.heldReason[typeURL] = size, reason
	return nil
}

// forgetPending gives back the bytes of pending names, after the client has acknowledged a later response.
func (g *guard) forgetPending(typeURL string) {
	pending := g.heldPending[typeURL]
	g.session.account.Give(pending)
	g.held[typeURL] -= pending
	delete(g.heldPending, typeURL)
	delete(g.pendingNonce, typeURL)
}

// setCharge changes the stream's charge from was to now bytes.
func (g *guard) setCharge(was, now int) error {
	err := g.session.account.Set(was, now)
	if err != nil {
		g.session.of.judge.Refused(g.session.client.Address, "memory", err)
	}
	return err
}

// chargeNames sets the charge for the names of a type, and updates the charge for the parameter sets.
func (g *guard) chargeNames(typeURL string, bytes int) error {
	sets := g.Stream.ParameterBytes()
	if err := g.setCharge(g.held[typeURL]+g.heldSets, bytes+sets); err != nil {
		return err
	}
	g.held[typeURL], g.heldSets = bytes, sets
	return nil
}

// CreateWatch bounds the names of a subscription, and forwards the request to the Stream.
func (g *guard) CreateWatch(q *discoveryv3.DiscoveryRequest, of cachev3.Subscription, answers chan cachev3.Response) (func(), error) {
	turn, err := g.session.turns.Take(g.session.ctx)
	if err != nil {
		return nil, err
	}
	defer turn.Give()
	if err := g.asks.Count(q.GetTypeUrl(), len(of.SubscribedResources())); err != nil {
		return nil, err
	}
	if err := g.chargeNames(q.GetTypeUrl(), heldByNames(of.SubscribedResources())); err != nil {
		return nil, err
	}
	return g.Stream.CreateWatch(q, of, answers)
}

// CreateDeltaWatch bounds the names of an incremental subscription, and forwards the request to the Stream.
func (g *guard) CreateDeltaWatch(q *discoveryv3.DeltaDiscoveryRequest, of cachev3.Subscription, answers chan cachev3.DeltaResponse) (func(), error) {
	turn, err := g.session.turns.Take(g.session.ctx)
	if err != nil {
		return nil, err
	}
	defer turn.Give()
	g.pending[q.GetTypeUrl()] += len(q.GetResourceNamesUnsubscribe()) + len(q.GetInitialResourceVersions())
	if err := g.asks.Count(q.GetTypeUrl(), len(of.SubscribedResources())+g.pending[q.GetTypeUrl()]); err != nil {
		return nil, err
	}
	if more := len(q.GetResourceNamesSubscribe())+len(q.GetResourceNamesUnsubscribe())+len(q.GetInitialResourceVersions()) > 0; more {
		for _, name := range q.GetResourceNamesUnsubscribe() {
			g.heldPending[q.GetTypeUrl()] += heldByName + len(name)
		}
		for name, version := range q.GetInitialResourceVersions() {
			g.heldPending[q.GetTypeUrl()] += heldByName + len(name) + len(version)
		}
		if err := g.chargeNames(q.GetTypeUrl(), heldByNames(of.SubscribedResources())+g.heldPending[q.GetTypeUrl()]); err != nil {
			return nil, err
		}
	}
	return g.Stream.CreateDeltaWatch(q, of, answers)
}

// OnStreamDeltaResponse counts an incremental response, and forwards it to the Stream.
func (g *guard) OnStreamDeltaResponse(id int64, q *discoveryv3.DeltaDiscoveryRequest, r *discoveryv3.DeltaDiscoveryResponse) {
	delete(g.pending, q.GetTypeUrl())
	g.pendingNonce[q.GetTypeUrl()] = r.GetNonce()
	g.session.of.metrics.responses.WithLabelValues(label(q.GetTypeUrl())).Inc()
	g.Stream.OnStreamDeltaResponse(id, q, r)
}

// OnStreamResponse counts a response, and forwards it to the Stream.
func (g *guard) OnStreamResponse(ctx context.Context, id int64, q *discoveryv3.DiscoveryRequest, r *discoveryv3.DiscoveryResponse) {
	g.session.of.metrics.responses.WithLabelValues(label(q.GetTypeUrl())).Inc()
	g.Stream.OnStreamResponse(ctx, id, q, r)
}
