package serve_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"

	"xdspub/serve/cache"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// TestOrderAfterAnHour checks that listeners wait for the ACK of clusters, also after a stream was quiet for
// an hour. A client that doesn't acknowledge clusters gets listeners after half a minute.
func TestOrderAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, cache: cache.New(cache.Options{})}
		publish := func(words ...string) {
			t.Helper()
			if err := w.cache.Publish(t.Context(), snapshot(t, words)); err != nil {
				t.Fatal(err)
			}
		}
		publish("c/a", "l/a")
		c := w.connect(&model{world: w, types: make(map[*xds.Type]*modelType)})
		defer c.disconnect()
		for _, of := range []*xds.Type{xds.Cluster, xds.Listener} {
			c.types[of] = &modelType{has: make(map[string]string), versions: make(map[string]string), errors: newHeardErrors(), wildcard: true, legacy: true}
			c.request(of, c.types[of], nil)
			synctest.Wait()
			if !c.hear(false, false) {
				t.Fatalf("the client gets no %s", of)
			}
		}
		told := func() (all string) {
			for synctest.Wait(); len(c.stream.down) > 0; synctest.Wait() {
				r := <-c.stream.down
				all += xds.TypeOfURL(r.(*discoveryv3.DiscoveryResponse).GetTypeUrl()).API
				if all == "LDS" {
					c.take(r, false, false)
				}
			}
			return all
		}
		time.Sleep(time.Hour)
		publish("c/a@2", "l/a@2")
		if is := told(); is != "CDS" {
			t.Errorf("the client is told %q", is)
		}
		time.Sleep(29 * time.Second)
		if is := told(); is != "" {
			t.Errorf("before half a minute is over, the client is told %q", is)
		}
		time.Sleep(2 * time.Second)
		if is := told(); is != "LDS" {
			t.Errorf("after half a minute, the client is told %q", is)
		}
	})
}

// TestTrimmedInTheEnd checks that a client that doesn't acknowledge its new listeners keeps a trimmed cluster
// for half a minute.
func TestTrimmedInTheEnd(t *testing.T) {
	for _, delta := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := listening(t, delta, "c/a", "l/a")
			clusters := &modelType{wildcard: true, legacy: true, has: make(map[string]string), versions: make(map[string]string), errors: newHeardErrors()}
			if c.types[xds.Cluster] = clusters; delta {
				c.requestDelta(xds.Cluster, &discoveryv3.DeltaDiscoveryRequest{})
			} else {
				c.request(xds.Cluster, clusters, nil)
			}
			c.settle()
			if err := c.cache.Publish(t.Context(), snapshot(t, []string{"l/a@2"})); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			<-c.stream.down // the listener; the client doesn't answer
			if _, _, err := c.cache.Trim(t.Context(), time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			for _, gone := range []bool{false, true} {
				if synctest.Wait(); c.hear(false, false) != gone {
					t.Errorf("incremental: %v: the cluster is gone: %v, want %v", delta, !gone, gone)
				}
				time.Sleep(31 * time.Second)
			}
		})
	}
}

// listening returns a client that subscribes to all listeners of published resources.
func listening(t *testing.T, delta bool, words ...string) *model {
	t.Helper()
	w := &world{t: t, cache: cache.New(cache.Options{})}
	if err := w.cache.Publish(t.Context(), snapshot(t, words)); err != nil {
		t.Fatal(err)
	}
	of := &modelType{wildcard: true, legacy: true, has: make(map[string]string), versions: make(map[string]string), errors: newHeardErrors()}
	c := w.connect(&model{world: w, delta: delta, types: map[*xds.Type]*modelType{xds.Listener: of}})
	t.Cleanup(c.disconnect)
	if !delta {
		c.request(xds.Listener, of, nil)
	}
	return c
}

// TestHopeEnds checks that the server stops sending a listener that the client always refuses.
func TestHopeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := listening(t, true, "p/a@1001")
		begin := time.Now()
		var at []time.Duration
		for range 1000 {
			synctest.Wait()
			if c.hear(true, false) {
				at = append(at, time.Since(begin))
			}
			time.Sleep(time.Second)
		}
		if len(at) < 2 || len(at) > 5 || at[len(at)-1] > 2*time.Minute {
			t.Errorf("the client has refused it after %v", at)
		}
		for i := 2; i < len(at); i++ {
			if at[i]-at[i-2] < 10*time.Second {
				t.Errorf("three refusals in 10 s: %v", at)
			}
		}
	})
}

// TestRefusalThatPasses checks that a listener that the client first refuses and then accepts, because
// another listener was still at its address, doesn't take the snapshot back. A second refusal does.
func TestRefusalThatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := listening(t, true, "p/a@1001")
		w := c.world
		c.settle()
		for _, refusals := range []int{1, 2} {
			next := snapshot(t, []string{fmt.Sprintf("p/a@100%d", 1+refusals)})
			said := make(chan cache.Answers)
			go func() {
				a, err := w.cache.Confirm(t.Context(), next, cache.Confirmation{Quorum: quorumOf(t, "all")})
				if err != nil {
					t.Error(err)
				}
				said <- a
			}()
			for i := range 2 {
				synctest.Wait()
				if !c.hear(i < refusals, false) {
					t.Errorf("try %d is not made", i)
				}
				time.Sleep(2 * time.Second)
			}
			if a := <-said; a.TakenBack != (refusals == 2) {
				t.Errorf("after %d refusals: %+v", refusals, a)
			}
			c.settle()
		}
	})
}

// TestNothingRefused checks a NACK of an empty response. The server sends nothing more, and the next ACK
// completes the client's resources.
func TestNothingRefused(t *testing.T) {
	for _, delta := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := listening(t, delta)
			is := func(want clients.Sync) {
				t.Helper()
				synctest.Wait()
				if subs := c.cache.Clients()[0].Subscriptions; len(subs) != 1 || subs[0].Sync != want {
					t.Errorf("incremental: %v: %+v, want %s", delta, subs, want)
				}
			}
			synctest.Wait()
			if !c.hear(true, false) {
				t.Fatal("the client is told nothing")
			}
			is(clients.Rejected)
			time.Sleep(time.Hour)
			if synctest.Wait(); c.hear(false, false) {
				t.Error("the client is told something")
			}
			if err := c.cache.Publish(t.Context(), snapshot(t, []string{"p/a@1001"})); err != nil {
				t.Fatal(err)
			}
			c.settle()
			is(clients.Synced)
		})
	}
}

// TestBegunEnds checks that resources claimed from an earlier stream are sent again for half a minute if the
// client warms with them. Afterwards the server trusts the claim.
func TestBegunEnds(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 29 * time.Second, 31 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := listening(t, true, "p/a@1001", "r/a")
			if synctest.Wait(); !c.hear(false, false) {
				t.Fatal("the client is told nothing")
			}
			time.Sleep(after)
			has := c.cache.Served().Lookup(xds.RouteConfiguration, "a").Version()
			c.types[xds.RouteConfiguration] = &modelType{has: make(map[string]string), versions: make(map[string]string), errors: newHeardErrors()}
			c.requestDelta(xds.RouteConfiguration, &discoveryv3.DeltaDiscoveryRequest{
				ResourceNamesSubscribe: []string{"a"}, InitialResourceVersions: map[string]string{"a": has},
			})
			time.Sleep(2 * time.Second) // until then the client may claim clusters
			synctest.Wait()
			if told := c.hear(false, false); told != (after < 30*time.Second) {
				t.Errorf("after %v the client is told its routes: %v", after, told)
			}
		})
	}
}

// TestExchangedWhileAway checks listeners that exchanged their addresses while the client was away, without
// the server's knowledge. Envoy refuses them for their addresses. The server then removes one listener first,
// and adds it last.
func TestExchangedWhileAway(t *testing.T) {
	for _, delta := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := listening(t, delta, "p/a@1002", "p/b@1001", "p/c@1003")
			is := c.types[xds.Listener]
			refused := &status.Status{Code: 13, Message: "a: has duplicate address '127.0.0.1:1002' as existing listener, b: has duplicate address '127.0.0.1:1001' as existing listener"}
			for try := range 2 {
				synctest.Wait()
				switch r := (<-c.stream.down).(type) {
				case *discoveryv3.DiscoveryResponse:
					is.nonce = r.GetNonce()
					c.request(xds.Listener, is, refused)
				case *discoveryv3.DeltaDiscoveryResponse:
					c.requestDelta(xds.Listener, &discoveryv3.DeltaDiscoveryRequest{ResponseNonce: r.GetNonce(), ErrorDetail: refused})
				}
				time.Sleep([]time.Duration{time.Second, 10 * time.Second}[try])
			}
			is.has["a"] = "a@1001"
			for _, want := range []bool{false, true} {
				if synctest.Wait(); !c.hear(false, false) {
					t.Fatal("the client is told nothing")
				}
				if _, there := is.has["a"]; there != want || is.has["b"] != "b@1001" {
					t.Errorf("incremental: %v: the client has %v", delta, is.has)
				}
			}
			if c.settle(); is.has["a"] != "a@1002" || len(is.has) != 3 {
				t.Errorf("incremental: %v: in the end the client has %v", delta, is.has)
			}
		})
	}
}

// TestBackAfterRestart starts a server that doesn't know a cluster that a client has from the server before.
// The client must keep the cluster for the trim delay, because its connections may still lead there, and
// count as SYNCED.
func TestBackAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, cache: cache.New(cache.Options{TrimDelay: trimDelay})}
		if err := w.cache.Publish(t.Context(), drawn(t, []string{"c/b", "e/b", "l/in", "r/in"})); err != nil {
			t.Fatal(err)
		}
		c := &model{world: w, delta: true, types: make(map[*xds.Type]*modelType)}
		for typ, names := range map[*xds.Type][]string{xds.Cluster: {"a", "b"}, xds.Endpoints: {"a"}, xds.Listener: {"in", "out"}, xds.RouteConfiguration: {"in"}} {
			m := &modelType{names: make(map[string]bool), has: make(map[string]string), versions: make(map[string]string), errors: newHeardErrors()}
			m.wildcard = typ == xds.Cluster || typ == xds.Listener
			m.legacy = m.wildcard
			for _, name := range names {
				m.names[name] = !m.wildcard
				m.has[name], m.versions[name] = "before", "before"
			}
			if m.wildcard {
				clear(m.names)
			}
			c.types[typ] = m
		}
		w.connect(c)
		defer c.disconnect()
		has := func(typ *xds.Type, name string, want bool) {
			t.Helper()
			if is := c.types[typ].has; (is[name] != "") != want {
				t.Errorf("of %s the client has %v", typ, is)
			}
		}
		begin := time.Now()
		for time.Since(begin) < 9*time.Minute {
			for synctest.Wait(); c.hear(false, false); synctest.Wait() {
			}
			time.Sleep(10 * time.Second)
		}
		has(xds.Listener, "out", false)
		has(xds.Listener, "in", true)
		has(xds.Cluster, "a", true)
		has(xds.Endpoints, "a", true)
		for _, sub := range c.cache.Clients()[0].Subscriptions {
			if sub.Sync != clients.Synced {
				t.Errorf("%+v", sub)
			}
		}
		// A change during the trim delay must not remove the cluster.
		if err := w.cache.Publish(t.Context(), drawn(t, []string{"c/b@2", "e/b", "l/in@2", "r/in"})); err != nil {
			t.Fatal(err)
		}
		for synctest.Wait(); c.hear(false, false); synctest.Wait() {
		}
		has(xds.Cluster, "a", true)
		time.Sleep(2 * time.Minute)
		c.settle()
		has(xds.Cluster, "a", false)
		has(xds.Endpoints, "a", false)
	})
}
