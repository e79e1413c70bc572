package upstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/xds"
)

// failing follows a script, and waits until the error of the server has a text. The script runs again and again.
func failing(t *testing.T, want string, change func(*Upstream), run func(*scripted) error) {
	t.Helper()
	at, _ := listen(t, socketOf(t), script{run: run})
	f := followed(t, change, at)
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
			run: func(s *scripted) error { return s.send(xds.Endpoints, "1", wrap("a", endpoints("a"))) }},
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
			deep := &discoveryv3.Resource{Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": {Fields: map[string]*structpb.Value{"b": v}}}}}
			return s.send(xds.Cluster, "1", deep)
		}},
		"silence": {want: "the server has not answered within 50ms", change: func(u *Upstream) { u.bounds.answerWithin = 50 * time.Millisecond },
			run: (*scripted).drain},
		"an end": {want: "the server has ended the stream", run: func(*scripted) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) { failing(t, of.want, of.change, of.run) })
	}
}

// TestHalf sends clusters and no listeners: nothing is whole, and the client answers the clusters.
func TestHalf(t *testing.T) {
	answered := make(chan *discoveryv3.DeltaDiscoveryRequest, 10)
	failing(t, "it still has to send LDS", func(u *Upstream) { u.bounds.answerWithin = 3 * time.Second }, func(s *scripted) error {
		if err := s.send(xds.Cluster, "1", wrap("a", &clusterv3.Cluster{Name: "a"})); err != nil {
			return err
		}
		r, err := s.answer("1")
		if err == nil {
			answered <- r
		}
		return s.drain()
	})
	if r := <-answered; r.GetErrorDetail() != nil {
		t.Error(r)
	}
}

// TestHalfFailover follows the second server if the first sends clusters and no listeners.
func TestHalfFailover(t *testing.T) {
	first, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
		if err := s.send(xds.Cluster, "1"); err != nil {
			return err
		}
		return s.drain()
	}})
	second, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
		if err := whole(s, "1", wrap("a", &clusterv3.Cluster{Name: "a"})); err != nil {
			return err
		}
		return s.drain()
	}})
	f := followed(t, func(u *Upstream) { u.bounds.wholeWithin = time.Second }, first, second)
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
	broken := &discoveryv3.Resource{Name: "broken", Resource: &anypb.Any{TypeUrl: xds.Cluster.URL(), Value: []byte{0xff, 0xff}}}
	other := wrap("other", endpoints("other"))
	misnamed := wrap("misnamed", &clusterv3.Cluster{Name: "b"})
	unknown := &discoveryv3.Resource{Name: "unknown", Resource: &anypb.Any{TypeUrl: "type.googleapis.com/no.Such"}}
	nacks := make(chan string, 10)
	at, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
		if err := s.send(xds.Cluster, "half", wrap("good", &clusterv3.Cluster{Name: "good"}), broken, other, misnamed, unknown); err != nil {
			return err
		}
		r, err := s.answer("half")
		if err != nil {
			return err
		}
		nacks <- r.GetErrorDetail().GetMessage()
		if err := s.send(xds.Listener, "l"); err != nil {
			return err
		}
		return s.drain()
	}})
	f := followed(t, nil, at)
	words := <-nacks
	for _, want := range []string{"broken: the bytes can't be read", `misnamed: the response has cluster "b" under the name cluster "misnamed"`,
		`other: the response has endpoint assignment "other" under the name cluster "other"`, "unknown: "} {
		if !strings.Contains(words, want) {
			t.Errorf("%q lacks %q", words, want)
		}
	}
	c := f.wait(true, func(load.Contents) bool { return true })
	if list, _ := decoded(t.Context(), c); list.Count(diag.Error) < 4 {
		t.Error(list)
	}
}

// TestOneNonce answers each of several responses with one nonce, and drops what nobody has asked for.
func TestOneNonce(t *testing.T) {
	acks := make(chan error, 1)
	at, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
		if err := s.send(xds.Listener, "n"); err != nil {
			return err
		}
		if err := s.send(xds.Cluster, "n", wrap("a", edsCluster("a"))); err != nil {
			return err
		}
		for { // until the client asks for the endpoints
			r, err := s.Recv()
			if err != nil {
				return err
			}
			if slices.Contains(r.GetResourceNamesSubscribe(), "a") {
				break
			}
		}
		for range 3 {
			if err := s.send(xds.Endpoints, "n", wrap("a", endpoints("a")), wrap("nobody", endpoints("nobody"))); err != nil {
				return err
			}
		}
		for range 5 {
			if _, err := s.answer("n"); err != nil {
				acks <- err
				return err
			}
		}
		acks <- nil
		return s.drain()
	}})
	f := followed(t, nil, at)
	c := f.wait(true, has("CDS/a", "EDS/a"))
	f.Judged(load.Judgement{N: c.N, Accepted: true})
	if err := <-acks; err != nil {
		t.Error(err)
	}
}

// TestFlood sends many responses without a pause, and reads no answer before their end.
func TestFlood(t *testing.T) {
	const responses = 3000
	at, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
		if err := s.send(xds.Listener, "l"); err != nil {
			return err
		}
		for i := range responses {
			if err := s.send(xds.Cluster, fmt.Sprint(i), wrap("a", &clusterv3.Cluster{Name: "a", AltStatName: fmt.Sprint(i)})); err != nil {
				return err
			}
		}
		return s.drain()
	}})
	f := followed(t, func(u *Upstream) { u.bounds.pending, u.bounds.maxDelay = 20_000, 20*time.Millisecond }, at)
	want := fmt.Sprint(responses - 1)
	f.wait(true, func(c load.Contents) bool {
		return len(c.Files) == 1 && c.Files[0].Resources[0].Message().(*clusterv3.Cluster).GetAltStatName() == want
	})
}

// TestAbsent goes on without a name that the server does not have.
func TestAbsent(t *testing.T) {
	at, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
		if err := whole(s, "1", wrap("a", edsCluster("a")), wrap("b", edsCluster("b"))); err != nil {
			return err
		}
		for { // b does not exist, and a gets no answer
			r, err := s.Recv()
			if err != nil {
				return err
			}
			if slices.Contains(r.GetResourceNamesSubscribe(), "b") {
				break
			}
		}
		if err := s.Send(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: xds.Endpoints.URL(), Nonce: "2", RemovedResources: []string{"b"}}); err != nil {
			return err
		}
		return s.drain()
	}})
	followed(t, nil, at).wait(true, has("CDS/a", "CDS/b"))
}

// TestTTL removes a resource whose TTL ends, unless a heartbeat prolongs it.
func TestTTL(t *testing.T) {
	beat := make(chan struct{})
	at, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
		dies, lives := wrap("dies", &clusterv3.Cluster{Name: "dies"}), wrap("lives", &clusterv3.Cluster{Name: "lives"})
		dies.Ttl, lives.Ttl = durationpb.New(400*time.Millisecond), durationpb.New(400*time.Millisecond)
		if err := whole(s, "1", dies, lives); err != nil {
			return err
		}
		<-beat
		if err := s.send(xds.Cluster, "2", &discoveryv3.Resource{Name: "lives", Ttl: durationpb.New(time.Hour)}); err != nil {
			return err
		}
		return s.drain()
	}})
	f := followed(t, nil, at)
	f.wait(true, has("CDS/dies", "CDS/lives"))
	close(beat)
	f.wait(true, has("CDS/lives"))
}

// TestWaitingServer sends the listeners after the ACK of the clusters.
func TestWaitingServer(t *testing.T) {
	at, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
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
	}})
	followed(t, nil, at).wait(true, has("CDS/a", "LDS/l", "RDS/r"))
}

// TestBudget follows two control planes with one Budget. The second is refused until the first is no longer followed.
func TestBudget(t *testing.T) {
	large := wrap("large", &clusterv3.Cluster{Name: "large", AltStatName: strings.Repeat("x", 100_000)})
	plane := func() string {
		at, _ := listen(t, socketOf(t), script{run: func(s *scripted) error {
			if err := whole(s, "1", large); err != nil {
				return err
			}
			return s.drain()
		}})
		return at
	}
	budget := NewBudget(150_000)
	share := func(u *Upstream) { u.options.Budget = budget }
	first := followed(t, share, plane())
	first.wait(true, has("CDS/large"))
	second := followed(t, share, plane())
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
