package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
)

// pems are files of certificates and keys.
type pems struct {
	t   *testing.T
	dir string
}

func (p pems) path(name string) string { return filepath.Join(p.dir, name) }

func (p pems) write(name string, cert, key []byte) {
	p.t.Helper()
	for name, data := range map[string][]byte{name + ".pem": cert, name + ".key": key} {
		if err := os.WriteFile(p.path(name), data, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// TestStatusByTLS asks a server with TLS 1.3 and client certificates. For each fault, xdspub status prints one line
// with the remedy.
func TestStatusByTLS(t *testing.T) {
	s := serveTree(t, map[string]string{"cluster.yaml": `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}`})
	ca, other := certs.NewAuthority(t), certs.NewAuthority(t)
	files := pems{t, t.TempDir()}
	files.write("ca", ca.PEM(), nil)
	files.write("other-ca", other.PEM(), nil)
	for i, name := range []string{"server", "client", "stranger", "late", "outside"} {
		by, until, names := ca, time.Now().Add(time.Hour), []string{"xds.example"}
		switch name {
		case "client":
			names = []string{"spiffe://test/ops"}
		case "late":
			until = time.Now().Add(-time.Minute)
		case "outside":
			by = other
		}
		cert, key := by.SignUntil(until, int64(i+2), names...)
		files.write(name, cert, key)
	}
	s.start(t, "--tls-cert", files.path("server.pem"), "--tls-key", files.path("server.key"), "--client-ca", files.path("ca.pem"), "--allow-status", "spiffe://test/*", "--http", "unix:"+s.socket)
	plain := address(envoytest.FreePort(t))
	second := start(t, watcher, "serve", "--grpc", plain, s.src)
	second.WaitLog(t, "event=published ")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	old := oldTLS(t, files)

	as := func(who string) []string {
		return []string{"--tls-ca", files.path("ca.pem"), "--tls-server-name", "xds.example", "--tls-cert", files.path(who + ".pem"), "--tls-key", files.path(who + ".key")}
	}
	for name, c := range map[string]struct {
		address string
		flags   []string
		exit    int
		want    string
	}{
		"by TLS":             {s.address, as("client"), 0, "in sync: 0 clients"},
		"wrong CA":           {s.address, []string{"--tls-ca", files.path("other-ca.pem"), "--tls-server-name", "xds.example"}, 3, "no CA certificate of " + files.path("other-ca.pem") + " signs the certificate of the server"},
		"CAs of the system":  {s.address, []string{"--tls-server-name", "xds.example"}, 3, "no CA certificate of the system signs the certificate of the server"},
		"wrong name":         {s.address, []string{"--tls-ca", files.path("ca.pem")}, 3, "give the name in the certificate with --tls-server-name"},
		"no certificate":     {s.address, []string{"--tls-ca", files.path("ca.pem"), "--tls-server-name", "xds.example"}, 3, "the server needs a client certificate, give --tls-cert and --tls-key"},
		"expired":            {s.address, as("late"), 3, "the server rejects the certificate " + files.path("late.pem") + ": tls: expired certificate"},
		"of another name":    {s.address, as("stranger"), 3, "this client may not see the status of clients"},
		"of another CA":      {s.address, as("outside"), 3, "the server rejects the certificate " + files.path("outside.pem")},
		"plain, server TLS":  {s.address, nil, 3, "if it serves by TLS, give --tls-ca"},
		"TLS, server plain":  {plain, as("client"), 3, "the server does not use TLS on this address"},
		"TLS 1.2":            {old, as("client"), 3, "protocol version"},
		"plain":              {plain, nil, 0, "in sync: 0 clients"},
		"nobody there":       {address(envoytest.FreePort(t)), as("client"), 3, "connection refused"},
		"not a server":       {silent.Addr().String(), as("client"), 3, "the server has not answered"},
		"not a plain server": {silent.Addr().String(), nil, 3, "the server has not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, exit := xdspub(t, append([]string{"status", "--serve", c.address}, c.flags...)...)
			if exit != c.exit || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stderr, "desc =") {
				t.Errorf("exit status %d\n%s%s\nwant %d: %s", exit, stdout, stderr, c.exit, c.want)
			}
		})
	}
}

// oldTLS is a server that speaks TLS 1.2 at most.
func oldTLS(t *testing.T, files pems) (address string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(files.path("server.pem"), files.path("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake() // fails
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// TestStatusShowsClients: xdspub status of the output directory of a serve also shows what the clients run, in the
// same words as xdspub status --serve.
func TestStatusShowsClients(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	s := serveTree(t, map[string]string{"cluster.yaml": `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}`})
	s.out = filepath.Join(filepath.Dir(s.src), "out")
	s.start(t, "--grpc", "unix:"+s.socket, "--out", s.out)
	envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, `
node: {id: edge-1, cluster: edge}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds_cluster}}]}
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - {name: xds_cluster, typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}, load_assignment: {cluster_name: xds_cluster, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: %s}}}}]}]}}
`, s.socket)})
	shows := func(exit int, want ...string) {
		t.Helper()
		var of []string
		envoytest.Eventually(t, patience, strings.Join(want, ", "), func() (bool, string) {
			byOut, stderr, is := xdspub(t, "status", "--out", s.out)
			byAddress, _, isToo := xdspub(t, "status", "--serve", "unix:"+s.socket)
			of = []string{byOut, byAddress}
			for _, text := range of {
				for _, line := range want {
					if !strings.Contains(text, line) {
						return false, text + stderr
					}
				}
			}
			return is == exit && isToo == exit, fmt.Sprint(is, isToo)
		})
	}
	shows(0, "in sync: ", "1 client", `client "edge-1" (envoy 1.40.0, unix:`, "): delta-ads, since ", ", 2 SYNCED\n")
	s.write(t, "listener.yaml", fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: in, address: {socket_address: {address: 192.0.2.1, port_value: %d}}, filter_chains: [{filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: s, cluster: web}}]}]}`, envoytest.FreePort(t)))
	shows(1, "not in sync: 1 of 1 clients is not in sync\n", ", 1 REJECTED, 1 SYNCED\n", "  REJECTED  LDS: served is version ", `listener.yaml:1:1: error: client "edge-1" rejected LDS "in": `)
	if stdout, _, exit := xdspub(t, "status", "--out", s.out, "--format", "json"); exit != 1 || !strings.Contains(stdout, `"node": "edge-1"`) {
		t.Error(exit, stdout)
	}
	s.server.Signal(t, syscall.SIGTERM)
	s.server.Wait(t)
	if stdout, _, exit := xdspub(t, "status", "--out", s.out); exit != 1 || !strings.HasPrefix(stdout, "not in sync: no watch is running\n") || strings.Contains(stdout, "client") {
		t.Error(exit, stdout)
	}
}
