package serve_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"xdspub/serve"
	"xdspub/tools/envoytest"
)

// TestEnvoyRESTByHTTP2 has an Envoy get all resources by REST over HTTP/2, with and without TLS.
func TestEnvoyRESTByHTTP2(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "TLS"}[secure], func(t *testing.T) {
			var s *running
			socket := ""
			if secure {
				secured := runSecured(t)
				s = secured.running
				cert, key := secured.ca.Sign(3, "spiffe://test/edge-1")
				secured.write(t, map[string][]byte{"client-cert": cert, "client-key": key})
				socket = fmt.Sprintf(`, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {alpn_protocols: [h2], tls_params: {tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_3}, tls_certificates: [{certificate_chain: {filename: %s}, private_key: {filename: %s}}], validation_context: {trusted_ca: {filename: %s}}}}}`,
					secured.file("client-cert"), secured.file("client-key"), secured.file("ca"))
			} else {
				s = run(t, serve.Options{})
			}
			blue, green, port := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green"), envoytest.FreePort(t)
			tree := func(up *envoytest.Upstream) {
				s.publish(fmt.Sprintf(clusterTo, "up", up.Port()) + fmt.Sprintf(listenerAt, "in", port, "127.0.0.1") + fmt.Sprintf(routeTo, "up"))
			}
			tree(blue)
			envoy := envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, restByHTTP2, restSource, s.web[strings.LastIndex(s.web, ":")+1:], socket)})
			answers := func(want string) {
				t.Helper()
				envoytest.Eventually(t, patience, "Envoy answers "+want, func() (bool, string) {
					status, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
					return err == nil && status == 200 && body == want, fmt.Sprint(status, body, err)
				})
			}
			answers("blue")
			tree(green)
			answers("green")
			shows := func(want string) {
				t.Helper()
				envoytest.Eventually(t, patience, want, func() (bool, string) {
					is := textOf(s.Clients())
					return is == want, is
				})
			}
			shows("edge-1 rest, CDS SYNCED, EDS SYNCED, LDS SYNCED, RDS SYNCED")
			s.publish(fmt.Sprintf(clusterTo, "up", green.Port()) + fmt.Sprintf(listenerAt, "in", port, "127.0.0.1") + fmt.Sprintf(listenerAt, "bad", port+1, "192.0.2.1") + fmt.Sprintf(routeTo, "up"))
			shows("edge-1 rest, CDS SYNCED, EDS SYNCED, LDS REJECTED, RDS SYNCED")
			envoytest.Eventually(t, patience, "the rejection is counted", func() (bool, string) {
				c := s.Clients()[0]
				return c.UserAgent == "envoy 1.40.0" && c.Cluster == "test" && c.Subscriptions[2].Rejections == 1, fmt.Sprintf("%+v", c)
			})
			refused := envoy.Stat(t, "listener_manager.lds.update_rejected")
			if err := s.Retry(t.Context()); err != nil {
				t.Fatal(err)
			}
			envoytest.Eventually(t, patience, "Envoy rejects the listener once more", func() (bool, string) {
				n := envoy.Stat(t, "listener_manager.lds.update_rejected")
				return n > refused, fmt.Sprint(n)
			})
			tree(blue)
			answers("blue")
			shows("edge-1 rest, CDS SYNCED, EDS SYNCED, LDS SYNCED, RDS SYNCED")
			if n := envoy.Stat(t, "cluster.xds_cluster.upstream_cx_http2_total"); n == 0 {
				t.Error("it speaks no HTTP/2")
			}
		})
	}
}

const restByHTTP2 = `
node: {id: edge-1, cluster: test}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  cds_config: {resource_api_version: V3, initial_fetch_timeout: 0s, %[1]s}
  lds_config: {resource_api_version: V3, initial_fetch_timeout: 0s, %[1]s}
static_resources:
  clusters:
  - {name: xds_cluster, type: STATIC, typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}, load_assignment: {cluster_name: xds_cluster, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]s}}}}]}]}%[3]s}
`

// postH2 sends a discovery request on a stream.
func (c h2) postH2(t testing.TB, id uint32, path, body string, more ...hpack.HeaderField) {
	t.Helper()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range append([]hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path}, {Name: ":authority", Value: "a"}, {Name: "content-type", Value: "application/json"}}, more...) {
		if err := e.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteData(id, true, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// TestPlainHTTP2 checks that a client of HTTP/2 without TLS gets no secret.
func TestPlainHTTP2(t *testing.T) {
	s := run(t, serve.Options{})
	s.publish(oneOfEach)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/v3/discovery:clusters": 200, "/v3/discovery:secrets": 403} {
		r, err := client.Post("http://"+s.web+path, "application/json", strings.NewReader(`{"node": {"id": "a"}, "resource_names": ["*"]}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if r.Body.Close(); err != nil || r.StatusCode != want || r.ProtoMajor != 2 || strings.Contains(string(body), "the-secret") {
			t.Errorf("%s: %s %d %s, %v", path, r.Proto, r.StatusCode, body, err)
		}
	}
}

// TestHTTP2Limits checks that HTTP/2 connections for REST have the limits of gRPC connections.
func TestHTTP2Limits(t *testing.T) {
	s := run(t, serve.Options{Limits: serve.Limits{ConnectionStreams: 7, Header: 2000, Idle: 200 * time.Millisecond, Ping: 100 * time.Millisecond, PingAnswer: 100 * time.Millisecond, Send: 300 * time.Millisecond}})
	s.publish(oneOfEach)
	ends := func(t *testing.T, c h2) {
		t.Helper()
		for {
			if _, err := c.ReadFrame(); os.IsTimeout(err) {
				t.Fatal("the connection stays open")
			} else if err != nil {
				return
			}
		}
	}
	t.Run("streams", func(t *testing.T) {
		f := dialH2(t, s.web).frame(t, http2.FrameSettings).(*http2.SettingsFrame)
		if n, ok := f.Value(http2.SettingMaxConcurrentStreams); n != 7 || !ok {
			t.Error(f)
		}
	})
	t.Run("idle", func(t *testing.T) {
		ends(t, dialH2(t, s.web))
	})
	t.Run("half open", func(t *testing.T) {
		c := dialH2(t, s.web)
		c.postH2(t, 1, "/v3/discovery:endpoints", `{}`) // waits for a change
		ends(t, c)
	})
	t.Run("headers", func(t *testing.T) {
		c := dialH2(t, s.web)
		c.postH2(t, 1, "/v3/discovery:clusters", `{}`, hpack.HeaderField{Name: "a", Value: strings.Repeat("x", 4000)})
		for {
			f, err := c.ReadFrame()
			if os.IsTimeout(err) {
				t.Fatal("nothing happens")
			}
			if err != nil || f.Header().Type == http2.FrameRSTStream {
				return
			}
			if f, ok := f.(*http2.MetaHeadersFrame); ok {
				if status := f.PseudoValue("status"); status != "431" {
					t.Error(status)
				}
				return
			}
		}
	})
}
