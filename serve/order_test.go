package serve_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/serve/cache"
	"xdspub/xds"
)

// TestOrderAfterAnHour: that a stream was quiet for longer than anything waits changes nothing about
// the order. Who never acknowledges clusters gets the rest half a minute later.
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
			c.types[of] = &modelType{has: make(map[string]string), versions: make(map[string]string), wildcard: true, legacy: true}
			c.request(of, c.types[of], nil)
			synctest.Wait()
			if !c.hear(false) {
				t.Fatalf("the client gets no %s", of)
			}
		}
		told := func() (all string) {
			for synctest.Wait(); len(c.stream.down) > 0; synctest.Wait() {
				r := <-c.stream.down
				all += xds.TypeOfURL(r.(*discoveryv3.DiscoveryResponse).GetTypeUrl()).API
				if all == "LDS" {
					c.take(r, false)
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

// TestHopeEnds: a listener that a client goes on to refuse is not sent to it for ever.
func TestHopeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, cache: cache.New(cache.Options{})}
		if err := w.cache.Publish(t.Context(), snapshot(t, []string{"p/a@1001"})); err != nil {
			t.Fatal(err)
		}
		c := w.connect(&model{world: w, delta: true, types: map[*xds.Type]*modelType{xds.Listener: {wildcard: true, legacy: true, has: make(map[string]string), versions: make(map[string]string)}}})
		defer c.disconnect()
		begin := time.Now()
		var at []time.Duration
		for range 1000 {
			synctest.Wait()
			if c.hear(true) {
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

// TestRefusalThatPasses: a listener that a client refuses at first, since another one is still at its
// address, is no reason to take a snapshot back.
func TestRefusalThatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, cache: cache.New(cache.Options{})}
		if err := w.cache.Publish(t.Context(), snapshot(t, []string{"p/a@1001"})); err != nil {
			t.Fatal(err)
		}
		c := w.connect(&model{world: w, delta: true, types: map[*xds.Type]*modelType{xds.Listener: {wildcard: true, legacy: true, has: make(map[string]string), versions: make(map[string]string)}}})
		defer c.disconnect()
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
				if !c.hear(i < refusals) {
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
