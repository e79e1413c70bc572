package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"xdspub/setup/bootstrap"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
)

// bootstrapped is a served example, with Envoys that start from bootstraps of xdspub bootstrap envoy.
type bootstrapped struct {
	servedTree
	ca    *certs.Authority
	dir   string // of certificates and bootstraps
	http  string // address, and the socket
	web   string
	pages string // of the listener
}

// serveQuickstart returns a bootstrapped of the quickstart, which is not started. Its server also listens without
// TLS, on Unix sockets.
func serveQuickstart(t *testing.T) *bootstrapped {
	t.Helper()
	dir, err := os.MkdirTemp("", "xds-") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	e := newExample(t, "quickstart", 8081, 8082, 8083, 10000)
	e.upstreams(t, "python3 examples/upstream.py web:8081 api:8082 api:8083")
	b := &bootstrapped{
		servedTree: servedTree{address: address(envoytest.FreePort(t)), socket: filepath.Join(dir, "xds.sock")},
		dir:        dir, http: address(envoytest.FreePort(t)), web: filepath.Join(dir, "http.sock"),
		pages: e.moved.Replace("http://127.0.0.1:10000/"),
	}
	b.src = e.tree(t)
	return b
}

// start starts the server, with TLS if b.ca is set.
func (b *bootstrapped) start(t *testing.T, flags ...string) {
	t.Helper()
	b.servedTree.start(t, append(flags, "--grpc", "unix:"+b.socket, "--http", b.http, "--http", "unix:"+b.web)...)
}

// sign makes a new Authority, and writes certificates for the server and the Envoys.
func (b *bootstrapped) sign(t *testing.T) {
	t.Helper()
	b.ca = certs.NewAuthority(t)
	cert, key := b.ca.Sign(1, "127.0.0.1")
	clientCert, clientKey := b.ca.Sign(2, "spiffe://test/edge")
	for name, data := range map[string][]byte{"ca.pem": b.ca.PEM(), "cert.pem": cert, "key.pem": key, "client.pem": clientCert, "client.key": clientKey} {
		envoytest.Publish(t, filepath.Join(b.dir, "certs", name), string(data))
	}
}

func (b *bootstrapped) file(name string) string { return filepath.Join(b.dir, "certs", name) }

// envoy starts an Envoy from the bootstrap that xdspub writes for these flags.
func (b *bootstrapped) envoy(t *testing.T, flags ...string) *envoytest.Envoy {
	t.Helper()
	output := filepath.Join(t.TempDir(), "envoy.yaml")
	args := append([]string{"bootstrap", "envoy", "--admin", "127.0.0.1:0", "--output", output}, flags...)
	if stdout, stderr, exit := xdspub(t, args...); exit != 0 || stdout != "" || stderr != "" {
		t.Fatalf("%v: exit status %d\n%s%s", args, exit, stdout, stderr)
	}
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	return envoytest.Start(t, envoytest.Options{Bootstrap: text})
}

// answers waits until Envoy answers a request.
func (b *bootstrapped) answers(t *testing.T, want string) {
	t.Helper()
	envoytest.Eventually(t, patience, "Envoy answers "+want, func() (bool, string) {
		status, body, err := envoytest.Get(t, b.pages)
		return err == nil && status == 200 && strings.TrimSpace(body) == want, fmt.Sprint(status, body, err)
	})
}

// TestBootstrapEnvoy: an Envoy starts from the output of bootstrap envoy, is LIVE, gets all resources and answers
// requests, by each transport, and by TCP, TLS, mTLS and a Unix socket.
func TestBootstrapEnvoy(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	b := serveQuickstart(t)
	b.sign(t)
	name := strings.Replace(b.address, "127.0.0.1", "localhost", 1)
	tls := []string{"--tls-ca", b.file("ca.pem")}
	mutual := append(tls, "--tls-cert", b.file("client.pem"), "--tls-key", b.file("client.key"))
	served := []string{"--tls-cert", b.file("cert.pem"), "--tls-key", b.file("key.pem")}
	for _, c := range []struct {
		name       string
		grpc, http string
		server     []string
		client     []string
	}{
		{name: "TCP", grpc: name, http: b.http},
		{name: "Unix socket", grpc: "unix:" + b.socket, http: "unix:" + b.web},
		{name: "TLS", grpc: b.address, http: b.http, server: served, client: tls},
		{name: "mTLS", grpc: b.address, http: b.http, server: append(served, "--client-ca", b.file("ca.pem")), client: mutual},
		{name: "another name", grpc: name, http: b.http, server: served, client: append(tls, "--tls-server-name", "127.0.0.1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.start(t, c.server...)
			for _, transport := range bootstrap.Transports[1:] {
				t.Run(string(transport), func(t *testing.T) {
					at := c.grpc
					if transport == bootstrap.REST {
						at = c.http
					}
					envoy := b.envoy(t, append([]string{"--transport", string(transport), "--server", at}, append(c.client, b.src)...)...)
					b.answers(t, "web")
					content(t, envoy)
				})
			}
			b.server.Signal(t, syscall.SIGTERM)
			b.server.Wait(t)
		})
	}
}

// TestBootstrapJudged: with --envoy, an Envoy judges a bootstrap before xdspub writes it, also a bootstrap whose
// files are written with it, and a bootstrap that xdspub adds to. xdspub does not write a bootstrap that Envoy
// refuses.
func TestBootstrapJudged(t *testing.T) {
	envoy := envoytest.Binary(t)
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca := certs.NewAuthority(t)
	cert, key := ca.Sign(1, "edge")
	for name, data := range map[string]string{
		"ca.pem": string(ca.PEM()), "cert.pem": string(cert), "key.pem": string(key), "mine.json": `{"stats_flush_interval": "7s"}`,
	} {
		envoytest.Publish(t, file(name), data)
	}
	written := func(args ...string) (stderr string, exit int) {
		t.Helper()
		_, stderr, exit = xdspub(t, append([]string{"bootstrap", "envoy", "--envoy", envoy, "--output", file("envoy.yaml")}, args...)...)
		if _, err := os.Stat(file("envoy.yaml")); (err == nil) != (exit == 0) {
			t.Errorf("%v: exit status %d: %v", args, exit, err)
		}
		_ = os.Remove(file("envoy.yaml"))
		return stderr, exit
	}
	for _, transport := range bootstrap.Transports[1:] {
		if stderr, exit := written("--transport", string(transport), "--server", "localhost:1", "--tls-ca", file("ca.pem"), "--tls-cert", file("cert.pem"), "--tls-key", file("key.pem"), "--from", file("mine.json")); exit != 0 {
			t.Errorf("%s: exit status %d: %s", transport, exit, stderr)
		}
	}
	stderr, exit := written("--out", file("out"))
	if want := "envoy.yaml: error: Envoy refuses the bootstrap: paths must refer to an existing path in the system: '" + file("out/cds/cds.json") + "' does not exist [refused-by-mode-validate]"; exit != 1 || !strings.Contains(stderr, want) {
		t.Errorf("exit status %d: %s, want %s", exit, stderr, want)
	}
	if _, stderr, exit := xdspub(t, "render", "--out", file("out"), "examples/quickstart"); exit != 0 {
		t.Fatal(stderr)
	}
	if stderr, exit := written("--out", file("out")); exit != 0 {
		t.Errorf("exit status %d: %s", exit, stderr)
	}
}

// TestBootstrapRotation: an Envoy that started from the output of bootstrap envoy reads its certificate and the CA
// again when they are replaced.
func TestBootstrapRotation(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	b := serveQuickstart(t)
	b.sign(t)
	flags := []string{"--tls-cert", b.file("cert.pem"), "--tls-key", b.file("key.pem"), "--client-ca", b.file("ca.pem")}
	b.start(t, flags...)
	b.envoy(t, "--transport", "delta-ads", "--server", b.address, "--tls-ca", b.file("ca.pem"), "--tls-cert", b.file("client.pem"), "--tls-key", b.file("client.key"))
	b.answers(t, "web")

	b.kill(t)
	b.sign(t)
	b.start(t, flags...)
	routes := filepath.Join(b.src, "routes/ingress.yaml")
	text, err := os.ReadFile(routes)
	if err != nil {
		t.Fatal(err)
	}
	envoytest.Publish(t, routes, strings.ReplaceAll(string(text), "cluster: web", "cluster: api"))
	b.answers(t, "api")
}

// TestPolled: with --poll-interval, Envoy polls the files that the bootstrap, listeners and clusters name. A file
// that is written in place, which Envoy gets no event of, takes effect. A polled file takes no inotify instance.
func TestPolled(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "quickstart", 8081, 8082, 8083, 10000)
	b := &bootstrapped{dir: t.TempDir(), pages: e.moved.Replace("http://127.0.0.1:10000/")}
	e.upstreams(t, "python3 examples/upstream.py web:8081 api:8082 api:8083")
	out := filepath.Join(b.dir, "out")
	const often = "50ms"
	if _, stderr, exit := xdspub(t, "render", "--out", out, "--poll-interval", often, e.tree(t)); exit != 0 {
		t.Fatal(stderr)
	}
	envoy := b.envoy(t, "--out", out, "--poll-interval", often)
	b.answers(t, "web")
	if n := envoy.InotifyInstances(t); n > 0 {
		t.Errorf("%d inotify instances", n)
	}
	inPlace(t, filepath.Join(out, "lds/lds.json"), `"version_info": "`, `"version_info": "x`)
	envoytest.Eventually(t, patience, "Envoy has read the listeners again", func() (bool, string) {
		version := envoy.TextStat(t, "listener_manager.lds.version_text")
		return strings.HasPrefix(version, "x"), version
	})
	inPlace(t, filepath.Join(out, "rds/ingress/rds.json"), `"cluster": "web"`, `"cluster": "api"`)
	b.answers(t, "api")
}

// inPlace replaces a text of a file, without a rename.
func inPlace(t *testing.T, file, old, by string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), old, by)
	in, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.WriteString(changed); err != nil || len(changed) < len(text) || changed == string(text) {
		t.Fatal(err, changed)
	}
}

// TestBootstrapCertificates: Envoy does not read the certificates again that its bootstrap names, even with a
// watched_directory. It reads the certificates of an SDS file again.
func TestBootstrapCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := certs.NewAuthority(t)
	sign := func(serial int64) {
		cert, key := ca.Sign(serial, "spiffe://test/edge")
		envoytest.Publish(t, filepath.Join(dir, "client.key"), string(key))
		envoytest.Publish(t, filepath.Join(dir, "client.pem"), string(cert))
	}
	sign(2)
	certificate := fmt.Sprintf("{certificate_chain: {filename: %[1]s/client.pem}, private_key: {filename: %[1]s/client.key}, watched_directory: {path: %[1]s}}", dir)
	sds := filepath.Join(dir, "sds", "sds.yaml")
	envoytest.Publish(t, sds, fmt.Sprintf(`resources: [{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: client, tls_certificate: %s}]`, certificate))
	cluster := func(name, common string) string {
		return fmt.Sprintf(`{name: %s, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {%s}}}}`, name, common)
	}
	envoy := envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, `
node: {id: edge, cluster: test}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  clusters:
  - %s
  - %s
`, cluster("named", "tls_certificates: ["+certificate+"]"),
		cluster("subscribed", "tls_certificate_sds_secret_configs: [{name: client, sds_config: {resource_api_version: V3, path_config_source: {path: "+sds+"}}}]"))})
	has := func(want ...string) {
		t.Helper()
		envoytest.Eventually(t, patience, fmt.Sprint("Envoy has the certificates ", want), func() (bool, string) {
			var answer struct {
				Certificates []struct {
					Chain []struct {
						Serial string `json:"serial_number"`
					} `json:"cert_chain"`
				}
			}
			text := envoy.Admin(t, "/certs")
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range answer.Certificates {
				for _, in := range c.Chain {
					got = append(got, strings.TrimLeft(in.Serial, "0"))
				}
			}
			slices.Sort(got)
			return slices.Equal(got, want), text
		})
	}
	has("2", "2")
	sign(3)
	has("2", "3")
}

// TestBootstrapOptions: an Envoy has the settings of the flags of bootstrap envoy, and those of the file of --from.
func TestBootstrapOptions(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "static-import", 8081, 8082, 9901, 10080)
	b := &bootstrapped{pages: e.moved.Replace("http://127.0.0.1:10080/")}
	e.upstreams(t, "python3 examples/upstream.py website:8081 shop:8082")
	from := filepath.Join(e.dir, "envoy.yaml")
	e.edit(t, replace("id: edge-1", "id: edge-7"), "envoy.yaml")
	e.edit(t, replace(e.moved.Replace("port_value: 9901"), "port_value: 0"), "envoy.yaml")
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "envoy.yaml")
	if stdout, stderr, exit := xdspub(t, "bootstrap", "envoy", "--from", from, "--output", output, "--transport", "delta-ads", "--server", "unix:/none/xds.sock",
		"--node-locality", "eu/eu-1/a", "--node-metadata", "tier=2", "--stats-tag", "dc=eu-1", "--max-connections", "2", "--max-heap", "4GiB"); exit != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", exit, stdout, stderr, text)
	}
	merged, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	// Envoy would wait for resources of a missing server for 15 seconds.
	envoy := envoytest.Start(t, envoytest.Options{Bootstrap: []byte(strings.ReplaceAll(string(merged), "ads: {}", "ads: {}\n    initial_fetch_timeout: 0.1s"))})
	b.answers(t, "website")
	info := envoy.Admin(t, "/server_info")
	for _, want := range []string{`"id": "edge-7"`, `"region": "eu"`, `"zone": "eu-1"`, `"sub_zone": "a"`, `"tier": "2"`} {
		if !strings.Contains(info, want) {
			t.Errorf("no %s in %s", want, info)
		}
	}
	if stats := envoy.Admin(t, "/stats?format=prometheus&filter=server.live"); !strings.Contains(stats, `dc="eu-1"`) {
		t.Errorf("no tag: %s", stats)
	}
	if strings.Contains(envoy.Log(), "There is no configured limit") {
		t.Error("Envoy has no limit of connections")
	}
	if n := envoy.Stat(t, "overload.envoy.resource_monitors.fixed_heap.pressure"); n < 0 {
		t.Error("Envoy does not look at its heap")
	}

	// Envoy closes a third connection, and the admin address stays open.
	host := strings.TrimSuffix(strings.TrimPrefix(b.pages, "http://"), "/")
	for range 2 {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	envoytest.Eventually(t, patience, "a third connection is refused", func() (bool, string) {
		_, _, err := envoytest.Get(t, b.pages)
		return err != nil, envoy.Admin(t, "/stats?filter=downstream_cx")
	})
}
