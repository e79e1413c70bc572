package upstream

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/xds"
)

// failing follows a script, and waits until the error of the server has a text. The script runs again and again. A
// script that returns io.EOF ends the streams.
func failing(t *testing.T, by Transport, want string, change func(*Upstream), run func(*scripted) error) {
	t.Helper()
	f := followed(t, by, change, serving(t, by, func(s *scripted) error {
		err := run(s)
		switch {
		case err == nil:
			return s.drain()
		case errors.Is(err, io.EOF):
			return nil
		}
		return err
	}))
	var err error
	eventually(t, want, func() bool {
		_, err = f.Read(t.Context())
		return err != nil && strings.Contains(err.Error(), want)
	})
	if f.State().Connected {
		t.Error("the client follows the server")
	}
}

// TestProtocolErrors sends what ends the stream.
func TestProtocolErrors(t *testing.T) {
	large := &clusterv3.Cluster{Name: "large", AltStatName: strings.Repeat("x", 200_000)}
	for name, of := range map[string]struct {
		want   string
		change func(*Upstream)
		run    func(*scripted) error
	}{
		"another type": {want: `the server sends the type "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", which nobody asked for`,
			run: func(s *scripted) error { return s.misplace(xds.Cluster, xds.Endpoints, "1", wrap("a", endpoints("a"))) }},
		"no nonce": {want: "the server sends a CDS response without a nonce",
			run: func(s *scripted) error { return s.send(xds.Cluster, "") }},
		"a long name": {want: "whose name has 20000 bytes, and 16384 are allowed",
			run: func(s *scripted) error {
				return s.send(xds.Cluster, "1", wrap(strings.Repeat("n", 20_000), edsCluster("a")))
			}},
		"a large response": {want: "ResourceExhausted", change: func(u *Upstream) { u.bounds.response = 100_000 },
			run: func(s *scripted) error { return s.send(xds.Cluster, "1", wrap("large", large)) }},
		"many bytes": {want: "the server sends more than 1000000 bytes of resources", change: func(u *Upstream) { u.bounds.total = 1_000_000 },
			run: func(s *scripted) error {
				for i := range 10 {
					if err := s.send(xds.Cluster, fmt.Sprint(i), wrap(fmt.Sprint(i), large)); err != nil {
						return err
					}
				}
				return s.drain()
			}},
		"many resources": {want: "the server sends more than 100 resources", change: func(u *Upstream) { u.bounds.resources = 100 },
			run: func(s *scripted) error {
				for i := range 200 {
					if err := s.send(xds.Cluster, fmt.Sprint(i), wrap(fmt.Sprint(i), &clusterv3.Cluster{Name: fmt.Sprint(i)})); err != nil {
						return err
					}
				}
				return s.drain()
			}},
		"much memory": {want: "of memory", run: func(s *scripted) error { // many messages inside of each other
			v := structpb.NewStringValue(strings.Repeat("x", 5_000_000))
			for range 30 {
				v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
			}
			deep := &discoveryv3.Resource{Name: "deep", Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": {Fields: map[string]*structpb.Value{"b": v}}}}}
			return s.send(xds.Cluster, "1", deep)
		}},
		"silence": {want: "the server has not answered within 50ms", change: func(u *Upstream) { u.bounds.answerWithin = 50 * time.Millisecond },
			run: (*scripted).drain},
		"an end":     {want: "the server has ended the stream", run: func(*scripted) error { return io.EOF }},
		"no service": {want: "Unimplemented: not here", run: func(*scripted) error { return status.Error(codes.Unimplemented, "not here") }},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, by Transport) { failing(t, by, of.want, of.change, of.run) })
		})
	}
}

// TestHalf sends clusters and no listeners: nothing is whole, and the client answers the clusters.
func TestHalf(t *testing.T) {
	overEach(t, testHalf)
}

func testHalf(t *testing.T, by Transport) {
	answered := make(chan heard, 10)
	failing(t, by, "it still has to send LDS", func(u *Upstream) { u.bounds.answerWithin = 3 * time.Second }, func(s *scripted) error {
		if err := s.send(xds.Cluster, "1", wrap("a", &clusterv3.Cluster{Name: "a"})); err != nil {
			return err
		}
		r, err := s.answer("1")
		if err == nil {
			answered <- r
		}
		return s.drain()
	})
	if r := <-answered; r.reason != "" {
		t.Error(r)
	}
}

// TestHalfFailover follows the second server if the first sends clusters and no listeners.
func TestHalfFailover(t *testing.T) {
	overEach(t, testHalfFailover)
}

func testHalfFailover(t *testing.T, by Transport) {
	first := serving(t, by, func(s *scripted) error {
		if err := s.send(xds.Cluster, "1"); err != nil {
			return err
		}
		return s.drain()
	})
	second := serving(t, by, func(s *scripted) error {
		if err := whole(s, "1", wrap("a", &clusterv3.Cluster{Name: "a"})); err != nil {
			return err
		}
		return s.drain()
	})
	f := followed(t, by, func(u *Upstream) { u.bounds.wholeWithin = time.Second }, first, second)
	f.wait(true, has("CDS/a"))
	if s := f.State(); s.Server != second {
		t.Errorf("%+v", s)
	}
}

// whole sends an empty list of listeners, and clusters.
func whole(s *scripted, nonce string, clusters ...*discoveryv3.Resource) error {
	if err := s.send(xds.Listener, nonce+"l"); err != nil {
		return err
	}
	return s.send(xds.Cluster, nonce, clusters...)
}

// TestGarbage sends resources that can't be read beside a good one, of a whole and of a half world.
func TestGarbage(t *testing.T) {
	overEach(t, testGarbage)
}

func testGarbage(t *testing.T, by Transport) {
	broken := &discoveryv3.Resource{Name: "broken", Resource: &anypb.Any{TypeUrl: xds.Cluster.URL(), Value: []byte{0xff, 0xff}}}
	other := wrap("other", endpoints("other"))
	misnamed := wrap("misnamed", &clusterv3.Cluster{Name: "b"})
	unknown := &discoveryv3.Resource{Name: "unknown", Resource: &anypb.Any{TypeUrl: "type.googleapis.com/no.Such"}}
	nacks := make(chan string, 10)
	at := serving(t, by, func(s *scripted) error {
		if err := s.send(xds.Cluster, "half", wrap("good", &clusterv3.Cluster{Name: "good"}), broken, other, misnamed, unknown); err != nil {
			return err
		}
		r, err := s.answer("half")
		if err != nil {
			return err
		}
		nacks <- r.reason
		if err := s.send(xds.Listener, "l"); err != nil {
			return err
		}
		return s.drain()
	})
	f := followed(t, by, nil, at)
	words := <-nacks
	for _, want := range []string{"broken: the bytes can't be read", `misnamed: the response has cluster "b" under the name cluster "misnamed"`,
		`other: the response has endpoint assignment "other" under the name cluster "other"`, "unknown: "} {
		if !strings.Contains(words, want) {
			t.Errorf("%q lacks %q", words, want)
		}
	}
	c := f.wait(true, func(load.Contents) bool { return true })
	if list, _ := judgeDecoded(t.Context(), c); list.Count(diag.Error) < 4 {
		t.Error(list)
	}
}

// TestOneNonce answers each of several responses with one nonce, and drops what nobody has asked for.
func TestOneNonce(t *testing.T) {
	overEach(t, testOneNonce)
}

func testOneNonce(t *testing.T, by Transport) {
	acks := make(chan error, 1)
	at := serving(t, by, func(s *scripted) error {
		if err := s.send(xds.Listener, "n"); err != nil {
			return err
		}
		if err := s.send(xds.Cluster, "n", wrap("a", edsCluster("a"))); err != nil {
			return err
		}
		if err := s.asks(xds.Endpoints, "a"); err != nil {
			return err
		}
		for range 3 {
			if err := s.send(xds.Endpoints, "n", wrap("a", endpoints("a")), wrap("nobody", endpoints("nobody"))); err != nil {
				return err
			}
		}
		answers := 5
		if !by.delta() { // only the last response of a type counts
			answers = 3
		}
		for range answers {
			if _, err := s.answer("n"); err != nil {
				acks <- err
				return err
			}
		}
		acks <- nil
		return s.drain()
	})
	f := followed(t, by, nil, at)
	c := f.wait(true, has("CDS/a", "EDS/a"))
	f.Judged(load.Judgement{N: c.N, Accepted: true})
	if err := <-acks; err != nil {
		t.Error(err)
	}
}

// TestFlood sends many responses without a pause, and reads no answer before their end.
func TestFlood(t *testing.T) {
	overEach(t, testFlood)
}

func testFlood(t *testing.T, by Transport) {
	const responses = 3000
	at := serving(t, by, func(s *scripted) error {
		if err := s.send(xds.Listener, "l"); err != nil {
			return err
		}
		for i := range responses {
			if err := s.send(xds.Cluster, fmt.Sprint(i), wrap("a", &clusterv3.Cluster{Name: "a", AltStatName: fmt.Sprint(i)})); err != nil {
				return err
			}
		}
		return s.drain()
	})
	f := followed(t, by, func(u *Upstream) { u.bounds.pending, u.bounds.maxDelay = 20_000, 20*time.Millisecond }, at)
	want := fmt.Sprint(responses - 1)
	f.wait(true, func(c load.Contents) bool {
		return len(c.Files) == 1 && c.Files[0].Resources[0].Message().(*clusterv3.Cluster).GetAltStatName() == want
	})
}

// TestAbsent goes on without a name that the server does not have.
func TestAbsent(t *testing.T) {
	overEach(t, testAbsent)
}

func testAbsent(t *testing.T, by Transport) {
	at := serving(t, by, func(s *scripted) error {
		if err := whole(s, "1", wrap("a", edsCluster("a")), wrap("b", edsCluster("b"))); err != nil {
			return err
		}
		if err := s.asks(xds.Endpoints, "b"); err != nil {
			return err
		}
		if err := s.remove(xds.Endpoints, "2", "b"); err != nil { // b does not exist, and a gets no answer
			return err
		}
		return s.drain()
	})
	followed(t, by, nil, at).wait(true, has("CDS/a", "CDS/b"))
}

// TestTTL removes a resource whose TTL ends, unless a heartbeat prolongs it.
func TestTTL(t *testing.T) {
	overEach(t, testTTL)
}

func testTTL(t *testing.T, by Transport) {
	beat := make(chan struct{})
	at := serving(t, by, func(s *scripted) error {
		dies, lives := wrap("dies", &clusterv3.Cluster{Name: "dies"}), wrap("lives", &clusterv3.Cluster{Name: "lives"})
		dies.Ttl, lives.Ttl = durationpb.New(400*time.Millisecond), durationpb.New(400*time.Millisecond)
		for beating := false; !beating; { // a slow client sees both, too
			if err := whole(s, "1", dies, lives); err != nil {
				return err
			}
			select {
			case <-beat:
				beating = true
			case <-time.After(100 * time.Millisecond):
			}
		}
		if err := s.beat(xds.Cluster, "2", &discoveryv3.Resource{Name: "lives", Ttl: durationpb.New(time.Hour)}); err != nil {
			return err
		}
		return s.drain()
	})
	f := followed(t, by, nil, at)
	f.wait(true, has("CDS/dies", "CDS/lives"))
	close(beat)
	f.wait(true, has("CDS/lives"))
}

// TestWaitingServer sends the listeners after the ACK of the clusters.
func TestWaitingServer(t *testing.T) {
	overEach(t, testWaitingServer)
}

func testWaitingServer(t *testing.T, by Transport) {
	at := serving(t, by, func(s *scripted) error {
		if err := s.send(xds.Cluster, "1", wrap("a", &clusterv3.Cluster{Name: "a"})); err != nil {
			return err
		}
		if _, err := s.answer("1"); err != nil {
			return err
		}
		if err := s.send(xds.Listener, "2", wrap("l", listener("l", "r", ""))); err != nil {
			return err
		}
		if _, err := s.answer("2"); err != nil {
			return err
		}
		if err := s.send(xds.RouteConfiguration, "3", wrap("r", routes("r"))); err != nil {
			return err
		}
		return s.drain()
	})
	followed(t, by, nil, at).wait(true, has("CDS/a", "LDS/l", "RDS/r"))
}

// TestUnnamed sends resources without a readable name, and a name twice: the client refuses the response.
func TestUnnamed(t *testing.T) {
	overEach(t, testUnnamed)
}

func testUnnamed(t *testing.T, by Transport) {
	broken := &discoveryv3.Resource{Resource: &anypb.Any{TypeUrl: xds.Endpoints.URL(), Value: []byte{0xff, 0xff}}}
	a := wrap("a", endpoints("a"))
	nacks := make(chan string, 10)
	at := serving(t, by, func(s *scripted) error {
		if err := whole(s, "1", wrap("a", edsCluster("a")), wrap("b", edsCluster("b"))); err != nil {
			return err
		}
		if err := s.asks(xds.Endpoints, "b"); err != nil {
			return err
		}
		for nonce, list := range [][]*discoveryv3.Resource{{a, broken}, {a, a}, {a, wrap("b", endpoints("b"))}} {
			if err := s.sendAll(xds.Endpoints, fmt.Sprint("e", nonce), list...); err != nil {
				return err
			}
			r, err := s.answer(fmt.Sprint("e", nonce))
			if err != nil {
				return err
			}
			nacks <- r.reason
		}
		return s.drain()
	})
	f := followed(t, by, func(u *Upstream) { u.bounds.absentAfter, u.options.Runtime = 20*time.Second, nil }, at)
	for _, want := range []string{"the bytes can't be read", `the response has the endpoint assignment "a" more than once`} {
		if words := <-nacks; !strings.Contains(words, want) {
			t.Errorf("%q lacks %q", words, want)
		}
	}
	c := f.wait(true, has("CDS/a", "CDS/b", "EDS/a", "EDS/b"))
	f.Judged(load.Judgement{N: c.N, Accepted: true})
	if words := <-nacks; words != "" || len(c.Findings) > 0 {
		t.Error(words, c.Findings)
	}
}

// TestLate changes the subscription to endpoints while a response with endpoints waits for its verdict.
func TestLate(t *testing.T) {
	overEach(t, testLate)
}

func testLate(t *testing.T, by Transport) {
	at := serving(t, by, func(s *scripted) error {
		if err := whole(s, "1", wrap("a", edsCluster("a"))); err != nil {
			return err
		}
		if err := s.asks(xds.Endpoints, "a"); err != nil {
			return err
		}
		if err := s.send(xds.Endpoints, "2", wrap("a", endpoints("a"))); err != nil {
			return err
		}
		if err := s.send(xds.Cluster, "3", wrap("a", edsCluster("a")), wrap("b", edsCluster("b"))); err != nil {
			return err
		}
		for asked := false; !asked; {
			is, err := s.next()
			if err != nil {
				return err
			}
			asked = is.of == xds.Endpoints && slices.Contains(is.names, "b")
			asked = asked && (by.delta() || is.nonce == "2") // a server by state of the world ignores other requests
		}
		if err := s.send(xds.Endpoints, "4", wrap("b", endpoints("b"))); err != nil {
			return err
		}
		return s.drain()
	})
	f := followed(t, by, func(u *Upstream) { u.bounds.absentAfter, u.options.Runtime = 20*time.Second, nil }, at)
	f.wait(false, has("CDS/a", "CDS/b", "EDS/a", "EDS/b")) // nothing is judged meanwhile
}

// TestRepeated sends a refused response again and again. By state of the world, the NACKs have pauses, and an ACK
// follows once the rest is valid.
func TestRepeated(t *testing.T) {
	for _, by := range []Transport{Aggregated, Singleton} {
		t.Run(string(by), func(t *testing.T) { testRepeated(t, by) })
	}
}

func testRepeated(t *testing.T, by Transport) {
	refused, acked := make(chan int, 1000), make(chan bool)
	at := serving(t, by, func(s *scripted) error {
		if err := whole(s, "0", wrap("a", &clusterv3.Cluster{Name: "a"})); err != nil {
			return err
		}
		for n := 0; ; n++ {
			is, err := s.answer(fmt.Sprint(n))
			if err != nil {
				return err
			}
			if is.reason == "" {
				close(acked)
				return s.drain()
			}
			refused <- n
			if err := s.send(xds.Cluster, fmt.Sprint(n+1)); err != nil {
				return err
			}
		}
	})
	f := followed(t, by, func(u *Upstream) { u.options.Runtime = nil }, at)
	c := f.wait(false, has("CDS/a"))
	f.Judged(load.Judgement{N: c.N, Findings: diag.List{{Code: "a-rule", Message: "wrong", Resource: diag.Resource{Type: xds.Listener.URL(), Name: "l"}}}})
	<-refused
	<-refused
	if is, _ := f.Read(t.Context()); is.N != c.N {
		t.Errorf("contents %d are judged again, which are as contents %d", is.N, c.N)
	}
	eventually(t, "the control plane gets an ACK", func() bool {
		c, _ := f.Read(t.Context())
		f.Judged(load.Judgement{N: c.N, Accepted: true})
		select {
		case <-acked:
			return true
		default:
			return false
		}
	})
}

// TestBudget follows two control planes with one Budget. The second is refused until the first is no longer followed.
func TestBudget(t *testing.T) {
	large := wrap("large", &clusterv3.Cluster{Name: "large", AltStatName: strings.Repeat("x", 100_000)})
	plane := func() string {
		return serving(t, Aggregated, func(s *scripted) error {
			if err := whole(s, "1", large); err != nil {
				return err
			}
			return s.drain()
		})
	}
	budget := NewBudget(150_000)
	share := func(u *Upstream) { u.options.Budget = budget }
	first := followed(t, Aggregated, share, plane())
	first.wait(true, has("CDS/large"))
	second := followed(t, Aggregated, share, plane())
	eventually(t, "the second is refused", func() bool {
		_, err := second.Read(t.Context())
		return err != nil && strings.Contains(err.Error(), "the control plane sends more than 150000 bytes of resources for all nodes together")
	})
	first.stop()
	second.wait(true, has("CDS/large"))
	second.stop()
	if held := budget.held.Load(); held != 0 {
		t.Errorf("%d bytes stay", held)
	}
}
