package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// oneServed is a tree with one cluster.
const oneServed = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}`

// plainConnection returns a connection without TLS that ends with the test.
func plainConnection(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestCompressedRequest: the server refuses a compressed request, which decompression would make a thousand times
// as large.
func TestCompressedRequest(t *testing.T) {
	t.Parallel()
	s := serveTree(t, map[string]string{"cluster.yaml": oneServed})
	s.start(t)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(plainConnection(t, s.address)).StreamAggregatedResources(t.Context(), grpc.UseCompressor(gzip.Name))
	if err != nil {
		t.Fatal(err)
	}
	// The server may end the stream before it has read the whole request.
	_ = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceNames: []string{strings.Repeat("x", 64<<20)}})
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}

// rotated is a server whose certificates are replaced while clients connect and stay.
type rotated struct {
	t       *testing.T
	dir     string
	serial  int64
	tree    *servedTree
	swapped int
}

// put replaces the files of the server as Kubernetes replaces the files of a secret: by a link to another folder.
func (r *rotated) put(files map[string][]byte) {
	r.t.Helper()
	r.swapped++
	folder := fmt.Sprintf("..%d", r.swapped)
	for name, data := range files {
		writeFile(r.t, filepath.Join(r.dir, folder, name), data)
	}
	next := filepath.Join(r.dir, "..next")
	if err := os.Symlink(folder, next); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(r.dir, "..data")); err != nil {
		r.t.Fatal(err)
	}
}

// client returns the TLS configuration of a client that trusts the authorities of trusts, and has a certificate of
// one authority that is valid for until.
func (r *rotated) client(by *certs.Authority, until time.Duration, trusts ...*certs.Authority) *tls.Config {
	r.t.Helper()
	r.serial++
	cert, key := by.SignUntil(time.Now().Add(until), r.serial, "client.test")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		r.t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "xds.test", Certificates: []tls.Certificate{pair}}
	for _, a := range trusts {
		c.RootCAs.AppendCertsFromPEM(a.PEM())
	}
	return c
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRotatedCertificates replaces the certificate and the CA of a server again and again, completely and partly,
// while clients of two CAs connect, ask and disconnect. The server must accept each client that the last complete
// files allow. When a CA is removed, its connected clients stay, and the server refuses their new connections.
func TestRotatedCertificates(t *testing.T) {
	t.Parallel()
	old, current := certs.NewAuthority(t), certs.NewAuthority(t)
	r := &rotated{t: t, dir: t.TempDir(), serial: 10, tree: serveTree(t, map[string]string{"endpoints.json": editedFiles(0)["endpoints.json"], "clusters.json": editedFiles(0)["clusters.json"]})}
	both := append(old.PEM(), current.PEM()...)
	files := func(by *certs.Authority, ca []byte) map[string][]byte {
		r.serial++
		cert, key := by.Sign(r.serial, "xds.test")
		return map[string][]byte{"cert": cert, "key": key, "ca": ca}
	}
	r.put(files(old, both))
	at := func(name string) string { return filepath.Join(r.dir, "..data", name) }
	r.tree.start(t, "--tls-cert", at("cert"), "--tls-key", at("key"), "--client-ca", at("ca"))

	honest := []*tls.Config{r.client(old, time.Hour, old, current), r.client(current, time.Hour, old, current)}
	late := r.client(current, -time.Minute, old, current)
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stays, err := r.follow(within, honest[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	var connected atomic.Int64
	for _, c := range honest {
		for range 2 {
			clients.Go(func() {
				for ctx.Err() == nil {
					if err := asksOnce(t.Context(), r.tree.address, c); err != nil {
						t.Error(err)
						return
					}
					connected.Add(1)
				}
			})
		}
	}
	clients.Go(func() {
		for ctx.Err() == nil {
			if err := asksOnce(t.Context(), r.tree.address, late); err == nil {
				t.Error("a certificate that has expired is taken")
			}
		}
	})
	for i := range 3 {
		now := files([]*certs.Authority{current, old, current}[i], both)
		whole := connected.Load() + 20
		switch i {
		case 0: // a key that does not match
			wrong := files(old, both)
			r.put(map[string][]byte{"cert": now["cert"], "key": wrong["key"], "ca": both})
		case 1: // half of the CAs
			r.put(map[string][]byte{"cert": now["cert"], "key": now["key"], "ca": both[:len(both)-100]})
		case 2: // nothing
			r.put(map[string][]byte{"cert": nil, "key": nil, "ca": nil})
		}
		r.tree.server.WaitLog(t, "event=certificates-unreadable ")
		r.put(now)
		r.tree.server.WaitLog(t, "event=certificates-read ")
		envoytest.Eventually(t, patience, "clients connect", func() (bool, string) { return connected.Load() > whole, "" })
	}
	stop()
	clients.Wait()

	r.put(files(current, current.PEM()))
	envoytest.Eventually(t, patience, "the old CA is refused", func() (bool, string) {
		return asksOnce(t.Context(), r.tree.address, honest[0]) != nil, "a client of it connects"
	})
	if err := asksOnce(t.Context(), r.tree.address, honest[1]); err != nil {
		t.Error(err)
	}
	r.tree.write(t, "endpoints.json", editedFiles(3)["endpoints.json"])
	if answer, err := stays.Recv(); err != nil || len(answer.GetResources()) != 1 {
		t.Errorf("a client of the old CA that is connected: %v, %v", answer, err)
	}
}

// follow opens a stream for endpoints, and receives the first response. The stream ends with the test.
func (r *rotated) follow(ctx context.Context, c *tls.Config) (grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse], error) {
	conn, err := grpc.NewClient(r.tree.address, grpc.WithTransportCredentials(credentials.NewTLS(c)))
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(func() { conn.Close() })
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return nil, err
	}
	q := &discoveryv3.DiscoveryRequest{TypeUrl: xds.Endpoints.URL(), ResourceNames: []string{"web"}}
	if err := s.Send(q); err != nil {
		return nil, err
	}
	answer, err := s.Recv()
	if err != nil {
		return nil, err
	}
	q.VersionInfo, q.ResponseNonce = answer.GetVersionInfo(), answer.GetNonce()
	return s, s.Send(q)
}

// TestSocketReturns removes the socket file of a server. The server makes it again, and new clients connect.
func TestSocketReturns(t *testing.T) {
	t.Parallel()
	s := serveTree(t, map[string]string{"cluster.yaml": oneServed})
	s.start(t, "--grpc", "unix:"+s.socket)
	if err := os.Remove(s.socket); err != nil {
		t.Fatal(err)
	}
	s.server.WaitLog(t, "event=socket-made-again ")
	if stdout, stderr, exit := xdspub(t, "status", "--serve", "unix:"+s.socket); exit != 0 {
		t.Errorf("exit status %d\n%s%s", exit, stdout, stderr)
	}
}
