package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"xdspub/event"
	"xdspub/observe"
	"xdspub/serve"
	"xdspub/tools/envoytest"
	"xdspub/watch/control"
	"xdspub/xds"
)

// running is a Server that runs for a test.
type running struct {
	*serve.Server
	t        testing.TB
	tcp, web string // addresses for gRPC and HTTP
	socket   string
	log      *syncBuffer
	observer *observe.Observer
	stop     context.CancelFunc
	ended    chan error
}

// syncBuffer is a log that tests may read during writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// run runs a Server on TCP, on a Unix socket and over HTTP, until the test ends.
func run(t testing.TB, o serve.Options) *running {
	t.Helper()
	s := &running{t: t, log: new(syncBuffer), ended: make(chan error, 1)}
	s.tcp, s.web = fmt.Sprint("127.0.0.1:", envoytest.FreePort(t)), fmt.Sprint("127.0.0.1:", envoytest.FreePort(t))
	s.socket = socketPath(t)
	o.GRPC, o.HTTP = []string{s.tcp, "unix:" + s.socket}, []string{s.web}
	o.Cluster, o.Log = "xds_cluster", event.New(slog.NewTextHandler(s.log, nil))
	if o.DrainTime == 0 {
		o.DrainTime = time.Millisecond
	}
	s.observer = observe.New(observe.Options{})
	o.Operations, o.Registry = s.observer.Handler(), s.observer.Registry()
	var err error
	if s.Server, err = serve.Listen(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.observer.Observe(s.Server)
	s.tell(control.Watch{Snapshot: "v0123456789abcde", SnapshotSince: time.Now(), Acknowledged: true})
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	go func() { s.ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		s.stop()
		select {
		case err := <-s.ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the server does not end")
		}
	})
	return s
}

// tell sets the state of the watch, as a watch does.
func (s *running) tell(w control.Watch) {
	s.Tell(w)
	s.observer.Tell("", w)
}

func (s *running) publish(text string) {
	s.t.Helper()
	result := parse(s.t.(*testing.T), text)
	if err := s.Publish(s.t.Context(), result); err != nil {
		s.t.Fatal(err)
	}
}

// dial connects to an address over TLS, or without TLS if c is nil.
func dial(t testing.TB, address string, c *tls.Config, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	creds := insecure.NewCredentials()
	if c != nil {
		creds = credentials.NewTLS(c)
	}
	conn, err := grpc.NewClient(address, append(more, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

type (
	sotwStream  = grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	deltaStream = grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
)

// open opens an aggregated state-of-the-world stream that ends with the test.
func open(t testing.TB, conn *grpc.ClientConn) sotwStream {
	t.Helper()
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openDelta(t testing.TB, conn *grpc.ClientConn) deltaStream {
	t.Helper()
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// within returns a context that ends after patience.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// asks sends a request for clusters, and returns the response, or the error with which the stream ends.
func asks(t testing.TB, s sotwStream) (*discoveryv3.DiscoveryResponse, error) {
	t.Helper()
	if err := s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), Node: &corev3.Node{Id: "good"}}); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return s.Recv()
}

// answered sends a request for clusters, and returns the response. answered fails the test without a
// response.
func answered(t testing.TB, s sotwStream) *discoveryv3.DiscoveryResponse {
	t.Helper()
	r, err := asks(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// soonAnswered calls open and sends a request for clusters until a stream gets a response. A busy machine may
// exceed the time limits of the server.
func soonAnswered(t testing.TB, open func() sotwStream) (r *discoveryv3.DiscoveryResponse) {
	t.Helper()
	envoytest.Eventually(t, patience, "a request is answered", func() (bool, string) {
		var err error
		r, err = asks(t, open())
		return err == nil, fmt.Sprint(err)
	})
	return r
}

// follows changes a resource, and fails the test unless the client gets the change.
func (s *running) follows(stream sotwStream, last *discoveryv3.DiscoveryResponse) {
	s.t.Helper()
	if err := stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: last.TypeUrl, ResponseNonce: last.Nonce, VersionInfo: last.VersionInfo}); err != nil {
		s.t.Fatal(err)
	}
	s.publish(strings.ReplaceAll(oneCluster, "web", "api"))
	if r, err := stream.Recv(); err != nil || r.VersionInfo == last.VersionInfo {
		s.t.Errorf("the good client is told %v, %v", r, err)
	}
}

// ends returns the status with which a stream ends.
func ends[S any, R any](t testing.TB, s grpc.BidiStreamingClient[S, R]) *status.Status {
	t.Helper()
	for {
		if _, err := s.Recv(); err != nil {
			return status.Convert(err)
		}
	}
}

// oneCluster is a tree with a cluster.
const oneCluster = `[{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}]`

// TestHostileRequests sends forbidden requests while a good client follows the server.
func TestHostileRequests(t *testing.T) {
	s, impatient := run(t, serve.Options{}), run(t, serve.Options{Limits: serve.Limits{FirstRequest: 200 * time.Millisecond}})
	s.publish(oneCluster)
	impatient.publish(oneCluster)
	good := open(t, dial(t, "unix:"+s.socket, nil))
	last := answered(t, good)

	many := make([]string, 100_000)
	for i := range many {
		many[i] = fmt.Sprint("name-", i)
	}
	cds := xds.Cluster.URL()
	for name, c := range map[string]struct {
		sotw    []*discoveryv3.DiscoveryRequest
		delta   []*discoveryv3.DeltaDiscoveryRequest
		want    codes.Code
		message string
	}{
		"silence":                  {sotw: []*discoveryv3.DiscoveryRequest{}, want: codes.DeadlineExceeded, message: "no request within"},
		"silence by delta":         {delta: []*discoveryv3.DeltaDiscoveryRequest{}, want: codes.DeadlineExceeded, message: "no request within"},
		"no type":                  {sotw: []*discoveryv3.DiscoveryRequest{{}}, want: codes.InvalidArgument},
		"no type by delta":         {delta: []*discoveryv3.DeltaDiscoveryRequest{{}}, want: codes.InvalidArgument},
		"a name of 1 MB":           {sotw: []*discoveryv3.DiscoveryRequest{{TypeUrl: cds, ResourceNames: []string{strings.Repeat("x", 1<<20)}}}, want: codes.InvalidArgument, message: "a resource name of 1048576 bytes"},
		"that by delta":            {delta: []*discoveryv3.DeltaDiscoveryRequest{{TypeUrl: cds, ResourceNamesSubscribe: []string{strings.Repeat("x", 1<<20)}}}, want: codes.InvalidArgument, message: "a resource name of 1048576 bytes"},
		"unsubscribes that":        {delta: []*discoveryv3.DeltaDiscoveryRequest{{TypeUrl: cds, ResourceNamesUnsubscribe: []string{strings.Repeat("x", 1<<20)}}}, want: codes.InvalidArgument, message: "a resource name of 1048576 bytes"},
		"has that":                 {delta: []*discoveryv3.DeltaDiscoveryRequest{{TypeUrl: cds, InitialResourceVersions: map[string]string{strings.Repeat("x", 1<<20): "1"}}}, want: codes.InvalidArgument, message: "a resource name of 1048576 bytes"},
		"a type of 1 MB":           {sotw: []*discoveryv3.DiscoveryRequest{{TypeUrl: strings.Repeat("x", 1<<20)}}, want: codes.InvalidArgument, message: "a type URL"},
		"a request of 5 MB":        {sotw: []*discoveryv3.DiscoveryRequest{{TypeUrl: cds, ResourceNames: []string{strings.Repeat("x", 5<<20)}}}, want: codes.ResourceExhausted, message: "larger than max"},
		"that of 5 MB":             {delta: []*discoveryv3.DeltaDiscoveryRequest{{TypeUrl: cds, ResourceNamesSubscribe: []string{strings.Repeat("x", 5<<20)}}}, want: codes.ResourceExhausted, message: "larger than max"},
		"100,000 names":            {sotw: []*discoveryv3.DiscoveryRequest{{TypeUrl: cds, ResourceNames: many}}, want: codes.ResourceExhausted, message: "100000 names on one stream: 10001 are allowed"},
		"piece by piece":           {delta: pieces(many, func(q *discoveryv3.DeltaDiscoveryRequest, n []string) { q.ResourceNamesSubscribe = n }), want: codes.ResourceExhausted, message: "names on one stream"},
		"100,000 given up":         {delta: pieces(many, func(q *discoveryv3.DeltaDiscoveryRequest, n []string) { q.ResourceNamesUnsubscribe = n }), want: codes.ResourceExhausted, message: "names on one stream"},
		"100,000 types":            {sotw: ofTypes(many), want: codes.ResourceExhausted, message: "32 types"},
		"100,000 by delta":         {delta: deltaTypes(many), want: codes.ResourceExhausted, message: "32 types"},
		"secrets by TCP":           {sotw: []*discoveryv3.DiscoveryRequest{{TypeUrl: xds.Secret.URL(), ResourceNames: []string{"key"}}}, want: codes.PermissionDenied, message: "secrets are sent only over TLS or a Unix socket"},
		"secrets by delta":         {delta: []*discoveryv3.DeltaDiscoveryRequest{{TypeUrl: xds.Secret.URL()}}, want: codes.PermissionDenied, message: "secrets are sent"},
		"a locator without a name": {sotw: []*discoveryv3.DiscoveryRequest{{TypeUrl: cds, ResourceLocators: []*discoveryv3.ResourceLocator{{}}}}, want: codes.InvalidArgument, message: "a resource locator without a name"},
		"a locator of 1 MB":        {delta: []*discoveryv3.DeltaDiscoveryRequest{{TypeUrl: cds, ResourceLocatorsUnsubscribe: []*discoveryv3.ResourceLocator{{Name: strings.Repeat("x", 1<<20)}}}}, want: codes.InvalidArgument, message: "a resource name of 1048576 bytes"},
		"a parameter of 1 MB":      {delta: locators(1, 1, strings.Repeat("x", 1<<20)), want: codes.InvalidArgument, message: "a dynamic parameter of 1048577 bytes"},
		"1,000 parameters":         {delta: locators(1, 1000, "x"), want: codes.InvalidArgument, message: "1000 dynamic parameters: 100 are allowed"},
		"1,000 sets of them":       {delta: locators(1000, 1, "x"), want: codes.ResourceExhausted, message: "more than 100 sets of dynamic parameters"},
		"a node of 1 MB":           {sotw: []*discoveryv3.DiscoveryRequest{{TypeUrl: cds, Node: &corev3.Node{Id: strings.Repeat("x", 1<<20)}}}, want: codes.InvalidArgument, message: "a node of"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, s.tcp, nil)
			if len(c.sotw)+len(c.delta) == 0 {
				conn = dial(t, impatient.tcp, nil)
			}
			var is *status.Status
			if c.delta == nil {
				bad := open(t, conn)
				for _, q := range c.sotw {
					if bad.Send(q) != nil {
						break // the stream has ended
					}
				}
				is = ends(t, bad)
			} else {
				bad := openDelta(t, conn)
				for _, q := range c.delta {
					if bad.Send(q) != nil {
						break
					}
				}
				is = ends(t, bad)
			}
			if is.Code() != c.want || !strings.Contains(is.Message(), c.message) || len(is.Message()) > 200 {
				t.Errorf("ends with %v: %.300s", is.Code(), is.Message())
			}
			soonAnswered(t, func() sotwStream { return open(t, conn) }) // on the same connection
		})
	}
	if s.follows(good, last); strings.Count(s.log.String(), "secrets are sent") != 1 {
		t.Errorf("log: %s", s.log)
	}
}

// pieces divides names among requests, a thousand names each.
func pieces(names []string, set func(*discoveryv3.DeltaDiscoveryRequest, []string)) (list []*discoveryv3.DeltaDiscoveryRequest) {
	for i := 0; i < len(names); i += 1000 {
		q := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL()}
		set(q, names[i:i+1000])
		list = append(list, q)
	}
	return list
}

// locators returns a request with n locators, each with other dynamic parameters, as a list.
func locators(n, parameters int, value string) []*discoveryv3.DeltaDiscoveryRequest {
	q := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL()}
	for i := range n {
		of := make(map[string]string)
		for j := range parameters {
			of[fmt.Sprint("key-", j)] = fmt.Sprint(value, i)
		}
		q.ResourceLocatorsSubscribe = append(q.ResourceLocatorsSubscribe, &discoveryv3.ResourceLocator{Name: "web", DynamicParameters: of})
	}
	return []*discoveryv3.DeltaDiscoveryRequest{q}
}

func ofTypes(names []string) (list []*discoveryv3.DiscoveryRequest) {
	for _, name := range names {
		list = append(list, &discoveryv3.DiscoveryRequest{TypeUrl: name})
	}
	return list
}

func deltaTypes(names []string) (list []*discoveryv3.DeltaDiscoveryRequest) {
	for _, name := range names {
		list = append(list, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: name})
	}
	return list
}

// TestIgnored checks that the stream survives requests that the server ignores.
func TestIgnored(t *testing.T) {
	s := run(t, serve.Options{})
	s.publish(strings.Replace(oneCluster, "]", `, {"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: layer}]`, 1))
	stream := open(t, dial(t, s.tcp, nil))
	answered(t, stream)
	for _, q := range []*discoveryv3.DiscoveryRequest{
		{TypeUrl: "type.googleapis.com/unknown"},
		{TypeUrl: "envoy.config.cluster.v3.Cluster"},
		{TypeUrl: xds.Endpoints.URL(), ResourceNames: []string{"xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/none/*"}, Node: &corev3.Node{Id: "another"}},
		{TypeUrl: xds.Cluster.URL(), ResponseNonce: "of nobody"},
		{TypeUrl: xds.Runtime.URL(), ResourceNames: []string{"layer"}},
	} {
		if err := stream.Send(q); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := stream.Recv(); err != nil || r.TypeUrl != xds.Runtime.URL() { // nothing must come before
		t.Errorf("is told %v, %v", r, err)
	}
}

// TestMalformed sends bytes that don't decode to a message.
func TestMalformed(t *testing.T) {
	s := run(t, serve.Options{})
	conn := dial(t, s.tcp, nil)
	stream, err := conn.NewStream(within(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources", grpc.ForceCodec(rawCodec{}))
	if err != nil {
		t.Fatal(err)
	}
	garbage := []byte("\xff\xff\xff\xff garbage")
	if err := stream.SendMsg(&garbage); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new([]byte)); status.Code(err) != codes.Internal {
		t.Errorf("ends with %v", err)
	}
}

// rawCodec is a codec that doesn't encode.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }
func (rawCodec) Name() string                    { return "proto" }

// TestHostileConnections connects clients that don't speak gRPC, while a good client follows the server.
func TestHostileConnections(t *testing.T) {
	s := run(t, serve.Options{Limits: serve.Limits{Handshake: 300 * time.Millisecond, Connections: 50, Header: 2000}})
	s.publish(oneCluster)
	// On a busy machine even a good client may need several handshakes.
	patient := grpc.WithDefaultCallOptions(grpc.WaitForReady(true))
	conn := dial(t, s.tcp, nil, patient)
	var good sotwStream
	last := soonAnswered(t, func() sotwStream { good = open(t, conn); return good })
	t.Run("bytes", func(t *testing.T) {
		for name, c := range map[string]struct {
			address, bytes string
		}{
			"HTTP/1":                 {s.tcp, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
			"garbage":                {s.tcp, strings.Repeat("garbage ", 100)},
			"silence":                {s.tcp, ""},
			"half a preface":         {s.tcp, "PRI * HTTP/2.0\r\n"},
			"no settings":            {s.tcp, http2.ClientPreface},
			"no frame":               {s.tcp, http2.ClientPreface + strings.Repeat("\xff", 100)},
			"TLS":                    {s.tcp, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
			"half a header":          {s.web, "GET /livez HTTP/1.1\r\nHost: "},
			"silence to HTTP":        {s.web, ""},
			"garbage to HTTP":        {s.web, "\x00\x01\x02\r\n\r\n"},
			"header of HTTP":         {s.web, "GET /livez HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("x", 10_000)},
			"half a body":            {s.web, "POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1"},
			"half a preface to HTTP": {s.web, "PRI * HTTP/2.0\r\n"},
			"no settings to HTTP":    {s.web, http2.ClientPreface},
			"no frame to HTTP":       {s.web, http2.ClientPreface + strings.Repeat("\xff", 100)},
			"silence to socket":      {"unix:" + s.socket, ""},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				conn := rawDial(t, c.address)
				_, _ = io.WriteString(conn, c.bytes) // the server may have closed the connection
				if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
					t.Error("the connection stays open")
				}
			})
		}
	})
	t.Run("flood", func(t *testing.T) {
		for range 200 {
			rawDial(t, s.tcp)
		}
		conn := dial(t, s.tcp, nil, patient)
		soonAnswered(t, func() sotwStream { return open(t, conn) })
	})
	s.follows(good, last)
}

// rawDial opens a TCP connection to an address.
func rawDial(t testing.TB, address string) net.Conn {
	t.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// h2 is an HTTP/2 client that sends arbitrary frames. Its writes are sent together at the next read, so that
// a server with short timeouts gets them even on a busy machine.
type h2 struct {
	*http2.Framer
	net.Conn
	out *bufio.Writer
}

func dialH2(t testing.TB, address string) h2 {
	t.Helper()
	conn := rawDial(t, address)
	out := bufio.NewWriterSize(conn, 64<<10)
	if _, err := out.WriteString(http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := h2{http2.NewFramer(out, conn), conn, out}
	c.Framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000}); err != nil {
		t.Fatal(err)
	}
	return c
}

// ReadFrame returns the next frame.
func (c h2) ReadFrame() (http2.Frame, error) {
	_ = c.out.Flush() // ReadFrame returns the reason
	return c.Framer.ReadFrame()
}

// frame returns the next frame of a type, and fails the test if the connection ends first.
func (c h2) frame(t testing.TB, want http2.FrameType) http2.Frame {
	t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if f.Header().Type == want {
			return f
		}
	}
}

func (c h2) request(t testing.TB, id uint32, path string, more ...hpack.HeaderField) {
	t.Helper()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range append([]hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path}, {Name: ":authority", Value: "a"}, {Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"}}, more...) {
		if err := e.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
}

const adsPath = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

// TestPings checks that a client that sends pings all the time loses its connection.
func TestPings(t *testing.T) {
	s := run(t, serve.Options{})
	c := dialH2(t, s.tcp)
	if err := c.out.Flush(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for pings := http2.NewFramer(c.Conn, nil); pings.WritePing(false, [8]byte{}) == nil; {
		}
	}()
	if f := c.frame(t, http2.FrameGoAway).(*http2.GoAwayFrame); f.ErrCode != http2.ErrCodeEnhanceYourCalm {
		t.Error(f)
	}
}

// TestHalfOpen checks that a client that doesn't answer pings loses its connection.
func TestHalfOpen(t *testing.T) {
	s := run(t, serve.Options{Limits: serve.Limits{Ping: time.Second, PingAnswer: 100 * time.Millisecond}})
	c := dialH2(t, s.tcp)
	c.request(t, 1, adsPath)
	for {
		if _, err := c.ReadFrame(); os.IsTimeout(err) { // ReadFrame doesn't answer pings
			t.Fatal("the connection stays open")
		} else if err != nil {
			return
		}
	}
}

// TestIdle checks that a connection without a stream gets GOAWAY.
func TestIdle(t *testing.T) {
	s := run(t, serve.Options{Limits: serve.Limits{Idle: 100 * time.Millisecond}})
	c := dialH2(t, s.tcp)
	c.frame(t, http2.FrameGoAway)
}

// TestHeaders checks that too large headers end their stream or their connection.
func TestHeaders(t *testing.T) {
	s := run(t, serve.Options{Limits: serve.Limits{Header: 2000}})
	c := dialH2(t, s.tcp)
	c.request(t, 1, adsPath, hpack.HeaderField{Name: "a", Value: strings.Repeat("x", 4000)})
	for {
		f, err := c.ReadFrame()
		if os.IsTimeout(err) {
			t.Fatal("nothing happens")
		}
		if err != nil || f.Header().Type == http2.FrameRSTStream {
			return
		}
	}
}

// TestStreams checks that the server refuses too many streams, and that HTTP/2 delays too many streams of a
// connection.
func TestStreams(t *testing.T) {
	s := run(t, serve.Options{Limits: serve.Limits{Streams: 3, ConnectionStreams: 2}})
	s.publish(oneCluster)
	conn := dial(t, s.tcp, nil)
	answered(t, open(t, conn))
	answered(t, open(t, conn))
	waits, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if third, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(waits); err == nil {
		if _, err = third.Recv(); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("the third stream of a connection: %v", err)
		}
	}
	other := dial(t, s.tcp, nil)
	answered(t, open(t, other))
	if is := ends(t, open(t, other)); is.Code() != codes.ResourceExhausted {
		t.Errorf("the fourth stream: %v", is)
	}
}

// TestNeverReads checks that a client that doesn't read loses its connection, while other clients get their
// changes.
func TestNeverReads(t *testing.T) {
	s := run(t, serve.Options{Limits: serve.Limits{Send: 500 * time.Millisecond}})
	var big strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&big, "- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: cluster-%d, connect_timeout: 1s, alt_stat_name: %s}\n", i, strings.Repeat("x", 1000))
	}
	s.publish(big.String())
	for _, path := range []string{adsPath, strings.Replace(adsPath, "/Stream", "/Delta", 1)} {
		c := dialH2(t, s.tcp)
		c.request(t, 1, path)
		request := "\x1a" // type_url of a delta request is field 2, of the other 4
		if url := xds.Cluster.URL(); strings.Contains(path, "Delta") {
			request = "\x12" + string(rune(len(url))) + url
		} else {
			request = "\x22" + string(rune(len(url))) + url
		}
		if err := c.WriteData(1, false, append([]byte{0, 0, 0, 0, byte(len(request))}, request...)); err != nil {
			t.Fatal(err)
		}
		for {
			f, err := c.ReadFrame()
			if os.IsTimeout(err) {
				t.Fatalf("%s: the connection stays open", path)
			}
			if err != nil {
				break
			}
			if p, ok := f.(*http2.PingFrame); ok && !p.IsAck() { // the client answers pings, and gives no flow-control window
				_ = c.WritePing(true, p.Data)
			}
		}
		other := dial(t, s.tcp, nil)
		if n := len(soonAnswered(t, func() sotwStream { return open(t, other) }).Resources); n != 5000 {
			t.Errorf("the other is told %d clusters", n)
		}
	}
	if !strings.Contains(s.log.String(), "has not read a response") {
		t.Error(s.log)
	}
}

// TestSecretsInListeners checks that a listener with a private key is sent over a Unix socket, and ends a
// stream over plain TCP with a status.
func TestSecretsInListeners(t *testing.T) {
	s := run(t, serve.Options{})
	s.publish(`[{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: in, filter_chains: [{transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: {tls_certificates: [{private_key: {inline_string: the-key}}]}}}}]}]`)
	for _, address := range []string{s.tcp, "unix:" + s.socket} {
		conn := dial(t, address, nil)
		sotw, delta := open(t, conn), openDelta(t, conn)
		if err := sotw.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Listener.URL()}); err != nil {
			t.Fatal(err)
		}
		if err := delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Listener.URL()}); err != nil {
			t.Fatal(err)
		}
		a, errA := sotw.Recv()
		b, errB := delta.Recv()
		if address != s.tcp {
			if errA != nil || errB != nil || len(a.Resources) != 1 || len(b.Resources) != 1 {
				t.Errorf("by a Unix socket: %v, %v", errA, errB)
			}
			continue
		}
		for _, err := range []error{errA, errB} {
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "only over TLS or a Unix socket") {
				t.Errorf("by TCP: %v", err)
			}
		}
	}
	if log := s.log.String(); strings.Contains(log, "the-key") || strings.Count(log, "event=client-refused") != 1 {
		t.Error(log)
	}
}

// TestHealthIsReadiness checks that the gRPC health service and /readyz say the same in each state of the server and of
// its watch.
func TestHealthIsReadiness(t *testing.T) {
	s := run(t, serve.Options{})
	health := grpc_health_v1.NewHealthClient(dial(t, s.tcp, nil))
	says := func(state string, ready bool) {
		t.Helper()
		want, code := grpc_health_v1.HealthCheckResponse_NOT_SERVING, http.StatusServiceUnavailable
		if ready {
			want, code = grpc_health_v1.HealthCheckResponse_SERVING, http.StatusOK
		}
		for _, service := range []string{"", "envoy.service.discovery.v3.AggregatedDiscoveryService"} {
			if r, err := health.Check(within(t), &grpc_health_v1.HealthCheckRequest{Service: service}); err != nil || r.Status != want {
				t.Errorf("%s: gRPC health of %q is %v, %v; want %v", state, service, r, err, want)
			}
		}
		if is := get(t, "http://"+s.web+"/readyz"); is != code {
			t.Errorf("%s: /readyz is %d, want %d", state, is, code)
		}
	}
	out := control.Watch{Snapshot: "v0123456789abcde", Acknowledged: true}
	says("clients get nothing", false)
	s.tell(control.Watch{})
	s.publish(oneCluster)
	says("nothing is published", false)
	s.tell(control.Watch{Snapshot: out.Snapshot, Unconfirmed: "0 of 2 clients"})
	says("the first snapshot is not acknowledged", false)
	s.tell(out)
	says("acknowledged", true)
	unconfirmed, invalid, failed := out, out, out
	unconfirmed.Unconfirmed, invalid.Refused, failed.Failed = "1 of 2 clients", &control.Refusal{Errors: 1}, "no permission"
	for state, w := range map[string]control.Watch{"a later snapshot is not acknowledged": unconfirmed, "invalid": invalid, "failed": failed} {
		s.tell(w)
		says(state, true)
	}
}

// TestDrain checks that a Server that ends changes its health, and ends all streams with a status. A client
// that hangs in its handshake must not delay the end.
func TestDrain(t *testing.T) {
	s := run(t, serve.Options{})
	conn := dial(t, s.tcp, nil)
	health := grpc_health_v1.NewHealthClient(conn)
	watch, err := health.Watch(within(t), &grpc_health_v1.HealthCheckRequest{Service: "envoy.service.discovery.v3.AggregatedDiscoveryService"})
	if err != nil {
		t.Fatal(err)
	}
	told := func(want grpc_health_v1.HealthCheckResponse_ServingStatus, ready int) {
		t.Helper()
		r, err := watch.Recv()
		if err != nil || r.Status != want {
			t.Fatal(r, err)
		}
		if is := get(t, "http://"+s.web+"/readyz"); is != ready {
			t.Errorf("ready: %d", is)
		}
	}
	told(grpc_health_v1.HealthCheckResponse_NOT_SERVING, 503)
	if is := get(t, "http://"+s.web+"/livez"); is != 200 {
		t.Errorf("healthy: %d", is)
	}
	s.publish(oneCluster)
	told(grpc_health_v1.HealthCheckResponse_SERVING, 200)

	stream := open(t, conn)
	answered(t, stream)
	raw := rawDial(t, s.tcp) // a half-open connection
	stopped := time.Now()
	s.stop()
	// A stream that is still open after a second ends with its connection.
	if is := ends(t, stream); is.Code() != codes.Unavailable || is.Message() != "the server ends" && time.Since(stopped) < time.Second {
		t.Error(is)
	}
	if _, err := io.Copy(io.Discard, raw); os.IsTimeout(err) {
		t.Error("a connection stays open")
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended <- nil
	if _, err := os.Lstat(s.socket); !os.IsNotExist(err) {
		t.Errorf("the socket: %v", err)
	}
	conn.WaitForStateChange(within(t), connectivity.Ready)
}

func get(t testing.TB, url string) int {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	return r.StatusCode
}

// TestReflection checks that gRPC reflection lists the services, for tools such as grpcurl.
func TestReflection(t *testing.T) {
	s := run(t, serve.Options{})
	r, err := grpc_reflection_v1.NewServerReflectionClient(dial(t, s.tcp, nil)).ServerReflectionInfo(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := r.Recv()
	if err != nil || !strings.Contains(answer.String(), "envoy.service.discovery.v3.AggregatedDiscoveryService") {
		t.Error(answer, err)
	}
}

// TestMetrics checks that no text from a client becomes a label.
func TestMetrics(t *testing.T) {
	s := run(t, serve.Options{})
	s.publish(oneCluster)
	stream := open(t, dial(t, s.tcp, nil))
	r := answered(t, stream)
	for _, q := range []*discoveryv3.DiscoveryRequest{
		{TypeUrl: "type.googleapis.com/mine"}, {TypeUrl: "type.googleapis.com/yours"},
		{TypeUrl: xds.Cluster.URL(), ResponseNonce: r.Nonce, ErrorDetail: status.New(codes.Internal, "no").Proto()},
		{TypeUrl: xds.Secret.URL()},
	} {
		if err := stream.Send(q); err != nil {
			t.Fatal(err)
		}
	}
	ends(t, stream)
	byREST, err := http.Post("http://"+s.web+"/v3/discovery:clusters", "application/json", strings.NewReader(`{"node": {"id": "mine"}}`))
	if err != nil {
		t.Fatal(err)
	}
	sent, err := io.Copy(io.Discard, byREST.Body)
	if err != nil || byREST.StatusCode != http.StatusOK {
		t.Error(byREST.Status, err)
	}
	byREST.Body.Close()
	resp, err := http.Get("http://" + s.web + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`xdspub_requests_total{type="CDS"} 3`, `xdspub_requests_total{type="unknown"} 2`, `xdspub_rejections_total{type="CDS"} 1`, `xdspub_responses_total{type="CDS"} 2`,
		fmt.Sprintf(`xdspub_response_bytes_total{type="CDS"} %d`, int64(proto.Size(r))+sent), `xdspub_rejections_total{type="LDS"} 0`,
		`xdspub_streams_ended_total{code="PermissionDenied"} 1`, "xdspub_connections 2", "xdspub_streams 0", "xdspub_snapshot_time_seconds 1", "xdspub_publish_seconds_count 1", "go_goroutines",
	} {
		if !strings.Contains(string(body), "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(string(body), "good") || strings.Contains(string(body), "mine") {
		t.Error("what a client sends is a label")
	}
	if t.Failed() {
		t.Log(string(body))
	}
}
