package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/envoy"
	"xdspub/event"
	"xdspub/tools/envoytest"
	"xdspub/xds/quorum"
)

// step begins an AckWait, publishes, and awaits the outcome.
func step(t *testing.T, f *envoy.Fleet, o envoy.AwaitOptions, publish func(), subs ...envoy.Subscription) envoy.Outcome {
	t.Helper()
	w, err := f.Begin(t.Context(), subs, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish()
	return w.Await(t.Context(), o)
}

func expect(t *testing.T, what string, got envoy.Outcome, want envoy.Verdict, answering int) {
	t.Helper()
	if got.Verdict != want || got.Answering != answering {
		t.Errorf("%s: %v, want %v by %d: %+v", what, got, want, answering, got.Envoys)
	}
}

// doubled calls try with a timeout, and again with twice the timeout as long as the Envoy does not answer in time,
// as on a busy machine.
func doubled(timeout time.Duration, try func(timeout time.Duration) (answered bool)) {
	for !try(timeout) && timeout < patience {
		timeout *= 2
	}
}

func sub(api, root, version string) envoy.Subscription {
	return envoy.Subscription{API: api, Version: version, StatPrefixes: []string{root}}
}

// TestRound publishes to each API a file that Envoy accepts, a file that Envoy refuses, and the first file again,
// whose ACK only the counters show.
func TestRound(t *testing.T) {
	s := newEverything(newFixture(t))
	_, a := s.start(s.more)
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	for _, api := range apis {
		good := func(version string) func() { return func() { s.publish(api.folder, version, s.good(api.folder)...) } }
		bad := func() { s.publish(api.folder, "v3", object{"@type": typeURL + "envoy.config.core.v3.Address"}) }
		expect(t, api.api+": good", step(t, f, envoy.AwaitOptions{}, good("v2"), sub(api.api, api.root, "v2")), envoy.Confirmed, 1)
		outcome := step(t, f, envoy.AwaitOptions{}, bad, sub(api.api, api.root, "v3"))
		expect(t, api.api+": bad", outcome, envoy.RefusedByQuorum, 1)
		if status := outcome.Envoys[0].States[0]; status.Runs != "v2" || status.Refusals != 1 || status.StatPrefix != api.root {
			t.Errorf("%s: %+v", api.api, status)
		}
		expect(t, api.api+": undone", step(t, f, envoy.AwaitOptions{}, good("v2"), sub(api.api, api.root, "v2")), envoy.Confirmed, 1)
	}

	// All files in one step.
	var all []envoy.Subscription
	for _, api := range apis {
		all = append(all, sub(api.api, api.root, "v4"))
	}
	expect(t, "all", step(t, f, envoy.AwaitOptions{Warm: true}, func() {
		for _, api := range apis {
			s.publish(api.folder, "v4", s.good(api.folder)...)
		}
	}, all...), envoy.Confirmed, 1)
}

// TestSharedSubscription: if two connection managers share a route configuration, either of them has the statistics.
func TestSharedSubscription(t *testing.T) {
	s := newFixture(t)
	s.publish("rds", "v1", routes("r", ""))
	rds := object{"route_config_name": "r", "config_source": s.source("rds")}
	s.publish("lds", "v1", listener("a", 0, object{"stat_prefix": "a", "rds": rds}), listener("b", 0, object{"stat_prefix": "b", "rds": rds}))
	_, a := s.start(nil)
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}})
	both := envoy.Subscription{API: "RDS", Version: "v2", StatPrefixes: []string{envoy.RDS("a", "r"), envoy.RDS("b", "r")}}
	outcome := step(t, f, envoy.AwaitOptions{}, func() { s.publish("rds", "v2", routes("r", "")) }, both)
	expect(t, "one file", outcome, envoy.Confirmed, 1)
	if n := len(read(t, a, both.StatPrefixes...).Counters); n != 1 {
		t.Errorf("%d of them report, want 1", n)
	}
}

// TestOneRoot: the names a:b and a_b share their counters.
func TestOneRoot(t *testing.T) {
	s := newFixture(t)
	file := func(folder, version, name string) {
		s.publish(folder, version, object{"@type": typeURL + "envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": name})
	}
	file("x", "v1", "a:b")
	file("y", "v1", "a_b")
	cluster := func(name, folder string) object {
		c := static(name)
		c["type"], c["eds_cluster_config"] = "EDS", object{"eds_config": s.source(folder)}
		return c
	}
	s.publish("cds", "v1", cluster("a:b", "x"), cluster("a_b", "y"))
	_, a := s.start(nil)
	fleet := func(timeout time.Duration) *envoy.Fleet {
		return envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, AckTimeout: timeout})
	}
	subs := []envoy.Subscription{sub("EDS", envoy.EDS("a:b"), "v2"), sub("EDS", envoy.EDS("a_b"), "v3")}
	var outcome envoy.Outcome
	doubled(500*time.Millisecond, func(timeout time.Duration) (answered bool) {
		outcome = step(t, fleet(timeout), envoy.AwaitOptions{}, func() { file("x", "v2", "a:b") }, subs...)
		return outcome.Envoys[0].Err == nil && !outcome.Envoys[0].Restarted
	})
	expect(t, "one of two", outcome, envoy.Unconfirmed, 1)
	expect(t, "both", step(t, fleet(0), envoy.AwaitOptions{}, func() { file("x", "v2", "a:b"); file("y", "v3", "a_b") }, subs...), envoy.Confirmed, 1)
}

// TestTwoEnvoys: two Envoys read one directory, and one of them can't bind a port of a listener.
func TestTwoEnvoys(t *testing.T) {
	s := newFixture(t)
	_, a := s.start(nil)
	port := envoytest.FreePort(t)
	own := listener("own", port, object{"route_config": object{}})
	delete(own, "@type") // static resources are no Anys
	_, b := s.start(object{"static_resources": object{"listeners": []any{own}}})
	fleet := func(text string) *envoy.Fleet {
		q, err := quorum.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a, b}, Quorum: q})
	}
	good := func(version string) func() {
		return func() { s.publish("lds", version, listener("l", 0, object{"route_config": object{}})) }
	}
	bad := func(version string) func() {
		return func() {
			s.publish("lds", version, listener("m", port, object{"route_config": object{}, "stat_prefix": "m"}))
		}
	}
	expect(t, "good", step(t, fleet("all"), envoy.AwaitOptions{}, good("v2"), sub("LDS", envoy.LDS(), "v2")), envoy.Confirmed, 2)
	outcome := step(t, fleet("all"), envoy.AwaitOptions{}, bad("v3"), sub("LDS", envoy.LDS(), "v3"))
	expect(t, "bad for one", outcome, envoy.RefusedByQuorum, 2)
	if state := outcome.Envoys[1].State(); state != envoy.Refused {
		t.Errorf("the second: %v", state)
	}
	expect(t, "undone", step(t, fleet("all"), envoy.AwaitOptions{}, good("v2"), sub("LDS", envoy.LDS(), "v2")), envoy.Confirmed, 2)
	expect(t, "bad for one of any", step(t, fleet("any"), envoy.AwaitOptions{}, bad("v3"), sub("LDS", envoy.LDS(), "v3")), envoy.Confirmed, 2)
}

// TestDownAndUp: an Envoy that is down neither counts nor blocks. An Envoy that starts during an AckWait counts. An
// Envoy that is killed during an AckWait has time to come back.
func TestDownAndUp(t *testing.T) {
	s := newFixture(t)
	socket := shortDir(t) + "/admin.sock"
	more := object{"admin": object{"address": object{"pipe": object{"path": socket}}}}
	start := func() *envoytest.Envoy {
		return envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(more)})
	}
	a := admin(t, "unix:"+socket)
	const ever = time.Hour // longer than go test lets a test run
	alone := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, AckTimeout: ever, WarmTimeout: ever})
	cds := func(version string) func() { return func() { s.publish("cds", version, static("c"+version)) } }

	outcome := step(t, alone, envoy.AwaitOptions{Warm: true}, cds("v2"), sub("CDS", envoy.CDS(), "v2"))
	expect(t, "down", outcome, envoy.Unconfirmed, 0)
	if _, ok := errors.AsType[*envoy.DownError](outcome.Envoys[0].Err); !ok {
		t.Errorf("down: %v", outcome.Envoys[0].Err)
	}

	_, second := s.start(nil)
	both := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a, second}})
	expect(t, "one of two is down", step(t, both, envoy.AwaitOptions{}, cds("v3"), sub("CDS", envoy.CDS(), "v3")), envoy.Confirmed, 1)

	var e *envoytest.Envoy
	outcome = step(t, both, envoy.AwaitOptions{}, func() { e = start(); cds("v4")() }, sub("CDS", envoy.CDS(), "v4"))
	expect(t, "it starts in the middle", outcome, envoy.Confirmed, 2)
	if !outcome.Envoys[0].Restarted || outcome.Envoys[1].Restarted {
		t.Errorf("restarted: %+v", outcome.Envoys)
	}

	outcome = step(t, both, envoy.AwaitOptions{}, func() { cds("v5")(); e.Kill(t); e = start() }, sub("CDS", envoy.CDS(), "v5"))
	expect(t, "it is replaced in the middle", outcome, envoy.Confirmed, 2)
	if !outcome.Envoys[0].Restarted {
		t.Errorf("restarted: %+v", outcome.Envoys)
	}

	outcome = step(t, both, envoy.AwaitOptions{}, func() { e.Kill(t); cds("v6")() }, sub("CDS", envoy.CDS(), "v6"))
	expect(t, "it dies in the middle", outcome, envoy.Confirmed, 1)

	// The Envoy dies, and comes back during the AckWait.
	e = start()
	await := func(ctx context.Context, version string, publish, meanwhile func()) envoy.Outcome {
		t.Helper()
		w, err := alone.Begin(t.Context(), []envoy.Subscription{sub("CDS", envoy.CDS(), version)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		publish()
		result := make(chan envoy.Outcome)
		go func() { result <- w.Await(ctx, envoy.AwaitOptions{}) }()
		meanwhile()
		return <-result
	}
	outcome = await(t.Context(), "v7", func() { e.Kill(t); cds("v7")() }, func() { e = start() })
	expect(t, "it comes back", outcome, envoy.Confirmed, 1)

	ctx, cancel := context.WithCancel(t.Context())
	outcome = await(ctx, "v8", func() { e.Signal(t, syscall.SIGSTOP); cds("v8")() }, cancel)
	e.Signal(t, syscall.SIGCONT)
	if outcome.Verdict != envoy.Unconfirmed || !errors.Is(outcome.Err, context.Canceled) {
		t.Errorf("the context ended: %v %v", outcome, outcome.Err)
	}
}

// TestHangs: an AckWait waits for an Envoy that hangs during it. It asks an Envoy that hung before it only once.
func TestHangs(t *testing.T) {
	s := newFixture(t)
	e, a := s.start(nil)
	var log strings.Builder
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, AckTimeout: 10 * time.Second, Log: event.New(slog.NewTextHandler(&log, nil))})
	cds := func(version string) func() { return func() { s.publish("cds", version, static("c"+version)) } }
	outcome := step(t, f, envoy.AwaitOptions{}, func() { e.Signal(t, syscall.SIGSTOP); cds("v2")() }, sub("CDS", envoy.CDS(), "v2"))
	expect(t, "stopped in the middle", outcome, envoy.Unconfirmed, 1)
	outcome = step(t, f, envoy.AwaitOptions{}, cds("v3"), sub("CDS", envoy.CDS(), "v3"))
	expect(t, "stopped before", outcome, envoy.Unconfirmed, 0)
	if _, ok := errors.AsType[*envoy.TimeoutError](outcome.Envoys[0].Err); !ok {
		t.Errorf("%T %v", outcome.Envoys[0].Err, outcome.Envoys[0].Err)
	}
	e.Signal(t, syscall.SIGCONT)
	eventually(t, a, "it goes on", []string{envoy.CDS()}, func(o *envoy.Observation) bool { return o.Counters[envoy.CDS()].Version == "v3" })
	expect(t, "continued", step(t, f, envoy.AwaitOptions{}, cds("v4"), sub("CDS", envoy.CDS(), "v4")), envoy.Confirmed, 1)
	// An Envoy that was only busy at Begin, as with a long answer, counts.
	e.Signal(t, syscall.SIGSTOP)
	outcome = step(t, f, envoy.AwaitOptions{}, func() { cds("v5")(); e.Signal(t, syscall.SIGCONT) }, sub("CDS", envoy.CDS(), "v5"))
	expect(t, "busy before", outcome, envoy.Confirmed, 1)
	// The Fleet logs each end and each return of the answers once.
	if got := log.String(); strings.Count(got, "level=") != 4 || !strings.Contains(got, `level=WARN msg="Envoy does not answer" event=envoy-unreachable envoy=http://127.0.0.1:`) || !strings.Contains(got, `level=INFO msg="Envoy answers again" event=envoy-reachable`) {
		t.Errorf("the log:\n%s", got)
	}
}

// TestStatsMatcher: a stats_matcher that hides needed statistics causes another error than an Envoy without an
// answer.
func TestStatsMatcher(t *testing.T) {
	prefixes := func(list ...string) object {
		var patterns []any
		for _, p := range list {
			patterns = append(patterns, object{"prefix": p})
		}
		return object{"inclusion_list": object{"patterns": patterns}}
	}
	one := func(list, kind string, pattern any) object {
		return object{list: object{"patterns": []any{object{kind: pattern}}}}
	}
	for name, c := range map[string]struct {
		matcher object
		hidden  string // the hidden statistic; "" for none
	}{
		"all":                   {object{"reject_all": true}, "cluster_manager.warming_clusters"},
		"others":                {prefixes("server."), "cluster_manager.warming_clusters"},
		"refusals":              {object{"exclusion_list": object{"patterns": []any{object{"suffix": "update_rejected"}}}}, "cluster_manager.cds.update_rejected"},
		"not what we need":      {prefixes("cluster_manager.", "listener_manager."), ""},
		"by suffix":             {one("inclusion_list", "suffix", ".update_success"), "cluster_manager.warming_clusters"},
		"by regex, in part":     {one("inclusion_list", "safe_regex", object{"regex": `.*\.update_.*`}), "cluster_manager.warming_clusters"},
		"by regex, all we need": {one("inclusion_list", "safe_regex", object{"regex": `(cluster|listener)_manager\..*`}), ""},
		"no versions":           {one("exclusion_list", "suffix", ".version_text"), "cluster_manager.cds.version_text"},
		"no clusters by regex":  {one("exclusion_list", "safe_regex", object{"regex": `cluster_manager\..*`}), "cluster_manager.warming_clusters"},
		"nothing that is there": {object{"exclusion_list": object{"patterns": []any{object{"prefix": "foo"}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			_, a := s.start(object{"stats_config": object{"stats_matcher": c.matcher}})
			var outcome envoy.Outcome
			var err error
			doubled(2*time.Second, func(timeout time.Duration) (answered bool) {
				f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, AckTimeout: timeout})
				var w *envoy.AckWait
				w, err = f.Begin(t.Context(), []envoy.Subscription{sub("CDS", envoy.CDS(), "v2"), sub("SDS", envoy.SDS("s"), "v2")}, nil)
				if err != nil || c.hidden != "" {
					return err != nil
				}
				s.publish("cds", "v2", static("c"))
				outcome = w.Await(t.Context(), envoy.AwaitOptions{})
				return outcome.Envoys[0].Err == nil && outcome.Envoys[0].States[0].State != envoy.Pending
			})
			if c.hidden != "" {
				if _, ok := errors.AsType[*envoy.StatsExcludedError](err); !ok || !strings.Contains(err.Error(), c.hidden) {
					t.Errorf("%T %v, want %s", err, err, c.hidden)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "a secret that is not there", outcome, envoy.Unconfirmed, 1)
			if states := outcome.Envoys[0].States; states[0].State != envoy.Acked || states[1].State != envoy.StatsExcluded {
				t.Errorf("%+v", states)
			}
		})
	}
}

// TestForeign: an Envoy that reads another directory, or only its own bootstrap.
func TestForeign(t *testing.T) {
	s := newFixture(t)
	s.publish("eds", "v1", object{"@type": typeURL + "envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "c"})
	static := static("c")
	delete(static, "@type")
	static["type"], static["eds_cluster_config"] = "EDS", object{"eds_config": s.source("eds")}
	for _, c := range []struct {
		name, dir, want string
		more            object
	}{
		{"its own", s.dir, "", nil},
		{"the folder above", s.dir + "/../", "", nil},
		{"another", "/elsewhere", "reads no file below /elsewhere: its bootstrap names " + s.path("cds"), nil},
		{"a name that begins alike", s.dir[:len(s.dir)-1], "reads no file below", nil},
		{"static resources only", s.dir, "", object{"dynamic_resources": object{}, "static_resources": object{"clusters": []any{static}}}},
		{"nothing", s.dir, "its bootstrap names no files", object{"dynamic_resources": object{}}},
	} {
		_, a := s.start(c.more)
		_, err := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: c.dir}).Begin(t.Context(), nil, nil)
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, ok := errors.AsType[*envoy.NotSubscribedError](err); c.want != "" && (!ok || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %T %v", c.name, err, err)
		}
	}
}

// TestWarm: Await waits for the new clusters of the step, and not for a cluster that was warming before.
func TestWarm(t *testing.T) {
	s := newFixture(t)
	_, a := s.start(nil)
	fleet := func(timeout time.Duration) *envoy.Fleet {
		return envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, WarmTimeout: timeout})
	}
	// The only host of the cluster never answers. The cluster is warm after the first health check has timed out.
	slow := func(name, timeout string) object {
		c := static(name)
		c["load_assignment"] = object{"cluster_name": name, "endpoints": []any{object{"lb_endpoints": []any{object{"endpoint": object{
			"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": blackHole(t)}},
		}}}}}}
		c["health_checks"] = []any{object{"timeout": timeout, "interval": "60s", "unhealthy_threshold": 1, "healthy_threshold": 1, "http_health_check": object{"path": "/"}}}
		return c
	}
	const ever = time.Hour // longer than go test lets a test run
	outcome := step(t, fleet(ever), envoy.AwaitOptions{Warm: true}, func() { s.publish("cds", "v2", slow("soon", "0.7s")) }, sub("CDS", envoy.CDS(), "v2"))
	expect(t, "a slow one", outcome, envoy.Confirmed, 1)
	if o := read(t, a); o.WarmingClusters != 0 || len(outcome.Envoys[0].NotWarm) > 0 {
		t.Errorf("%d warming, %+v", o.WarmingClusters, outcome)
	}
	outcome = step(t, fleet(300*time.Millisecond), envoy.AwaitOptions{Warm: true}, func() { s.publish("cds", "v3", slow("never", "7200s")) }, sub("CDS", envoy.CDS(), "v3"))
	expect(t, "one that is stuck", outcome, envoy.Confirmed, 1)
	if got := fmt.Sprint(outcome.Envoys[0].NotWarm); got != "[never]" {
		t.Errorf("not warm: %v", got)
	}
	outcome = step(t, fleet(ever), envoy.AwaitOptions{Warm: true}, func() { s.publish("cds", "v4", slow("never", "7200s"), slow("soon", "0.7s")) }, sub("CDS", envoy.CDS(), "v4"))
	expect(t, "another beside it", outcome, envoy.Confirmed, 1)
	if o := read(t, a); o.WarmingClusters != 1 || len(outcome.Envoys[0].NotWarm) > 0 {
		t.Errorf("%d warming, %+v", o.WarmingClusters, outcome)
	}
}

// TestNotLed: an Envoy that reads no clusters from files has nothing to acknowledge in a step of clusters, and
// nothing to warm.
func TestNotLed(t *testing.T) {
	s := newFixture(t)
	_, a := s.start(object{"dynamic_resources": object{"lds_config": s.source("lds")}})
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	clusters := sub("CDS", envoy.CDS(), "v2")
	clusters.File, clusters.Entrypoints = "cds/file.json", []string{"cds/file.json"}
	outcome := step(t, f, envoy.AwaitOptions{Warm: true}, func() { s.publish("cds", "v2", static("c")) }, clusters)
	expect(t, "clusters of others", outcome, envoy.Confirmed, 1)
}

// blackHole returns a port that accepts connections and never answers.
func blackHole(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
