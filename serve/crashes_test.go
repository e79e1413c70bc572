package serve_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"xdspub/event"
	"xdspub/observe"
	"xdspub/serve"
	"xdspub/tools/envoytest"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// faultyServer is a server whose clients can't be listed.
type faultyServer struct{ *serve.Server }

func (faultyServer) Clients() []clients.Client { panic("the list is faulty") }

// TestCrashes checks that a panic of an HTTP handler, of a collector of metrics or of a gRPC handler ends its request
// alone, and is logged.
func TestCrashes(t *testing.T) {
	log := new(syncBuffer)
	refused := func(r event.Record) {
		if _, ok := r.Event.(event.ClientRefused); ok {
			panic("the sink is faulty")
		}
	}
	observer := observe.New(observe.Options{})
	observer.Tell("", control.Watch{Snapshot: "v0123456789abcde", Acknowledged: true})
	shown := observer.Handler()
	address, web := fmt.Sprint("127.0.0.1:", envoytest.FreePort(t)), fmt.Sprint("127.0.0.1:", envoytest.FreePort(t))
	s, err := serve.Listen(t.Context(), serve.Options{
		GRPC: []string{address}, HTTP: []string{web}, Log: event.New(slog.NewTextHandler(log, nil), refused), Limits: serve.Limits{NameLength: 100}, ClientMemory: 8 << 20,
		DrainTime: time.Millisecond, Registry: observer.Registry(),
		Operations: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/at-once":
				panic("the handler is faulty")
			case "/later":
				_, _ = io.WriteString(w, strings.Repeat("begun ", 1000))
				panic("the handler is faulty later")
			}
			shown.ServeHTTP(w, r)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	observer.Observe(faultyServer{s})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := s.Publish(t.Context(), parse(t, oneCluster)); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, address, nil)
	good := open(t, conn)
	last := answered(t, good)

	get := func(path string) (int, string, error) {
		r, err := http.Get("http://" + web + path)
		if err != nil {
			return 0, "", err
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		return r.StatusCode, string(body), err
	}
	logged := func(text string) {
		t.Helper()
		envoytest.Eventually(t, 20*time.Second, "the log has "+text, func() (bool, string) { return strings.Contains(log.String(), text), log.String() })
	}
	for range 3 {
		if code, body, err := get("/at-once"); code != 500 || err != nil || body != "an internal error of xdspub; the log of the server has more\n" {
			t.Errorf("a handler that panics: %d %q %v", code, body, err)
		}
	}
	logged(`event=internal-error error="internal error: the handler is faulty, while answering an HTTP request" stack="xdspub/serve_test.TestCrashes.func`)
	if n := strings.Count(log.String(), "event=internal-error"); n != 1 {
		t.Errorf("%d events about the same panic", n)
	}
	if _, body, err := get("/later"); err == nil {
		t.Errorf("a handler that panics during its answer: %d bytes", len(body))
	}
	logged("the handler is faulty later")
	if code, body, err := get("/metrics"); code != 500 || err != nil {
		t.Errorf("a collector that panics: %d %q %v", code, body, err)
	}
	logged(`error="internal error: the list is faulty, while answering an HTTP request" stack="xdspub/serve_test.faultyServer.Clients(`)
	if code, _, err := get("/livez"); code != 200 || err != nil {
		t.Errorf("the server after a panic: %d %v", code, err)
	}

	// Both requests write the event at which the sink panics: a name that is too long, in the handler; a request
	// that takes too much memory, on the goroutine that reads the connection.
	long := open(t, conn)
	if err := long.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceNames: []string{strings.Repeat("x", 1000)}}); err != nil {
		t.Fatal(err)
	}
	large := open(t, dial(t, address, nil))
	if err := large.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceNames: slices.Repeat([]string{"x"}, 1<<20)}); err != nil {
		t.Fatal(err)
	}
	if is := ends(t, long); is.Code() != codes.Internal || is.Message() != "an internal error of xdspub; the log of the server has more" {
		t.Errorf("a panic while handling a request: %v", is)
	}
	if is := ends(t, large); is.Code() != codes.Unavailable {
		t.Errorf("a panic while reading a connection: %v", is)
	}
	logged("the sink is faulty, while serving a gRPC stream")
	logged("the sink is faulty, while reading a gRPC connection")
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Errorf("another request on the connection: %v", status.Convert(err))
	}
	if err := good.Send(&discoveryv3.DiscoveryRequest{TypeUrl: last.TypeUrl, ResponseNonce: last.Nonce, VersionInfo: last.VersionInfo}); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(t.Context(), parse(t, strings.ReplaceAll(oneCluster, "web", "api"))); err != nil {
		t.Fatal(err)
	}
	if r, err := good.Recv(); err != nil || r.VersionInfo == last.VersionInfo {
		t.Errorf("another stream on the connection gets %v, %v", r, err)
	}
}
