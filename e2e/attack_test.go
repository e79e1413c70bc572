package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"xdspub/internal/certs"
	"xdspub/internal/envoytest"
	"xdspub/xds"
)

// attacked is a server whose clients need certificates, and who attacks the server.
type attacked struct {
	t         *testing.T
	grpc, web string // addresses
	ca        *certs.Authority
	server    *process
	serial    int64
}

// client returns the TLS of a client with a certificate of that name; without a name it has none.
func (a *attacked) client(name string) *tls.Config {
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	c.RootCAs.AppendCertsFromPEM(a.ca.PEM())
	if name != "" {
		a.serial++
		cert, key := a.ca.Sign(a.serial, name)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			a.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// TestAttack attacks a server from inside all limits at once, by clients with certificates and by others. Its resident memory
// must stay below what clients may make the server hold and 64 MiB, a client that follows the protocol must be answered all
// the time, and the memory must be given back once the attack is over.
//
// XDSPUB_ATTACK is the length of the attack, such as 5m. With it the test also asserts how long the client waits.
func TestAttack(t *testing.T) {
	length, seed := dice(t, "XDSPUB_ATTACK", 3*time.Second, 1)
	size, streams := 48, 8
	long := os.Getenv("XDSPUB_ATTACK") != ""
	if long {
		size, streams = 256, 60
	}
	t.Logf("again: XDSPUB_SOAK_SEED=%d scripts/soak %v attack", seed, length)
	a := &attacked{t: t, grpc: address(envoytest.FreePort(t)), web: address(envoytest.FreePort(t)), ca: certs.NewAuthority(t)}
	dir := t.TempDir()
	cert, key := a.ca.Sign(1, "127.0.0.1")
	for name, data := range map[string][]byte{"cert": cert, "key": key, "ca": a.ca.PEM(), "tree/endpoints.json": []byte(editedFiles(0)["endpoints.json"]), "tree/clusters.json": []byte(editedFiles(0)["clusters.json"])} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.server = start(t, binary, "serve", "--grpc", a.grpc, "--http", a.web, "--tls-cert", filepath.Join(dir, "cert"), "--tls-key", filepath.Join(dir, "key"), "--client-ca", filepath.Join(dir, "ca"),
		"--max-client-memory", fmt.Sprintf("%dMiB", size), filepath.Join(dir, "tree"))
	a.server.WaitLog(t, "event=published ")
	honest, waits := a.client("spiffe://test/honest"), []time.Duration{}
	ask := func() {
		began := time.Now()
		envoytest.Eventually(t, patience, "an honest client is answered", func() (bool, string) {
			err := asksOnce(t.Context(), a.grpc, honest)
			return err == nil, fmt.Sprint(err)
		})
		waits = append(waits, time.Since(began))
	}
	ask()
	before := usageOf(t, a.server).memory

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var attackers sync.WaitGroup
	for i, attack := range a.attacks(streams) {
		for range 2 {
			name := fmt.Sprintf("spiffe://test/attacker-%d", i)
			config, anonymous := a.client(name), a.client("")
			attackers.Go(func() {
				for ctx.Err() == nil {
					attack(ctx, config, anonymous)
					sleep(ctx, 50*time.Millisecond)
				}
			})
		}
	}
	// On a busy machine it takes the attackers a while to reach a limit.
	refused := func() bool {
		log := a.server.Log()
		return strings.Contains(log, "event=client-refused") && strings.Contains(log, "--max-client-memory")
	}
	most := 0
	for began := time.Now(); time.Since(began) < length || !refused(); {
		if time.Since(began) > length+patience {
			t.Error("no refusal names the limit")
			break
		}
		ask()
		most = max(most, usageOf(t, a.server).memory)
		sleep(ctx, 20*time.Millisecond)
	}
	stop()
	attackers.Wait()
	slices.Sort(waits)
	p99 := waits[len(waits)*99/100]
	t.Logf("%d MiB before, %d MiB at most; %d requests of an honest client, the median %v, p99 %v", before>>20, most>>20, len(waits), waits[len(waits)/2], p99)
	if limit := (size + 64) << 20; most > limit {
		t.Errorf("%d bytes of resident memory, %d are allowed", most, limit)
	}
	if long && p99 > 100*time.Millisecond {
		t.Errorf("the honest client waits %v", p99)
	}
	began := time.Now()
	envoytest.Eventually(t, 30*time.Second, "memory is given back", func() (bool, string) {
		now := usageOf(t, a.server).memory
		return now < before+fragments, fmt.Sprintf("%d MiB, before the attack %d MiB", now>>20, before>>20)
	})
	t.Logf("memory is given back after %v", time.Since(began).Round(time.Second))
	ask()
}

// fragments is what a Go process keeps of a large heap after its objects are gone: pages that small objects with a
// long life share, and tables of the heap.
const fragments = 40 << 20

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// asksOnce connects, asks for endpoints, and takes the answer.
func asksOnce(ctx context.Context, address string, c *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(c)))
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "honest"}, TypeUrl: xds.Endpoints.URL(), ResourceNames: []string{"web"}}); err != nil {
		return err
	}
	_, err = s.Recv()
	return err
}

// attack attacks until it is refused or ctx ends. The first TLS has a certificate, the other has none.
type attack func(ctx context.Context, known, anonymous *tls.Config)

// attacks returns attacks from inside all limits but the memory's, each with so many streams or connections at once.
func (a *attacked) attacks(streams int) []attack {
	long := strings.Repeat("n", 4000)
	many := func(ctx context.Context, c *tls.Config, one func(context.Context, discoveryv3.AggregatedDiscoveryServiceClient, int)) {
		conn, err := grpc.NewClient(a.grpc, grpc.WithTransportCredentials(credentials.NewTLS(c)))
		if err != nil {
			return
		}
		defer conn.Close()
		var running sync.WaitGroup
		for i := range streams {
			running.Go(func() { one(ctx, discoveryv3.NewAggregatedDiscoveryServiceClient(conn), i) })
		}
		running.Wait()
	}
	requests := func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, n int, request func(k int) *discoveryv3.DeltaDiscoveryRequest) {
		s, err := client.DeltaAggregatedResources(ctx)
		if err != nil {
			return
		}
		for k := range n {
			if s.Send(request(k)) != nil {
				return
			}
		}
		for err == nil {
			_, err = s.Recv()
		}
	}
	parallel := func(ctx context.Context, one func()) {
		var running sync.WaitGroup
		for range streams {
			running.Go(one)
		}
		running.Wait()
	}
	return []attack{
		func(ctx context.Context, known, _ *tls.Config) { // names
			many(ctx, known, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
				requests(ctx, client, 10, func(k int) *discoveryv3.DeltaDiscoveryRequest {
					q := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL()}
					for j := range 900 {
						q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, fmt.Sprintf("%d-%d-%d-%s", i, k, j, long))
					}
					return q
				})
			})
		},
		func(ctx context.Context, known, _ *tls.Config) { // sets of parameters
			many(ctx, known, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
				requests(ctx, client, 100, func(k int) *discoveryv3.DeltaDiscoveryRequest {
					of := make(map[string]string)
					for j := range 100 {
						of[fmt.Sprintf("%d-%d-%s", i, j, long[:900])] = fmt.Sprintf("%d-%s", k, long[:900])
					}
					return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceLocatorsSubscribe: []*discoveryv3.ResourceLocator{{Name: "web", DynamicParameters: of}}}
				})
			})
		},
		func(ctx context.Context, known, _ *tls.Config) { // messages of two bytes
			many(ctx, known, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
				requests(ctx, client, 1, func(int) *discoveryv3.DeltaDiscoveryRequest {
					return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), Node: &corev3.Node{Extensions: slices.Repeat([]*corev3.Extension{{}}, 1<<20)}}
				})
			})
		},
		func(ctx context.Context, known, _ *tls.Config) { // headers
			many(ctx, known, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
				for j := range 10 {
					ctx := metadata.AppendToOutgoingContext(ctx, "x", fmt.Sprint(i, j)+long, "y", long, "z", long)
					s, err := client.StreamAggregatedResources(ctx)
					if err != nil || s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL()}) != nil {
						return
					}
				}
				sleep(ctx, time.Second)
			})
		},
		func(ctx context.Context, known, _ *tls.Config) { // reads no response
			many(ctx, known, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
				s, err := client.DeltaAggregatedResources(ctx)
				for q := (&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Endpoints.URL()}); err == nil && ctx.Err() == nil; {
					q.ResourceNamesSubscribe = []string{"web", fmt.Sprint(rand.Int())} // each is a response
					err = s.Send(q)
				}
			})
		},
		func(ctx context.Context, known, _ *tls.Config) { // requests that never end
			parallel(ctx, func() { a.unfinished(ctx, known, streams) })
		},
		func(ctx context.Context, known, _ *tls.Config) { // polls by REST
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: known, DisableKeepAlives: true}}
			parallel(ctx, func() {
				body := `{"node": {"id": "` + fmt.Sprint(rand.Int()) + `"}, "resource_names": ["` + strings.Repeat(long+`", "`, 900) + fmt.Sprint(rand.Int()) + `"]}`
				q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+a.web+"/v3/discovery:endpoints", strings.NewReader(body))
				if err != nil {
					return
				}
				q.Header.Set("Content-Type", "application/json")
				if r, err := client.Do(q); err == nil {
					io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
			})
		},
		func(ctx context.Context, _, anonymous *tls.Config) { // health, on connections that stay open
			var open []net.Conn
			defer func() {
				for _, c := range open {
					c.Close()
				}
			}()
			for range 10 * streams {
				c, err := (&tls.Dialer{Config: anonymous}).DialContext(ctx, "tcp", a.web)
				if err != nil {
					return
				}
				open = append(open, c)
				fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", long)
			}
		},
		func(ctx context.Context, _, _ *tls.Config) { // handshakes that never end
			var open []net.Conn
			defer func() {
				for _, c := range open {
					c.Close()
				}
			}()
			for range 20 * streams {
				c, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.grpc)
				if err != nil {
					return
				}
				open = append(open, c)
				c.Write(append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xf0, 0}, bytes.Repeat([]byte{3}, 16_000)...)) // the first part of a large ClientHello
			}
		},
	}
}

// unfinished begins requests of 4 MB on many streams, and ends none of them.
func (a *attacked) unfinished(ctx context.Context, c *tls.Config, streams int) {
	c = c.Clone()
	c.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", a.grpc)
	if err != nil {
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	go io.Copy(io.Discard, conn)
	io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	if f.WriteSettings() != nil {
		return
	}
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := range streams {
		id := uint32(2*i + 1)
		block.Reset()
		for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"}, {":authority", "a"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
			_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}) != nil {
			return
		}
		if f.WriteData(id, false, []byte{0, 0, 0x3f, 0xff, 0xff}) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond) // the server opens the window for the request
		for range 200 {
			if f.WriteData(id, false, make([]byte, 16<<10)) != nil {
				return
			}
		}
	}
	sleep(ctx, time.Second)
}
