package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"xdspub/diag"
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
	requests []*discoveryv3.DeltaDiscoveryRequest
}

func newControlPlane(t *testing.T) *controlPlane {
	c := &controlPlane{t: t, cache: cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil)}
	c.server = serverv3.NewServer(t.Context(), c.cache, serverv3.CallbackFuncs{StreamDeltaRequestFunc: func(_ int64, r *discoveryv3.DeltaDiscoveryRequest) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.requests = append(c.requests, r)
		return nil
	}})
	return c
}

// set publishes a Snapshot: clusters with the names, a listener with a secret, and routes.
func (c *controlPlane) set(clusters ...string) {
	c.t.Helper()
	c.n++
	all := map[resource.Type][]types.Resource{
		resource.ListenerType: {listener("l", "r", "s")}, resource.RouteType: {routes("r")},
		resource.SecretType:  {&tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: &corev3.DataSource{}}}}},
		resource.RuntimeType: {&runtimev3.Runtime{Name: "rtds"}},
	}
	for _, name := range clusters {
		all[resource.ClusterType] = append(all[resource.ClusterType], edsCluster(name))
		all[resource.EndpointType] = append(all[resource.EndpointType], endpoints(name))
	}
	s, err := cachev3.NewSnapshot(fmt.Sprint(c.n), all)
	if err == nil {
		err = c.cache.SetSnapshot(context.Background(), "a", s)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// answers returns the ACKs, and the words of the NACKs, of a type.
func (c *controlPlane) answers(t *xds.Type) (acks int, nacks []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		switch {
		case r.GetTypeUrl() != t.URL() || r.GetResponseNonce() == "":
		case r.GetErrorDetail() == nil:
			acks++
		default:
			nacks = append(nacks, r.GetErrorDetail().GetMessage())
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
	c := newControlPlane(t)
	c.set("web")
	at, _ := listen(t, socketOf(t), c.server)
	f := followed(t, nil, at)
	first := f.wait(true, has(slices.Clone(world1)...))
	f.Judged(load.Judgement{N: first.N, Accepted: true})
	for _, of := range []*xds.Type{xds.Cluster, xds.Endpoints, xds.Listener, xds.RouteConfiguration, xds.Secret, xds.Runtime} {
		eventually(t, of.API+" is acknowledged", func() bool { acks, nacks := c.answers(of); return acks > 0 && nacks == nil })
	}
	if n := c.requests[0].GetNode(); n.GetId() != "a" || n.GetCluster() != "b" {
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
		return slices.Equal(nacks, []string{"api: it is wrong [a-rule]"})
	})

	c.set("api")
	f.wait(true, has("CDS/api", "EDS/api", "LDS/l", "RDS/r", "RTDS/rtds", "SDS/s"))
	eventually(t, "the client unsubscribes from the endpoints", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.requests, func(r *discoveryv3.DeltaDiscoveryRequest) bool {
			return slices.Contains(r.GetResourceNamesUnsubscribe(), "web")
		})
	})
}

// TestGone kills the control plane: the contents stay, the state says since when, and the next server is followed.
func TestGone(t *testing.T) {
	c := newControlPlane(t)
	c.set("web")
	socket := socketOf(t)
	at, stop := listen(t, socket, c.server)
	f := followed(t, nil, at)
	first := f.wait(true, has(slices.Clone(world1)...))
	stop()
	eventually(t, "the state says so", func() bool { s := f.State(); return !s.Connected && strings.Contains(s.Error, at) })
	if c, err := f.Read(t.Context()); err != nil || c.N != first.N {
		t.Fatalf("%v %v", c.N, err)
	}
	c = newControlPlane(t)
	c.set("web", "api")
	listen(t, socket, c.server)
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
	at, _ := listen(t, "tcp", c.server, grpc.Creds(secured))
	cert, key = authority.Sign(3, "edge")
	with := func(files grpcdial.Files) func(*Upstream) {
		return func(u *Upstream) { u.options.Servers[0].TLS = &files }
	}
	good := grpcdial.Files{CA: file("ca", authority.PEM()), Cert: file("cert", cert), Key: file("key", key), ServerName: "plane"}
	followed(t, with(good), at).wait(true, has(slices.Clone(world1)...))
	for want, files := range map[string]grpcdial.Files{
		"give the name in the certificate with --upstream-server-name":                   {CA: good.CA, Cert: good.Cert, Key: good.Key},
		"the server needs a client certificate, give --upstream-cert and --upstream-key": {CA: good.CA, ServerName: "plane"},
		"no CA certificate of the system signs the certificate of the server":            {ServerName: "plane"},
	} {
		if _, err := followed(t, with(files), at).Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := followed(t, nil, at).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "if it serves by TLS, give --upstream-ca") {
		t.Error(err)
	}
}

// TestNever reads without any server.
func TestNever(t *testing.T) {
	f := followed(t, nil, "unix:"+socketOf(t), "unix:/nowhere")
	if c, err := f.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "unix:/nowhere: ") {
		t.Errorf("%v %v", c, err)
	}
}

// TestFailover asks the second server while the first is gone, and the first again.
func TestFailover(t *testing.T) {
	first, second := newControlPlane(t), newControlPlane(t)
	first.set("first")
	second.set("second")
	path := socketOf(t)
	other, _ := listen(t, socketOf(t), second.server)
	f := followed(t, nil, "unix:"+path, other)
	is := func(name string) func(load.Contents) bool {
		return func(c load.Contents) bool { return slices.Contains(keys(c), "CDS/"+name) }
	}
	f.wait(true, is("second"))
	_, stop := listen(t, path, first.server)
	f.wait(true, is("first"))
	if s := f.State(); s.Server != "unix:"+path {
		t.Errorf("%+v", s)
	}
	stop()
	f.wait(true, is("second"))
}

// TestSecretsNeedTLS follows a control plane without TLS.
func TestSecretsNeedTLS(t *testing.T) {
	c := newControlPlane(t)
	c.set("web")
	at, _ := listen(t, "tcp", c.server)
	f := followed(t, nil, at)
	got := f.wait(true, has("CDS/web", "EDS/web", "LDS/l", "RDS/r", "RTDS/rtds"))
	if len(got.Findings) != 1 || !strings.Contains(got.Findings[0].Message, `listener "l" subscribes to the secret "s", and the connection to the control plane has no TLS`) {
		t.Error(got.Findings)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		if r.GetTypeUrl() == xds.Secret.URL() {
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
	w, now := newWorld(&Options{Name: "xds://test"}, &usual, true, nil), time.Now()
	w.follow(now)
	for _, r := range []struct {
		of *xds.Type
		is *discoveryv3.Resource
	}{
		{xds.Listener, wrap("l", &listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{discovered}}}})},
		{xds.ExtensionConfig, wrap("f", &corev3.TypedExtensionConfig{Name: "f", TypedConfig: routed})},
		{xds.RouteConfiguration, wrap("r", routes("r"))},
	} {
		if _, unasked, err := w.apply(r.of, &discoveryv3.DeltaDiscoveryResponse{Resources: []*discoveryv3.Resource{r.is}}, now); err != nil || unasked != nil {
			t.Fatal(unasked, err)
		}
		w.follow(now)
	}
	if w.count != 3 {
		t.Fatalf("%d resources", w.count)
	}
	if _, _, err := w.apply(xds.Listener, &discoveryv3.DeltaDiscoveryResponse{RemovedResources: []string{"l"}}, now); err != nil {
		t.Fatal(err)
	}
	gone := make(map[string][]string)
	for _, c := range w.follow(now) {
		gone[c.of.API] = append(gone[c.of.API], c.unsubscribe...)
	}
	if w.count != 0 || !slices.Equal(gone["ECDS"], []string{"f"}) || !slices.Equal(gone["RDS"], []string{"r"}) {
		t.Errorf("%d resources, unsubscribed from %q", w.count, gone)
	}
}
