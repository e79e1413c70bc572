package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"xdspub/xds"
)

// attackersVariable is the environment variable that makes this program attack a server instead of testing.
// Its value is an attackPlan in JSON.
const attackersVariable = "XDSPUB_ATTACKERS"

// attackPlan has the addresses of the server, and the identities of the attackers.
type attackPlan struct {
	GRPC, Web string // addresses of the server
	CA        []byte // signs the server's certificate
	// Attackers are the identities of attackers. Attacker n makes attack n.
	Attackers []attacker
	// Streams is the number of concurrent streams or connections of each attack.
	Streams int
}

// attacker is the identity of an attacker.
type attacker struct {
	Address   string // from which the attacker connects
	Cert, Key []byte
}

// attackAll attacks until standard input ends.
func attackAll(text string) int {
	var plan attackPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var running sync.WaitGroup
	for i, a := range plan.Attackers {
		s, err := newAssault(plan, a)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		running.Go(func() {
			for ctx.Err() == nil {
				attacks[i%len(attacks)](ctx, s)
				sleep(ctx, 50*time.Millisecond)
			}
		})
	}
	running.Wait()
	return 0
}

// assault has the means of one attacker.
type assault struct {
	attackPlan
	dialer           net.Dialer
	known, anonymous *tls.Config // with a certificate and without
}

func newAssault(plan attackPlan, a attacker) (*assault, error) {
	pair, err := tls.X509KeyPair(a.Cert, a.Key)
	if err != nil {
		return nil, err
	}
	s := &assault{attackPlan: plan, dialer: net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.Address)}}}
	s.anonymous = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	s.anonymous.RootCAs.AppendCertsFromPEM(plan.CA)
	s.known = s.anonymous.Clone()
	s.known.Certificates = []tls.Certificate{pair}
	return s, nil
}

// longName is a part of long names.
var longName = strings.Repeat("n", 4000)

// dial connects by gRPC, with a certificate.
func (a *assault) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+a.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(a.known)), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return a.dialer.DialContext(ctx, "tcp", address)
	}))
}

// many calls one for each of a.Streams streams of one connection, concurrently.
func (a *assault) many(ctx context.Context, one func(context.Context, discoveryv3.AggregatedDiscoveryServiceClient, int)) {
	conn, err := a.dial()
	if err != nil {
		return
	}
	defer conn.Close()
	var running sync.WaitGroup
	for i := range a.Streams {
		running.Go(func() { one(ctx, discoveryv3.NewAggregatedDiscoveryServiceClient(conn), i) })
	}
	running.Wait()
}

// parallel calls one a.Streams times, concurrently.
func (a *assault) parallel(one func()) {
	var running sync.WaitGroup
	for range a.Streams {
		running.Go(one)
	}
	running.Wait()
}

// requests sends n requests, and reads responses until the stream ends.
func requests(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, n int, request func(k int) *discoveryv3.DeltaDiscoveryRequest) {
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

// attacks are attacks that respect all limits except that of memory. Each goes on until the server refuses it or
// ctx ends.
var attacks = []func(ctx context.Context, a *assault){
	func(ctx context.Context, a *assault) { // names
		a.many(ctx, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
			requests(ctx, client, 10, func(k int) *discoveryv3.DeltaDiscoveryRequest {
				q := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL()}
				for j := range 900 {
					q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, fmt.Sprintf("%d-%d-%d-%s", i, k, j, longName))
				}
				return q
			})
		})
	},
	func(ctx context.Context, a *assault) { // sets of parameters
		a.many(ctx, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
			requests(ctx, client, 100, func(k int) *discoveryv3.DeltaDiscoveryRequest {
				of := make(map[string]string)
				for j := range 100 {
					of[fmt.Sprintf("%d-%d-%s", i, j, longName[:900])] = fmt.Sprintf("%d-%s", k, longName[:900])
				}
				return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceLocatorsSubscribe: []*discoveryv3.ResourceLocator{{Name: "web", DynamicParameters: of}}}
			})
		})
	},
	func(ctx context.Context, a *assault) { // messages of two bytes
		a.many(ctx, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
			requests(ctx, client, 1, func(int) *discoveryv3.DeltaDiscoveryRequest {
				return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), Node: &corev3.Node{Extensions: slices.Repeat([]*corev3.Extension{{}}, 1<<20)}}
			})
		})
	},
	func(ctx context.Context, a *assault) { // headers
		a.many(ctx, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
			for j := range 10 {
				ctx := metadata.AppendToOutgoingContext(ctx, "x", fmt.Sprint(i, j)+longName, "y", longName, "z", longName)
				s, err := client.StreamAggregatedResources(ctx)
				if err != nil || s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL()}) != nil {
					return
				}
			}
			sleep(ctx, time.Second)
		})
	},
	func(ctx context.Context, a *assault) { // reads no response
		a.many(ctx, func(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient, i int) {
			s, err := client.DeltaAggregatedResources(ctx)
			for q := (&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Endpoints.URL()}); err == nil && ctx.Err() == nil; {
				q.ResourceNamesSubscribe = []string{"web", fmt.Sprint(rand.Int())} // each is a response
				err = s.Send(q)
			}
		})
	},
	func(ctx context.Context, a *assault) { // requests that never end
		a.parallel(func() { a.unfinished(ctx) })
	},
	func(ctx context.Context, a *assault) { // polls by REST
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: a.known, DialContext: a.dialer.DialContext, DisableKeepAlives: true}}
		a.parallel(func() {
			body := `{"node": {"id": "` + fmt.Sprint(rand.Int()) + `"}, "resource_names": ["` + strings.Repeat(longName+`", "`, 900) + fmt.Sprint(rand.Int()) + `"]}`
			q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+a.Web+"/v3/discovery:endpoints", strings.NewReader(body))
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
	func(ctx context.Context, a *assault) { // health, on connections that stay open
		var open []net.Conn
		defer func() {
			for _, c := range open {
				c.Close()
			}
		}()
		for range 10 * a.Streams {
			c, err := (&tls.Dialer{NetDialer: &a.dialer, Config: a.anonymous}).DialContext(ctx, "tcp", a.Web)
			if err != nil {
				return
			}
			open = append(open, c)
			fmt.Fprintf(c, "GET /livez HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", longName)
		}
	},
	func(ctx context.Context, a *assault) { // connections as fast as they come, which say nothing
		a.parallel(func() {
			for range 1000 {
				c, err := a.dialer.DialContext(ctx, "tcp", a.GRPC)
				if err != nil {
					return
				}
				c.Close()
			}
		})
	},
	func(ctx context.Context, a *assault) { // handshakes as fast as they come, without a certificate
		a.parallel(func() {
			for range 100 {
				if c, err := (&tls.Dialer{NetDialer: &a.dialer, Config: a.anonymous}).DialContext(ctx, "tcp", a.GRPC); err == nil {
					c.Close()
				}
			}
		})
	},
	func(ctx context.Context, a *assault) { // handshakes that never end
		var open []net.Conn
		defer func() {
			for _, c := range open {
				c.Close()
			}
		}()
		for range 20 * a.Streams {
			c, err := a.dialer.DialContext(ctx, "tcp", a.GRPC)
			if err != nil {
				return
			}
			open = append(open, c)
			c.Write(append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xf0, 0}, bytes.Repeat([]byte{3}, 16_000)...)) // the first part of a large ClientHello
		}
	},
}

// unfinished begins requests of 4 MB on many streams, and ends none of them.
func (a *assault) unfinished(ctx context.Context) {
	c := a.known.Clone()
	c.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{NetDialer: &a.dialer, Config: c}).DialContext(ctx, "tcp", a.GRPC)
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
	for i := range a.Streams {
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
