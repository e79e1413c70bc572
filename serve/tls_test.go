package serve_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"xdspub/serve"
	"xdspub/serve/admit"
	doors "xdspub/serve/listen"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// secured is a server with TLS, and the authority of its certificates.
type secured struct {
	*running
	ca  *certs.Authority
	dir string
}

func runSecured(t testing.TB, change ...func(*serve.Options)) *secured {
	t.Helper()
	s := &secured{ca: certs.NewAuthority(t), dir: t.TempDir()}
	cert, key := s.ca.Sign(1, "127.0.0.1")
	s.write(t, map[string][]byte{"cert": cert, "key": key, "ca": s.ca.PEM()})
	rule, err := admit.ParseNodeRule("edge-*=spiffe://test/edge-*")
	if err != nil {
		t.Fatal(err)
	}
	o := serve.Options{Security: serve.Security{
		TLS:   doors.Files{Cert: s.file("cert"), Key: s.file("key"), ClientCA: s.file("ca")},
		Nodes: []admit.NodeRule{rule},
	}}
	for _, change := range change {
		change(&o)
	}
	s.running = run(t, o)
	return s
}

func (s *secured) file(name string) string { return filepath.Join(s.dir, name) }

func (s *secured) write(t testing.TB, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		if err := os.WriteFile(s.file(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// config returns the TLS configuration of a client. The Authority by signs a certificate for names; a nil by
// means no certificate.
func (s *secured) config(t testing.TB, by *certs.Authority, names ...string) *tls.Config {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(s.ca.PEM())
	if by != nil {
		cert, key := by.Sign(2, names...)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// oneOfEach is a tree with a secret.
const oneOfEach = `[{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}, {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: key, generic_secret: {secret: {inline_string: the-secret}}}]`

// TestMTLS checks that a client certificate permits its node id and secrets.
func TestMTLS(t *testing.T) {
	s := runSecured(t)
	s.publish(oneOfEach)
	ask := func(conn *grpc.ClientConn, id string) error {
		client := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
		stream, sotw := client.StreamAggregatedResources(within(t))
		if sotw == nil {
			_ = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Secret.URL(), ResourceNames: []string{"key"}, Node: &corev3.Node{Id: id}})
			_, sotw = stream.Recv()
		}
		byDelta, delta := client.DeltaAggregatedResources(within(t))
		if delta == nil {
			_ = byDelta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Secret.URL(), ResourceNamesSubscribe: []string{"key"}, Node: &corev3.Node{Id: id}})
			_, delta = byDelta.Recv()
		}
		if status.Code(sotw) != status.Code(delta) {
			t.Errorf("%v, by delta %v", sotw, delta)
		}
		return sotw
	}
	conn := dial(t, s.tcp, s.config(t, s.ca, "spiffe://test/edge-1"))
	for id, want := range map[string]codes.Code{"edge-1": 0, "edge-2": codes.PermissionDenied, "": codes.PermissionDenied} {
		if err := ask(conn, id); status.Code(err) != want {
			t.Errorf("node %q: %v", id, err)
		}
	}
	old := s.config(t, s.ca, "spiffe://test/edge-1")
	old.MaxVersion = tls.VersionTLS12
	for name, c := range map[string]*tls.Config{
		"no TLS": nil, "no certificate": s.config(t, nil), "another CA": s.config(t, certs.NewAuthority(t), "spiffe://test/edge-1"), "TLS 1.2": old,
	} {
		if err := ask(dial(t, s.tcp, c), "edge-1"); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ask(dial(t, "unix:"+s.socket, nil), "any"); err != nil {
		t.Errorf("by a Unix socket: %v", err)
	}
	if err := ask(conn, "edge-1"); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Contains(log, "the-secret") || !strings.Contains(log, "event=client-refused") {
		t.Error(log)
	}
}

// TestHTTPS checks that health and metrics need no certificate, and that discovery over REST has the same
// rules as over gRPC.
func TestHTTPS(t *testing.T) {
	s := runSecured(t)
	s.publish(oneOfEach)
	none, edge := s.config(t, nil), s.config(t, s.ca, "spiffe://test/edge-1")
	for _, c := range []struct {
		config     *tls.Config
		path, node string
		want       int
	}{
		{none, "/livez", "", 200}, {none, "/readyz", "", 200}, {none, "/metrics", "", 200},
		{none, "/v3/discovery:clusters", "edge-1", 403},
		{edge, "/v3/discovery:clusters", "edge-1", 200},
		{edge, "/v3/discovery:secrets", "edge-1", 200},
		{edge, "/v3/discovery:clusters", "edge-2", 403},
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c.config}}
		var r *http.Response
		var err error
		if c.node == "" {
			r, err = client.Get("https://" + s.web + c.path)
		} else {
			r, err = client.Post("https://"+s.web+c.path, "application/json", strings.NewReader(`{"node": {"id": "`+c.node+`"}, "resource_names": [`+map[bool]string{true: `"key"`}[strings.HasSuffix(c.path, "secrets")]+`]}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if r.Body.Close(); r.StatusCode != c.want || err != nil {
			t.Errorf("%s as %q: %d %s, %v", c.path, c.node, r.StatusCode, body, err)
		}
		if c.path == "/metrics" && (!strings.Contains(string(body), "xdspub_certificate_expiry_seconds") || strings.Contains(string(body), "the-secret")) {
			t.Errorf("%s", body)
		}
		client.CloseIdleConnections()
	}
}

// TestPlainREST checks that no secret is sent over plain HTTP, not even inside a listener.
func TestPlainREST(t *testing.T) {
	s := run(t, serve.Options{})
	s.publish(`[{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}, {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: in, filter_chains: [{transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: {tls_certificates: [{private_key: {inline_string: the-key}}]}}}}]}]`)
	for path, want := range map[string]int{"clusters": 200, "listeners": 403, "secrets": 403} {
		r, err := http.Post("http://"+s.web+"/v3/discovery:"+path, "application/json", strings.NewReader(`{"node": {"id": "a"}}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if r.Body.Close(); err != nil || r.StatusCode != want || strings.Contains(string(body), "the-key") {
			t.Errorf("%s: %d %s, %v", path, r.StatusCode, body, err)
		}
	}
}

// TestEnvoyMTLS has an Envoy with a client certificate get all resources over TLS, and an Envoy that claims
// another node id get none.
func TestEnvoyMTLS(t *testing.T) {
	s := runSecured(t)
	up, port := envoytest.NewUpstream(t, "blue"), envoytest.FreePort(t)
	s.publish(fmt.Sprintf(clusterTo, "blue", up.Port()) + fmt.Sprintf(listenerAt, "in", port, "127.0.0.1") + fmt.Sprintf(routeTo, "blue"))
	cert, key := s.ca.Sign(3, "spiffe://test/edge-1")
	s.write(t, map[string][]byte{"client-cert": cert, "client-key": key})
	bootstrap := func(id string) []byte {
		return fmt.Appendf(nil, envoyMTLS, id, s.tcp[strings.LastIndex(s.tcp, ":")+1:], s.file("client-cert"), s.file("client-key"), s.file("ca"))
	}
	other := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap("edge-2")})
	envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap("edge-1")})
	envoytest.Eventually(t, patience, "Envoy answers", func() (bool, string) {
		status, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
		return err == nil && status == 200 && body == "blue", fmt.Sprint(status, body, err)
	})
	envoytest.Eventually(t, patience, "the other one is refused", func() (bool, string) {
		return strings.Contains(other.Log(), "does not allow the node id"), other.Log()
	})
	if n := other.Stat(t, "cluster_manager.cds.update_success"); n != 0 {
		t.Errorf("it got clusters %d times", n)
	}
}

const envoyMTLS = `
node: {id: %[1]s, cluster: test}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds_cluster}}]}
  cds_config: {resource_api_version: V3, initial_fetch_timeout: 1s, ads: {}}
  lds_config: {resource_api_version: V3, initial_fetch_timeout: 1s, ads: {}}
static_resources:
  clusters:
  - name: xds_cluster
    type: STATIC
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: xds_cluster, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]s}}}}]}]}
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context:
          tls_params: {tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_3}
          tls_certificates: [{certificate_chain: {filename: %[3]s}, private_key: {filename: %[4]s}}]
          validation_context: {trusted_ca: {filename: %[5]s}}
`
