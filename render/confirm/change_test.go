package confirm

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/envoy"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/xds"
)

// TestNote checks that a file counts as acknowledged only if each Envoy with a subscription to the file has
// acknowledged it, in all subscriptions. A rollback keeps such files.
func TestNote(t *testing.T) {
	sub := func(file string, t *xds.Type) envoy.Subscription {
		return envoy.Subscription{File: file, API: t.API}
	}
	taken, open, one := sub("taken", xds.Endpoints), sub("open", xds.Secret), sub("one", xds.Secret)
	standing, routes := sub("standing", xds.Endpoints), sub("routes", xds.RouteConfiguration)
	standing.Unmoved = true
	in := func(state envoy.State, s envoy.Subscription) envoy.Status {
		return envoy.Status{Subscription: s, State: state}
	}
	envoys := []envoy.EnvoyOutcome{
		{States: []envoy.Status{in(envoy.Acked, taken), in(envoy.Pending, open), in(envoy.Acked, open), in(envoy.Acked, standing), in(envoy.Acked, routes), in(envoy.Acked, one)}},
		{States: []envoy.Status{in(envoy.Acked, taken), in(envoy.Acked, open)}},
	}
	for answering, want := range map[int][]string{0: nil, 2: {"one", "taken"}} {
		c := &Change{acked: make(map[string]bool), expected: []envoy.Subscription{taken, open, open, standing, routes, one}}
		c.note(envoy.Outcome{Answering: answering, Envoys: envoys})
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(c.acked))); diff != "" {
			t.Errorf("%d answer (-want +got):\n%s", answering, diff)
		}
	}
}

// TestChangedByHand checks that the question about a file has the time of the last change of the file or its
// folder, even of a change by hand.
func TestChangedByHand(t *testing.T) {
	out := t.TempDir()
	file := filepath.Join(out, "cds/cds.json")
	c := New(published.New(published.Options{Dir: out}), Options{}).Change(nil, publish.Refusal{})
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	var before time.Time
	for _, text := range []string{"{}", "{ }"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		if err := c.expect(publish.Step{Write: []publish.File{{Path: "cds/cds.json", Data: []byte("{}"), Version: "v1"}}}); err != nil {
			t.Fatal(err)
		}
		at := c.expected[0].Changed
		if at.Before(before) || at.IsZero() || !at.Equal(publish.Changed(out, "cds/cds.json")) {
			t.Errorf("%v, after %v", at, before)
		}
		before = at
	}
}

// BenchmarkNote notes the files that three Envoys have taken. ns/unit is the time for one file, which is
// constant if the work is linear.
func BenchmarkNote(b *testing.B) {
	for _, n := range []int{1_000, 2_000, 4_000, 8_000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			c := &Change{acked: make(map[string]bool)}
			var states []envoy.Status
			for i := range n {
				sub := envoy.Subscription{File: fmt.Sprintf("eds/c%d/eds.json", i), API: xds.Endpoints.API}
				c.expected = append(c.expected, sub)
				states = append(states, envoy.Status{Subscription: sub, State: envoy.Acked})
			}
			o := envoy.Outcome{Answering: 3, Envoys: []envoy.EnvoyOutcome{{States: states}, {States: states}, {States: states}}}
			for b.Loop() {
				c.note(o)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/unit")
		})
	}
}
