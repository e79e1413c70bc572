package serve_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/serve"
	"xdspub/serve/admit"
	"xdspub/serve/csds"
	"xdspub/tools/envoytest"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// followed are the Aggregates of a Server. Each serves a Snapshot with one cluster, which has the name of the cluster
// of the nodes.
type followed struct {
	t       *testing.T
	mu      sync.Mutex
	started []string // the nodes
	ended   []string
	all     map[string]*serve.Aggregate // by node
}

// options returns the options of a Server with an Aggregate for each value of some fields.
func (f *followed) options(t *testing.T, by ...admit.NodeField) serve.Options {
	f.t, f.all = t, make(map[string]*serve.Aggregate)
	return serve.Options{AggregateBy: by, Node: &corev3.Node{Id: "relay", Cluster: "own"}, Follow: f.follow}
}

func (f *followed) follow(ctx context.Context, a *serve.Aggregate) {
	f.mu.Lock()
	f.started, f.all[a.String()] = append(f.started, a.String()), a
	f.mu.Unlock()
	if name := a.Node().GetCluster(); name != "silent" {
		a.Tell(control.Watch{Snapshot: "v1", Acknowledged: true}) // first, since a client that has the Snapshot may Tell, too
		if err := a.Publish(ctx, parse(f.t, strings.ReplaceAll(oneCluster, "web", "of-"+name))); err != nil && ctx.Err() == nil {
			f.t.Error(err)
		}
	}
	<-ctx.Done()
	f.mu.Lock()
	f.ended = append(f.ended, a.String())
	f.mu.Unlock()
}

// list returns the nodes of the Aggregates that have started, or ended.
func (f *followed) list(of *[]string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(*of))
}

// aggregate returns the last Aggregate of a node.
func (f *followed) aggregate(node string) *serve.Aggregate {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[node]
}

// clustersFor asks for clusters as a node, and returns the stream and the names of the clusters.
func clustersFor(t *testing.T, conn *grpc.ClientConn, node *corev3.Node) (sotwStream, []string, error) {
	t.Helper()
	s := open(t, conn)
	if err := s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), Node: node}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Recv()
	return s, clusterNames(t, r.GetResources()), err
}

func clusterNames(t *testing.T, list []*anypb.Any) (names []string) {
	t.Helper()
	for _, a := range list {
		var c clusterv3.Cluster
		if err := a.UnmarshalTo(&c); err != nil {
			t.Fatal(err)
		}
		names = append(names, c.Name)
	}
	return names
}

func nodeOf(id, cluster string) *corev3.Node { return &corev3.Node{Id: id, Cluster: cluster} }

// TestAggregates checks that clients with equal fields share an Aggregate, also by REST and by delta, and that a client
// stays where its first node has brought it.
func TestAggregates(t *testing.T) {
	f := new(followed)
	s := run(t, f.options(t, "cluster"))
	s.publish(strings.ReplaceAll(oneCluster, "web", "of-own"))
	conn := dial(t, s.tcp, nil)
	for _, n := range []*corev3.Node{nodeOf("a", "web"), nodeOf("b", "web"), nodeOf("c", "api"), nodeOf("d", "own"), {Id: "e"}} {
		_, names, err := clustersFor(t, conn, n)
		if want := []string{"of-" + n.Cluster}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%v gets %v, not %v: %v", n, names, want, err)
		}
	}
	if got := f.list(&f.started); !slices.Equal(got, []string{"cluster=", "cluster=api", "cluster=web"}) {
		t.Errorf("Aggregates of %q", got)
	}
	body := strings.NewReader(`{"node": {"id": "f", "cluster": "api"}}`)
	response, err := http.Post("http://"+s.web+"/v3/discovery:clusters", "application/json", body)
	if text := textOfResponse(t, response, err); !strings.Contains(text, "of-api") {
		t.Errorf("by REST: %s", text)
	}
	delta := openDelta(t, conn)
	for _, n := range []*corev3.Node{nodeOf("g", "web"), nodeOf("g", "api")} { // later nodes of a stream do not count
		if err := delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), Node: n}); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := delta.Recv(); err != nil || len(r.Resources) != 1 || r.Resources[0].Name != "of-web" {
		t.Errorf("by delta: %v, %v", r, err)
	}
	if got := f.list(&f.started); len(got) != 3 {
		t.Errorf("Aggregates of %q", got)
	}
	answer, err := csds.Ask(t.Context(), "unix:"+s.socket, nil)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, a := range answer.Server.Aggregates {
		told = append(told, fmt.Sprintf("%s %s %d %s", a.Name, a.Node, a.Clients, a.Snapshot))
	}
	if want := []string{"aggregate-1 cluster=web 3 v1", "aggregate-2 cluster=api 2 v1", "aggregate-3 cluster= 1 v1"}; !slices.Equal(told, want) || len(answer.Clients) != 7 {
		t.Errorf("the status has %q and %d clients", told, len(answer.Clients))
	}
	response, err = http.Get("http://" + s.web + "/metrics")
	if text := textOfResponse(t, response, err); !strings.Contains(text, "\nxdspub_aggregates 3\n") {
		t.Error(text)
	}
}

func textOfResponse(t *testing.T, r *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAggregateRefusals sends what makes no Aggregate: no node, and more nodes than allowed. A client of an Aggregate
// without a Snapshot waits, and other clients do not.
func TestAggregateRefusals(t *testing.T) {
	f := new(followed)
	o := f.options(t, "cluster", "metadata.env")
	o.Limits.Aggregates = 2
	s := run(t, o)
	s.publish(oneCluster)
	conn := dial(t, s.tcp, nil)
	if _, _, err := clustersFor(t, conn, nil); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "--aggregate-by") {
		t.Errorf("without a node: %v", err)
	}
	waits := open(t, conn)
	if err := waits.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), Node: nodeOf("a", "silent")}); err != nil {
		t.Fatal(err)
	}
	envoytest.Eventually(t, patience, "an Aggregate starts", func() (bool, string) { return len(f.list(&f.started)) == 1, "" })
	if _, names, err := clustersFor(t, conn, nodeOf("a", "web")); err != nil || names[0] != "of-web" {
		t.Errorf("beside a silent control plane: %v, %v", names, err)
	}
	for i := range 10 {
		if _, _, err := clustersFor(t, conn, nodeOf("a", fmt.Sprint(i))); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "--limit aggregates") {
			t.Fatalf("one more node: %v", err)
		}
	}
	if _, names, err := clustersFor(t, conn, nodeOf("b", "web")); err != nil || names[0] != "of-web" {
		t.Errorf("a known node: %v, %v", names, err)
	}
	if got := f.list(&f.started); len(got) != 2 {
		t.Errorf("Aggregates of %q", got)
	}
	if n := strings.Count(s.log.String(), "event=client-refused"); n != 2 {
		t.Errorf("%d refusals in the log:\n%s", n, s.log)
	}
}

// TestAggregatePlaces takes all places from one address. A client of another address gets a place, and so does a client
// of the Unix socket. The streams of displaced Aggregates end. A client displaces nothing if it has closed its streams,
// if it has been displaced, or if it owns half as many Aggregates. No client displaces an Aggregate with the last valid
// Snapshot of a source that is gone.
func TestAggregatePlaces(t *testing.T) {
	f := new(followed)
	o := f.options(t, "cluster")
	o.Limits.Aggregates = 4
	s := run(t, o)
	s.publish(oneCluster)
	many, local := dial(t, s.tcp, nil), dial(t, "unix:"+s.socket, nil)
	few := dial(t, s.tcp, nil, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext(ctx, "tcp", address)
	}))
	streams := make(map[string]sotwStream)
	gets := func(conn *grpc.ClientConn, cluster string, want codes.Code) {
		t.Helper()
		stream, names, err := clustersFor(t, conn, nodeOf("a", cluster))
		if status.Code(err) != want || err == nil && !slices.Equal(names, []string{"of-" + cluster}) {
			t.Fatalf("%s gets %v, %v", cluster, names, err)
		}
		streams[cluster] = stream
	}
	loses := func(cluster string) {
		t.Helper()
		if _, err := streams[cluster].Recv(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "lost its place") {
			t.Errorf("the stream of %s ends with %v", cluster, err)
		}
		envoytest.Eventually(t, patience, cluster+" ends", func() (bool, string) {
			return slices.Contains(f.list(&f.ended), "cluster="+cluster), s.log.String()
		})
	}
	for _, cluster := range []string{"a", "b", "c", "d"} {
		gets(many, cluster, codes.OK)
	}
	gets(many, "e", codes.ResourceExhausted)
	gets(few, "web", codes.OK)
	loses("d")
	gets(many, "d", codes.ResourceExhausted)
	gets(few, "api", codes.ResourceExhausted)
	if err := streams["a"].CloseSend(); err != nil {
		t.Fatal(err)
	}
	envoytest.Eventually(t, patience, "a has no client", func() (bool, string) {
		return !slices.ContainsFunc(f.aggregate("cluster=a").Clients(), func(c clients.Client) bool { return c.Gone.IsZero() }), ""
	})
	gets(many, "e", codes.ResourceExhausted)
	gets(local, "one", codes.OK)
	envoytest.Eventually(t, patience, "a ends", func() (bool, string) { return slices.Contains(f.list(&f.ended), "cluster=a"), s.log.String() })
	gets(local, "two", codes.OK)
	loses("c")
	for _, cluster := range []string{"b", "web"} {
		f.aggregate("cluster=" + cluster).Tell(control.Watch{Snapshot: "v1", Upstream: &control.Upstream{}})
	}
	gets(local, "three", codes.ResourceExhausted)
	if got := f.list(&f.ended); !slices.Equal(got, []string{"cluster=a", "cluster=c", "cluster=d"}) {
		t.Errorf("%q have ended", got)
	}
	for _, want := range []string{"event=aggregate-displaced target=aggregate-4 node=cluster=d clients=1", "node=cluster=a clients=0"} {
		if !strings.Contains(strings.ReplaceAll(s.log.String(), `"`, ""), want) {
			t.Errorf("the log lacks %s:\n%s", want, s.log)
		}
	}
}

// TestAggregateEnds checks that an Aggregate without clients ends, unless it has the last valid Snapshot of a source
// that is gone or invalid, and that its name becomes free.
func TestAggregateEnds(t *testing.T) {
	f := new(followed)
	o := f.options(t, "cluster")
	o.Limits.AggregateIdle, o.Limits.Aggregates = 20*time.Millisecond, 3
	s := run(t, o)
	s.publish(oneCluster)
	if _, _, err := clustersFor(t, dial(t, s.tcp, nil), nodeOf("a", "stays")); err != nil {
		t.Fatal(err)
	}
	// others waits until two other Aggregates have come and ended, one after the other: meanwhile, the time without
	// clients of an earlier Aggregate has ended, too.
	others := func() {
		for _, cluster := range []string{"first", "second"} {
			before := len(f.list(&f.ended))
			conn := dial(t, s.tcp, nil)
			if _, _, err := clustersFor(t, conn, nodeOf("a", cluster)); err != nil {
				t.Fatal(err)
			}
			conn.Close()
			envoytest.Eventually(t, patience, cluster+" ends", func() (bool, string) { return len(f.list(&f.ended)) > before, s.log.String() })
		}
	}
	web := func() (n int) {
		for _, node := range f.list(&f.ended) {
			if node == "cluster=web" {
				n++
			}
		}
		return n
	}
	for n, gone := range []control.Watch{
		{Snapshot: "v1", Upstream: &control.Upstream{}},
		{Snapshot: "v1", Upstream: &control.Upstream{Connected: true}, Refused: &control.Refusal{Errors: 1}},
	} {
		client := func() (leave func()) {
			conn := dial(t, s.tcp, nil)
			if _, names, err := clustersFor(t, conn, nodeOf("a", "web")); err != nil || names[0] != "of-web" {
				t.Errorf("the client gets %v, %v", names, err)
			}
			return func() { conn.Close() }
		}
		leave := client()
		a := f.aggregate("cluster=web")
		a.Tell(gone)
		leave()
		others()
		leave = client()
		if web() != n || f.aggregate("cluster=web") != a {
			t.Errorf("%q have ended", f.list(&f.ended))
		}
		a.Tell(control.Watch{Snapshot: "v1", Upstream: &control.Upstream{Connected: true}})
		leave()
		envoytest.Eventually(t, patience, "the Aggregate ends", func() (bool, string) { return web() == n+1, s.log.String() })
	}
	if got := f.list(&f.ended); slices.Contains(got, "cluster=stays") {
		t.Errorf("%q have ended", got)
	}
	if got := strings.Count(s.log.String(), "event=aggregate-retired target=aggregate-2 "); got != 2 {
		t.Errorf("the log:\n%s", s.log)
	}
}

// TestAggregateEndsOnce checks that an Aggregate ends once if clients come and go while its time without clients ends.
func TestAggregateEndsOnce(t *testing.T) {
	f := new(followed)
	o := f.options(t, "cluster")
	o.Limits.AggregateIdle = time.Microsecond
	s := run(t, o)
	s.publish(oneCluster)
	var requests sync.WaitGroup
	for range 8 {
		requests.Go(func() {
			for range 50 {
				r, err := http.Post("http://"+s.web+"/v3/discovery:clusters", "application/json", strings.NewReader(`{"node": {"id": "a", "cluster": "web"}}`))
				textOfResponse(t, r, err)
			}
		})
	}
	requests.Wait()
	envoytest.Eventually(t, patience, "each Aggregate ends once", func() (bool, string) {
		log := s.log.String()
		started, retired := strings.Count(log, "event=aggregate-started "), strings.Count(log, "event=aggregate-retired ")
		return started > 0 && started == retired, fmt.Sprintf("%d started, %d ends in the log", started, retired)
	})
}

// TestAggregateSecrets checks that a client gets a secret of an Aggregate only if its certificate shows its node id,
// and the id is a field of the Aggregate.
func TestAggregateSecrets(t *testing.T) {
	for _, tt := range []struct {
		by   []admit.NodeField
		want codes.Code
	}{{[]admit.NodeField{"cluster"}, codes.PermissionDenied}, {[]admit.NodeField{"id", "cluster"}, codes.OK}} {
		s := runSecured(t, func(o *serve.Options) {
			o.AggregateBy, o.Node = tt.by, &corev3.Node{Id: "relay"}
			o.Follow = func(ctx context.Context, a *serve.Aggregate) {
				if err := a.Publish(ctx, parse(t, oneOfEach)); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				<-ctx.Done()
			}
		})
		for address, want := range map[string]codes.Code{s.tcp: tt.want, "unix:" + s.socket: codes.OK} {
			var config *tls.Config
			if address == s.tcp {
				config = s.config(t, s.ca, "spiffe://test/edge-1")
			}
			stream := open(t, dial(t, address, config))
			if err := stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Secret.URL(), ResourceNames: []string{"key"}, Node: nodeOf("edge-1", "web")}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); status.Code(err) != want {
				t.Errorf("by %v, at %s: %v", tt.by, address, err)
			}
		}
	}
}
