package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	extensionservice "github.com/envoyproxy/go-control-plane/envoy/service/extension/v3"
	listenerservice "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routeservice "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	runtimeservice "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	secretservice "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/grpcdial"
	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/xds"
)

// controlPlane is the server of go-control-plane with its cache of Snapshots.
type controlPlane struct {
	t      *testing.T
	cache  cachev3.SnapshotCache
	server serverv3.Server
	n      int

	mu       sync.Mutex
	hears    hearing
	requests []heard
}

func newControlPlane(t *testing.T) *controlPlane {
	return newControlPlaneOf(t, cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil))
}

func newControlPlaneOf(t *testing.T, cache cachev3.SnapshotCache) *controlPlane {
	c := &controlPlane{t: t, cache: cache, hears: make(hearing)}
	c.server = serverv3.NewServer(t.Context(), c.cache, serverv3.CallbackFuncs{
		StreamDeltaRequestFunc: func(_ int64, r *discoveryv3.DeltaDiscoveryRequest) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.requests = append(c.requests, c.hears.delta(r))
			return nil
		},
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.requests = append(c.requests, c.hears.whole(r))
			return nil
		},
	})
	return c
}

// listen serves the control plane by all transports.
func (c *controlPlane) listen(address string, options ...grpc.ServerOption) (at string, stop func()) {
	c.t.Helper()
	g := grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, c.server)
	clusterservice.RegisterClusterDiscoveryServiceServer(g, c.server)
	endpointservice.RegisterEndpointDiscoveryServiceServer(g, c.server)
	extensionservice.RegisterExtensionConfigDiscoveryServiceServer(g, c.server)
	listenerservice.RegisterListenerDiscoveryServiceServer(g, c.server)
	routeservice.RegisterRouteDiscoveryServiceServer(g, c.server)
	secretservice.RegisterSecretDiscoveryServiceServer(g, c.server)
	runtimeservice.RegisterRuntimeDiscoveryServiceServer(g, c.server)
	return listen(c.t, address, g)
}

// set publishes a Snapshot: clusters with the names, a listener with a secret, and routes.
func (c *controlPlane) set(clusters ...string) {
	c.t.Helper()
	all := map[resource.Type][]types.Resource{
		resource.ListenerType: {listener("l", "r", "s")}, resource.RouteType: {routes("r")},
		resource.SecretType:  {&tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: &corev3.DataSource{}}}}},
		resource.RuntimeType: {&runtimeservice.Runtime{Name: "rtds"}},
	}
	for _, name := range clusters {
		all[resource.ClusterType] = append(all[resource.ClusterType], edsCluster(name))
		all[resource.EndpointType] = append(all[resource.EndpointType], endpoints(name))
	}
	c.setAll(all)
}

// answers returns the ACKs, and the words of the NACKs, of a type.
func (c *controlPlane) answers(t *xds.Type) (acks int, nacks []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		switch {
		case r.of != t || r.nonce == "":
		case r.reason == "":
			acks++
		default:
			nacks = append(nacks, r.reason)
		}
	}
	return acks, nacks
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.After(20 * time.Second); !is(); {
		select {
		case <-late:
			t.Fatalf("it does not happen that %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func has(want ...string) func(load.Contents) bool {
	return func(c load.Contents) bool {
		is := keys(c)
		slices.Sort(is)
		slices.Sort(want)
		return slices.Equal(is, want)
	}
}

var world1 = []string{"CDS/web", "EDS/web", "LDS/l", "RDS/r", "RTDS/rtds", "SDS/s"}

// TestGoControlPlane follows the server of go-control-plane: names as the resources refer to them, ACKs and NACKs.
func TestGoControlPlane(t *testing.T) {
	overEach(t, testGoControlPlane)
}

func testGoControlPlane(t *testing.T, by Transport) {
	c := newControlPlane(t)
	c.set("web")
	at, _ := c.listen(socketOf(t))
	f := followed(t, by, nil, at)
	first := f.wait(true, has(slices.Clone(world1)...))
	f.Judged(load.Judgement{N: first.N, Accepted: true})
	for _, of := range []*xds.Type{xds.Cluster, xds.Endpoints, xds.Listener, xds.RouteConfiguration, xds.Secret, xds.Runtime} {
		eventually(t, of.API+" is acknowledged", func() bool { acks, nacks := c.answers(of); return acks > 0 && nacks == nil })
	}
	if n := c.requests[0].node; n.GetId() != "a" || n.GetCluster() != "b" {
		t.Errorf("the node is %v", n)
	}
	if s := f.State(); !s.Connected || s.Server != at {
		t.Errorf("%+v", s)
	}

	c.set("web", "api")
	next := f.wait(true, has(append([]string{"CDS/api", "EDS/api"}, world1...)...))
	for _, file := range first.Files {
		if !slices.Contains(next.Files, file) {
			t.Errorf("%s is another file, and has not changed", file.Source.Name)
		}
	}
	f.Judged(load.Judgement{N: next.N, Findings: diag.List{{
		Code: "a-rule", Message: "it is wrong", Resource: diag.Resource{Type: xds.Cluster.URL(), Name: "api"},
	}}})
	eventually(t, "the NACK names the cluster", func() bool {
		_, nacks := c.answers(xds.Cluster)
		return slices.Equal(slices.Compact(nacks), []string{"api: it is wrong [a-rule]"})
	})

	c.set("api")
	last := f.wait(true, has("CDS/api", "EDS/api", "LDS/l", "RDS/r", "RTDS/rtds", "SDS/s"))
	f.Judged(load.Judgement{N: last.N, Accepted: true}) // by state of the world, the ACK has the names
	eventually(t, "the client unsubscribes from the endpoints", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.requests, func(r heard) bool {
			return slices.Contains(r.unsubscribe, "web")
		})
	})
}

// TestGone kills the control plane: the contents stay, the state says since when, and the next server is followed.
func TestGone(t *testing.T) {
	overEach(t, testGone)
}

func testGone(t *testing.T, by Transport) {
	c := newControlPlane(t)
	c.set("web")
	socket := socketOf(t)
	at, stop := c.listen(socket)
	f := followed(t, by, nil, at)
	first := f.wait(true, has(slices.Clone(world1)...))
	stop()
	eventually(t, "the state says so", func() bool { s := f.State(); return !s.Connected && strings.Contains(s.Error, at) })
	if c, err := f.Read(t.Context()); err != nil || c.N != first.N {
		t.Fatalf("%v %v", c.N, err)
	}
	c = newControlPlane(t)
	c.set("web", "api")
	c.listen(socket)
	next := f.wait(true, func(c load.Contents) bool { return len(c.Files) == 8 })
	for _, file := range first.Files {
		if !slices.Contains(next.Files, file) {
			t.Errorf("%s is another file, and has not changed", file.Source.Name)
		}
	}
}

// TestTLS follows a control plane by TLS with client certificates, and names what is wrong with certificates.
func TestTLS(t *testing.T) {
	authority := certs.NewAuthority(t)
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := authority.Sign(2, "plane")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	c := newControlPlane(t)
	c.set("web")
	secured := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, MinVersion: tls.VersionTLS13})
	at, _ := c.listen("tcp", grpc.Creds(secured))
	cert, key = authority.Sign(3, "edge")
	with := func(files grpcdial.Files) func(*Upstream) {
		return func(u *Upstream) { u.options.Servers[0].TLS = &files }
	}
	good := grpcdial.Files{CA: file("ca", authority.PEM()), Cert: file("cert", cert), Key: file("key", key), ServerName: "plane"}
	followed(t, DeltaAggregated, with(good), at).wait(true, has(slices.Clone(world1)...))
	for want, files := range map[string]grpcdial.Files{
		"give the name in the certificate with --upstream-server-name":                   {CA: good.CA, Cert: good.Cert, Key: good.Key},
		"the server needs a client certificate, give --upstream-cert and --upstream-key": {CA: good.CA, ServerName: "plane"},
		"no CA certificate of the system signs the certificate of the server":            {ServerName: "plane"},
	} {
		if _, err := followed(t, DeltaAggregated, with(files), at).Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := followed(t, DeltaAggregated, nil, at).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "if it serves by TLS, give --upstream-ca") {
		t.Error(err)
	}
}

// TestNever reads without any server.
func TestNever(t *testing.T) {
	f := followed(t, DeltaAggregated, nil, "unix:"+socketOf(t), "unix:/nowhere")
	if c, err := f.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "unix:/nowhere: ") {
		t.Errorf("%v %v", c, err)
	}
}

// TestFailover asks the second server while the first is gone, and the first again.
func TestFailover(t *testing.T) {
	overEach(t, testFailover)
}

func testFailover(t *testing.T, by Transport) {
	first, second := newControlPlane(t), newControlPlane(t)
	first.set("first")
	second.set("second")
	path := socketOf(t)
	other, _ := second.listen(socketOf(t))
	f := followed(t, by, nil, "unix:"+path, other)
	is := func(name string) func(load.Contents) bool {
		return func(c load.Contents) bool { return slices.Contains(keys(c), "CDS/"+name) }
	}
	f.wait(true, is("second"))
	_, stop := first.listen(path)
	f.wait(true, is("first"))
	if s := f.State(); s.Server != "unix:"+path {
		t.Errorf("%+v", s)
	}
	stop()
	f.wait(true, is("second"))
}

// TestSecretsNeedTLS follows a control plane without TLS.
func TestSecretsNeedTLS(t *testing.T) {
	overEach(t, testSecretsNeedTLS)
}

func testSecretsNeedTLS(t *testing.T, by Transport) {
	c := newControlPlane(t)
	c.set("web")
	at, _ := c.listen("tcp")
	f := followed(t, by, nil, at)
	got := f.wait(true, has("CDS/web", "EDS/web", "LDS/l", "RDS/r", "RTDS/rtds"))
	if len(got.Findings) != 1 || !strings.Contains(got.Findings[0].Message, `listener "l" subscribes to the secret "s", and the connection to the control plane has no TLS`) {
		t.Error(got.Findings)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		if r.of == xds.Secret {
			t.Error("the client asks for secrets")
		}
	}
}

// TestDropped: a listener goes, with the filter that only the listener uses, and the routes that only the filter uses.
func TestDropped(t *testing.T) {
	ads := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3}
	routed := pack(&hcmv3.HttpConnectionManager{StatPrefix: "h", RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
		Rds: &hcmv3.Rds{ConfigSource: ads, RouteConfigName: "r"},
	}})
	discovered := &listenerv3.Filter{Name: "f", ConfigType: &listenerv3.Filter_ConfigDiscovery{
		ConfigDiscovery: &corev3.ExtensionConfigSource{ConfigSource: ads, TypeUrls: []string{routed.GetTypeUrl()}},
	}}
	st, now := newStreamState(New(Options{Name: "xds://test"}).authorities[0], true, nil), time.Now()
	st.follow(now)
	for _, r := range []struct {
		of *xds.Type
		is *discoveryv3.Resource
	}{
		{xds.Listener, wrap("l", &listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{discovered}}}})},
		{xds.ExtensionConfig, wrap("f", &corev3.TypedExtensionConfig{Name: "f", TypedConfig: routed})},
		{xds.RouteConfiguration, wrap("r", routes("r"))},
	} {
		if is, err := st.apply(r.of, response{resources: []*discoveryv3.Resource{r.is}}, now); err != nil || is.unasked != nil {
			t.Fatal(is.unasked, err)
		}
		st.follow(now)
	}
	if st.count != 3 {
		t.Fatalf("%d resources", st.count)
	}
	if _, err := st.apply(xds.Listener, response{removed: []string{"l"}}, now); err != nil {
		t.Fatal(err)
	}
	gone := make(map[string][]string)
	for _, c := range st.follow(now) {
		gone[c.of.API] = append(gone[c.of.API], c.unsubscribe...)
	}
	if st.count != 0 || !slices.Equal(gone["ECDS"], []string{"f"}) || !slices.Equal(gone["RDS"], []string{"r"}) {
		t.Errorf("%d resources, unsubscribed from %q", st.count, gone)
	}
}

// TestRandom changes a control plane at random, restarts it, and accepts or refuses what comes. In the end, the client
// has what the control plane has.
func TestRandom(t *testing.T) {
	overEach(t, testRandom)
}

func testRandom(t *testing.T, by Transport) {
	for seed := range uint64(3) {
		c, path, random := newControlPlane(t), socketOf(t), rand.New(rand.NewPCG(seed, 0))
		c.set("a")
		at, stop := c.listen(path)
		f := followed(t, by, nil, at)
		var names []string
		for range 15 {
			names = nil
			for _, name := range []string{"a", "b", "c", "d"} {
				if random.IntN(2) == 0 {
					names = append(names, name)
				}
			}
			c.set(names...)
			is, err := f.Read(t.Context())
			switch random.IntN(5) {
			case 0:
				stop()
				_, stop = c.listen(path)
			case 1, 2:
				f.Judged(load.Judgement{N: is.N, Accepted: err == nil})
			case 3:
				f.Judged(load.Judgement{N: is.N, Findings: diag.List{{Code: "a-rule", Message: "wrong", Resource: diag.Resource{Type: xds.Cluster.URL(), Name: "a"}}}})
			}
			time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
		}
		want := []string{"LDS/l", "RDS/r", "RTDS/rtds", "SDS/s"}
		for _, name := range names {
			want = append(want, "CDS/"+name, "EDS/"+name)
		}
		f.wait(true, has(want...))
		f.stop()
	}
}

// TestOwnClusters: by singleton transports, a config source with a cluster that leads to the control plane asks the
// control plane, and a config source with another cluster does not.
func TestOwnClusters(t *testing.T) {
	source := func(cluster string) *corev3.ConfigSource {
		return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_GRPC, GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
				EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: cluster},
			}}},
		}}}
	}
	own, foreign := edsCluster("own"), edsCluster("foreign")
	own.LrsServer = ads
	own.EdsClusterConfig.EdsConfig, foreign.EdsClusterConfig.EdsConfig = source("plane"), source("other")
	at := serving(t, Singleton, func(s *scripted) error {
		if err := whole(s, "1", wrap("own", own), wrap("foreign", foreign)); err != nil {
			return err
		}
		if err := s.asks(xds.Endpoints, "own"); err != nil {
			return err
		}
		if err := s.send(xds.Endpoints, "2", wrap("own", endpoints("own"))); err != nil {
			return err
		}
		return s.drain()
	})
	clusters := Singleton.Clusters(&bootstrapv3.Bootstrap{DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{CdsConfig: source("plane")}})
	var log lockedBuffer
	f := followed(t, Singleton, func(u *Upstream) {
		u.options.Clusters, u.options.Log = clusters, event.New(slog.NewTextHandler(&log, nil))
	}, at)
	files := f.wait(true, has("CDS/foreign", "CDS/own", "EDS/own")).Files
	if text := log.String(); strings.Count(text, "upstream-on-demand") != 1 || !strings.Contains(text, "resource=CDS/foreign path=eds_cluster_config.eds_config") {
		t.Errorf("the log does not say that Envoy itself asks the other server:\n%s", text)
	}
	for _, file := range files {
		if c, ok := file.Resources[0].Message().(*clusterv3.Cluster); ok {
			if is := c.GetEdsClusterConfig().GetEdsConfig().GetSelf() != nil; is != (c.GetName() == "own") {
				t.Errorf("%s: %v", c.GetName(), c.GetEdsClusterConfig().GetEdsConfig())
			}
		}
	}
}

// TestNoGroups: by state of the world, a client can't subscribe to virtual hosts of VHDS.
func TestNoGroups(t *testing.T) {
	at := serving(t, Aggregated, func(s *scripted) error {
		if err := s.send(xds.Cluster, "1"); err != nil {
			return err
		}
		if err := s.send(xds.Listener, "2", wrap("l", listener("l", "r", ""))); err != nil {
			return err
		}
		of := routes("r")
		of.Vhds = &routev3.Vhds{ConfigSource: ads}
		if err := s.send(xds.RouteConfiguration, "3", wrap("r", of)); err != nil {
			return err
		}
		return s.drain()
	})
	is := followed(t, Aggregated, nil, at).wait(true, has("LDS/l", "RDS/r"))
	want := `route configuration "r" subscribes to VHDS, and ads by state of the world can't ask for it`
	if len(is.Findings) != 1 || is.Findings[0].Message != want {
		t.Error(is.Findings)
	}
}

// TestFlapping: connections of a server that comes and goes do not end the outage. A connection that lasts does.
func TestFlapping(t *testing.T) {
	end := make(chan struct{})
	at := serving(t, DeltaAggregated, func(s *scripted) error {
		if err := whole(s, "1"); err != nil {
			return err
		}
		_, err := s.answer("1")
		if err == nil {
			<-end
		}
		return err
	})
	f := followed(t, DeltaAggregated, func(u *Upstream) { u.bounds.steadyAfter = time.Hour }, at)
	began := f.State().Since
	flap := func() {
		eventually(t, "the server is followed", func() bool { return f.State().Connected })
		f.Judged(load.Judgement{N: f.wait(true, has()).N, Accepted: true})
		end <- struct{}{}
		eventually(t, "the server is lost", func() bool { return !f.State().Connected })
	}
	for range 3 {
		flap()
		if is := f.State().Since; !is.Equal(began) {
			t.Fatalf("the server is gone since %s, want %s", is, began)
		}
	}
	f.mu.Lock()
	f.bounds.steadyAfter = 0
	f.mu.Unlock()
	flap()
	if is := f.State().Since; is.Equal(began) {
		t.Error("a connection that lasts does not end the outage")
	}
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
