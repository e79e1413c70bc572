package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// attacked is a server whose clients need certificates. Its methods start attackers and honest clients.
type attacked struct {
	t         *testing.T
	grpc, web string // addresses
	ca        *certs.Authority
	server    *process
	serial    int64
}

// startAttacked starts a server with a --max-client-memory of size MiB.
func startAttacked(t *testing.T, size int) *attacked {
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
	return a
}

// client returns the TLS configuration of a client with a certificate of a name.
func (a *attacked) client(name string) *tls.Config {
	a.serial++
	pair, err := tls.X509KeyPair(a.ca.Sign(a.serial, name))
	if err != nil {
		a.t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	c.RootCAs.AppendCertsFromPEM(a.ca.PEM())
	return c
}

// startAttackers starts two attackers of each kind in another process, which leaves the processors to the server:
// real attackers have their own processors. Each attacker has its own certificate. Attacker n connects from the
// address from(n). stop ends the process.
func (a *attacked) startAttackers(streams int, from func(n int) string) (stop func()) {
	plan := attackPlan{GRPC: a.grpc, Web: a.web, CA: a.ca.PEM(), Streams: streams}
	for i := range 2 * len(attacks) {
		a.serial++
		who := attacker{Address: from(i)}
		who.Cert, who.Key = a.ca.Sign(a.serial, fmt.Sprintf("spiffe://test/attacker-%d", i))
		plan.Attackers = append(plan.Attackers, who)
	}
	text, err := json.Marshal(plan)
	if err != nil {
		a.t.Fatal(err)
	}
	cmd := exec.Command("nice", "-n", "19", os.Args[0])
	cmd.Env = append(environment(), attackersVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			a.t.Error("attackers:", err)
		}
	})
	a.t.Cleanup(stop)
	return stop
}

// honest is a client that follows the protocol.
type honest struct {
	*attacked
	tls      *tls.Config
	standing *grpc.ClientConn
	asking   sync.WaitGroup
	most     chan struct{} // has an element for each request without an answer

	mu    sync.Mutex
	waits map[string][]time.Duration // by what the client does
}

// The ways in which an honest client asks.
const (
	byNew      = "by a new connection"
	byStanding = "by a connection that stands"
)

func (a *attacked) honest() *honest {
	h := &honest{attacked: a, tls: a.client("spiffe://test/honest"), most: make(chan struct{}, 100), waits: make(map[string][]time.Duration)}
	var err error
	if h.standing, err = grpc.NewClient(a.grpc, grpc.WithTransportCredentials(credentials.NewTLS(h.tls))); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { h.standing.Close() })
	return h
}

// ask asks by a new connection and by an old one. It does not wait for the answers, unless a hundred requests have
// no answer yet.
func (h *honest) ask() {
	for how, ask := range map[string]func() error{
		byNew:      func() error { return asksOnce(h.t.Context(), h.grpc, h.tls) },
		byStanding: func() error { return asks(h.t.Context(), h.standing) },
	} {
		h.most <- struct{}{}
		began := time.Now()
		h.asking.Go(func() {
			defer func() { <-h.most }()
			// Not Eventually: it would end the test, which another goroutine must not do.
			err := ask()
			for err != nil && time.Since(began) < patience && h.t.Context().Err() == nil {
				time.Sleep(10 * time.Millisecond)
				err = ask()
			}
			if err != nil {
				h.t.Errorf("an honest client is not answered %s: %v", how, err)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.waits[how] = append(h.waits[how], time.Since(began))
		})
	}
}

// waited waits for all answers, and returns the 99th percentile of their waits, by what the client did.
func (h *honest) waited(when string) (p99 map[string]time.Duration) {
	h.asking.Wait()
	p99 = make(map[string]time.Duration)
	for how, d := range h.waits {
		slices.Sort(d)
		p99[how] = d[len(d)*99/100]
		h.t.Logf("%s, %d requests %s: the median %v, p99 %v, the longest %v", when, len(d), how, d[len(d)/2].Round(time.Millisecond/10), p99[how].Round(time.Millisecond/10), d[len(d)-1].Round(time.Millisecond/10))
	}
	clear(h.waits)
	return p99
}

// TestAttack attacks a server by all attacks at once, each within the limits, by clients with and without
// certificates. The resident memory of the server must stay below --max-client-memory plus 64 MiB, an honest client
// must get all answers, and the server must return the memory after the attack.
//
// XDSPUB_ATTACK is the length of the attack, such as 5m. If it is set, the test also limits how long the honest
// client waits, and makes a second attack from the address of the honest client: before the server knows its
// certificate, a new connection counts with those of the attackers.
func TestAttack(t *testing.T) {
	length, seed := dice(t, "XDSPUB_ATTACK", 3*time.Second, 1)
	size, streams := 48, 8
	long := os.Getenv("XDSPUB_ATTACK") != ""
	if long {
		size, streams = 256, 60
	}
	t.Logf("again: XDSPUB_SOAK_SEED=%d scripts/soak %v attack", seed, length)
	a := startAttacked(t, size)
	h := a.honest()
	for range 20 {
		h.ask()
		time.Sleep(askGap)
	}
	h.waited("before the attack")
	before := usageOf(t, a.server).memory
	a.attack(h, length, size, streams, func(n int) string {
		if runtime.GOOS != "linux" { // other systems have only the address 127.0.0.1
			return "127.0.0.1"
		}
		return fmt.Sprintf("127.0.0.%d", 2+n)
	})
	p99 := h.waited("while others attack")
	if long {
		for how, d := range p99 {
			if d > patienceOfHonest {
				t.Errorf("the honest client waits %v %s", d, how)
			}
		}
		a.attack(h, length, size, streams, func(int) string { return "127.0.0.1" })
		if d := h.waited("while others attack from its address")[byStanding]; d > patienceOfHonest {
			t.Errorf("the honest client waits %v %s", d, byStanding)
		}
	}
	began := time.Now()
	envoytest.Eventually(t, 30*time.Second, "memory is given back", func() (bool, string) {
		now := usageOf(t, a.server).memory
		return now < before+fragments, fmt.Sprintf("%d MiB, before the attack %d MiB", now>>20, before>>20)
	})
	t.Logf("memory is given back after %v", time.Since(began).Round(time.Second))
	h.ask()
	h.waited("after the attack")
}

const (
	// askGap is the time between two requests of an honest client.
	askGap = 50 * time.Millisecond
	// patienceOfHonest bounds the wait of 99 of 100 requests of an honest client.
	patienceOfHonest = 100 * time.Millisecond
)

// attack attacks for a time, and until the memory of clients is full, while an honest client asks.
func (a *attacked) attack(h *honest, length time.Duration, size, streams int, from func(n int) string) {
	defer a.startAttackers(streams, from)()
	// On a busy machine, the attackers need a while to reach a limit.
	refused := func() bool {
		log := a.server.Log()
		return strings.Contains(log, "event=client-refused") && strings.Contains(log, "--max-client-memory")
	}
	most := 0
	for began := time.Now(); time.Since(began) < length || !refused(); {
		if time.Since(began) > length+patience {
			a.t.Error("no refusal names the limit")
			break
		}
		h.ask()
		most = max(most, usageOf(a.t, a.server).memory)
		time.Sleep(askGap)
	}
	h.asking.Wait() // the answers must come during the attack
	a.t.Logf("%d MiB at most", most>>20)
	if limit := (size + 64) << 20; most > limit {
		a.t.Errorf("%d bytes of resident memory, %d are allowed", most, limit)
	}
}

// fragments is the memory that a Go process keeps of a large heap after its objects were freed: pages with a few
// long-lived objects, and tables of the heap.
const fragments = 40 << 20

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// asksOnce connects, asks for endpoints, and takes the answer.
func asksOnce(ctx context.Context, address string, c *tls.Config) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(c)))
	if err != nil {
		return err
	}
	defer conn.Close()
	return asks(ctx, conn)
}

// asks asks for endpoints, and takes the answer.
func asks(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
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
