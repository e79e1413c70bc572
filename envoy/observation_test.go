package envoy_test

import (
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"xdspub/envoy"
	"xdspub/tools/envoytest"
)

func TestReading(t *testing.T) {
	s := newFixture(t)
	s.publish("lds", "v1", listener("l", 0, object{"route_config": object{}}))
	e, a := s.start(nil, "--drain-time-s", "3")
	got := read(t, a, envoy.CDS(), envoy.LDS(), envoy.SDS("s"))
	want := &envoy.Observation{
		Incarnation: got.Incarnation, State: "LIVE", DrainTime: 3 * time.Second,
		Counters: map[string]envoy.Counters{envoy.CDS(): {Attempts: 1, Successes: 1, Version: "v1"}, envoy.LDS(): {Attempts: 1, Successes: 1, Version: "v1"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(envoy.Observation{}), cmpopts.IgnoreFields(envoy.Observation{}, "Paths")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(got.Paths) != 2 || !strings.HasSuffix(got.Paths[0], "/cds/file.json") || !strings.HasSuffix(got.Paths[1], "/lds/file.json") {
		t.Errorf("the bootstrap names %q", got.Paths)
	}

	// A removed listener drains, and so does a changed filter chain, even without a connection, and for the whole
	// drain time.
	s.publish("lds", "v2", listener("l", 0, object{"route_config": object{"name": "other"}}))
	eventually(t, a, "a filter chain drains", nil, func(o *envoy.Observation) bool { return o.DrainingFilterChains+o.DrainingListeners == 1 })
	s.publish("lds", "v3")
	eventually(t, a, "a listener drains", nil, func(o *envoy.Observation) bool { return o.DrainingListeners == 1 })
	eventually(t, a, "none drains", nil, func(o *envoy.Observation) bool { return o.DrainingFilterChains+o.DrainingListeners == 0 })

	e.AdminPost(t, "/healthcheck/fail")
	if state := read(t, a).State; state != "DRAINING" {
		t.Errorf("after /healthcheck/fail: %s", state)
	}
}

// TestBoot: a process that is restarted at once has another Incarnation, although its counters are the same, and
// its uptime may be.
func TestBoot(t *testing.T) {
	s := newFixture(t)
	socket := filepath.Join(shortDir(t), "admin.sock")
	o := envoytest.Options{Bootstrap: s.bootstrap(object{"admin": object{"address": object{"pipe": object{"path": socket}}}})}
	a := admin(t, "unix:"+socket)
	seen := make(map[envoy.Incarnation]bool)
	for range 3 {
		e := envoytest.Start(t, o)
		first := read(t, a)
		if seen[first.Incarnation] || read(t, a).Incarnation != first.Incarnation {
			t.Errorf("boot %s, before %v", first.Incarnation, seen)
		}
		seen[first.Incarnation] = true
		e.Kill(t)
	}
}

// TestHotRestart: the new process takes over the admin interface, and has another Incarnation.
func TestHotRestart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Envoy hot restarts on Linux only")
	}
	s := newFixture(t)
	id := envoytest.BaseID(t)
	port := envoytest.FreePort(t)
	more := object{"admin": object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": port}}}}
	parent, _ := s.start(more, "--base-id", id, "--parent-shutdown-time-s", "2", "--drain-time-s", "1")
	a := admin(t, "http://"+net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}})
	expect(t, "before", step(t, f, envoy.AwaitOptions{}, func() { s.publish("cds", "v2", static("a")) }, sub("CDS", envoy.CDS(), "v2")), envoy.Confirmed, 1)
	first := read(t, a)
	outcome := step(t, f, envoy.AwaitOptions{}, func() {
		s.publish("cds", "v3", static("b"))
		s.start(more, "--base-id", id, "--restart-epoch", "1", "--parent-shutdown-time-s", "2", "--drain-time-s", "1")
	}, sub("CDS", envoy.CDS(), "v3"))
	expect(t, "within", outcome, envoy.Confirmed, 1)
	if now := read(t, a); !outcome.Envoys[0].Restarted || now.Incarnation == first.Incarnation {
		t.Errorf("%+v, boot %s, before %s", outcome.Envoys[0], now.Incarnation, first.Incarnation)
	}
	parent.Wait(t)
	expect(t, "after", step(t, f, envoy.AwaitOptions{}, func() { s.publish("cds", "v4", static("c")) }, sub("CDS", envoy.CDS(), "v4")), envoy.Confirmed, 1)
}

// TestCountersAfterHotRestart: the replaced process continues to read the files, and Envoy adds its counters to
// those of the new process. If the old process refuses a file that the new one accepts, as an older Envoy may, the
// file is not refused. If the new process refuses the file, it is.
func TestCountersAfterHotRestart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Envoy hot restarts on Linux only")
	}
	s := newFixture(t)
	id, here, port := envoytest.BaseID(t), t.TempDir(), envoytest.FreePort(t)
	envoytest.Publish(t, filepath.Join(here, "eds/file.json"), `{"resources": [{"@type": "`+typeURL+`envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "new"}]}`)
	bootstrap := s.bootstrap(object{
		"admin":                object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": port}}},
		"stats_flush_interval": "0.005s", // the interval at which Envoy asks the previous process for its counters
	})
	start := func(epoch, dir string) *envoytest.Envoy {
		return envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap, Dir: dir, Args: []string{"--base-id", id, "--restart-epoch", epoch}})
	}
	parent, child := start("0", t.TempDir()), start("1", here)
	a := admin(t, "http://"+net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if now := read(t, a); now.Epoch != 1 {
		t.Errorf("epoch %d", now.Epoch)
	}
	// The relative path names a file in the directory of the new process, and none in the other.
	byFile := static("new")
	byFile["type"], byFile["eds_cluster_config"] = "EDS", object{"eds_config": object{"path_config_source": object{"path": "eds/file.json"}}}
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}})
	for i := range 3 {
		taken, refused := fmt.Sprint("taken", i), fmt.Sprint("refused", i)
		before := read(t, a, envoy.CDS()).Counters[envoy.CDS()]
		expect(t, taken, step(t, f, envoy.AwaitOptions{}, func() { s.publish("cds", taken, byFile) }, sub("CDS", envoy.CDS(), taken)), envoy.Confirmed, 1)
		eventually(t, a, "the refusal of the other one is counted", []string{envoy.CDS()}, func(o *envoy.Observation) bool {
			c := o.Counters[envoy.CDS()]
			return c.Version == taken && c.Rejections+c.Failures > before.Rejections+before.Failures
		})
		bad := object{"@type": typeURL + "envoy.config.core.v3.Address"}
		expect(t, refused, step(t, f, envoy.AwaitOptions{}, func() { s.publish("cds", refused, bad) }, sub("CDS", envoy.CDS(), refused)), envoy.RefusedByQuorum, 1)
	}
	child.Stop(t) // and with it the other one
	parent.Wait(t)
}
