package envoy_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xdspub/envoy"
	"xdspub/tools/envoytest"
)

// counted is a proxy of an admin interface that records the requests.
type counted struct {
	mu    sync.Mutex
	to    *httputil.ReverseProxy
	asked []string
}

func newCounted(t *testing.T, to string) (*counted, *envoy.Admin) {
	c := new(counted)
	c.lead(t, to)
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, admin(t, server.URL)
}

// lead makes c a proxy of another admin interface.
func (c *counted) lead(t *testing.T, to string) {
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = httputil.NewSingleHostReverseProxy(u)
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	question := r.URL.Path
	if r.URL.Query().Get("type") != "" {
		question += " " + r.URL.Query().Get("type")
	}
	c.asked = append(c.asked, question)
	to := c.to
	c.mu.Unlock()
	to.ServeHTTP(w, r)
}

// take returns the requests since the last call.
func (c *counted) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// TestFewQuestions: a step asks an Envoy that has acknowledged the previous step only for the uptime, and once for
// texts. If the texts can't show the ACK, the step asks for the counters.
func TestFewQuestions(t *testing.T) {
	s := newEverything(newFixture(t))
	_, direct := s.start(s.more)
	c, a := newCounted(t, direct.String())
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	few := []string{"/server_info", "/stats TextReadouts"}
	for _, api := range apis {
		publish := func(version string, resources ...object) envoy.Outcome {
			return step(t, f, envoy.AwaitOptions{Warm: api.api == "CDS"}, func() { s.publish(api.folder, version, resources...) }, sub(api.api, api.root, version))
		}
		for _, next := range []struct {
			version string
			want    envoy.Verdict
			few     bool
		}{
			{"v2", envoy.Confirmed, false},
			{"v3", envoy.Confirmed, true},
			{"v3", envoy.Confirmed, false}, // the same again
			{"v4", envoy.Confirmed, true},
			{"bad", envoy.RefusedByQuorum, false},
			{"v4", envoy.Confirmed, false},
			{"v5", envoy.Confirmed, true},
		} {
			resources := s.good(api.folder)
			if next.version == "bad" {
				resources = []object{{"@type": typeURL + "envoy.config.core.v3.Address"}}
			}
			c.take()
			expect(t, api.api+" "+next.version, publish(next.version, resources...), next.want, 1)
			asked := c.take()
			if next.few && api.api != "CDS" && !slices.Equal(asked, few) {
				t.Errorf("%s %s: it asks %v, want %v", api.api, next.version, asked, few)
			}
			if (!next.few || api.api == "CDS") && !slices.Contains(asked, "/stats") {
				t.Errorf("%s %s: it asks %v, want the counters", api.api, next.version, asked)
			}
		}
	}
}

// TestEditedByHand: somebody publishes a file by hand that Envoy refuses, and replaces the folder of another file,
// which Envoy then no longer watches. The refusal does not count for the next step.
func TestEditedByHand(t *testing.T) {
	s := newEverything(newFixture(t))
	_, a := s.start(s.more)
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir, AckTimeout: 10 * time.Second})
	subscribed := func(version string, apis ...string) (subs []envoy.Subscription) {
		for _, api := range apis {
			sub := sub(api, map[string]string{"EDS": envoy.EDS("c"), "SDS": envoy.SDS("sds")}[api], version)
			sub.File, sub.Changed = strings.ToLower(api)+"/file.json", changed(t, s.path(strings.ToLower(api)))
			subs = append(subs, sub)
		}
		return subs
	}
	publish := func(version string, folders ...string) func() {
		return func() {
			for _, folder := range folders {
				s.publish(folder, version, s.good(folder)...)
			}
		}
	}
	byHand := func(folder string) {
		rejected := map[string]string{"eds": envoy.EDS("c"), "sds": envoy.SDS("sds")}[folder]
		was := read(t, a, rejected).Counters[rejected].Rejections
		s.publish(folder, "by-hand", object{"@type": typeURL + "envoy.config.core.v3.Address"})
		eventually(t, a, "Envoy refuses what is published by hand", []string{rejected}, func(o *envoy.Observation) bool { return o.Counters[rejected].Rejections > was })
	}
	for _, version := range []string{"v2", "v3"} { // the second time from memory
		expect(t, version, step(t, f, envoy.AwaitOptions{}, publish(version, "eds", "sds"), subscribed(version, "EDS", "SDS")...), envoy.Confirmed, 1)
	}
	byHand("eds")
	if err := os.RemoveAll(filepath.Dir(s.path("sds"))); err != nil {
		t.Fatal(err)
	}
	s.publish("sds", "by-hand")
	got := step(t, f, envoy.AwaitOptions{}, publish("v4", "eds", "sds"), subscribed("v4", "EDS", "SDS")...)
	expect(t, "beside a folder that Envoy does not follow", got, envoy.Unconfirmed, 1)
	if eds := got.Envoys[0].States[0]; eds.State != envoy.Acked || eds.Refusals != 0 {
		t.Errorf("the file that Envoy took: %+v", eds)
	}

	// The same with one file.
	expect(t, "v5", step(t, f, envoy.AwaitOptions{}, publish("v5", "eds"), subscribed("v5", "EDS")...), envoy.Confirmed, 1)
	byHand("eds")
	if err := os.RemoveAll(filepath.Dir(s.path("eds"))); err != nil {
		t.Fatal(err)
	}
	s.publish("eds", "by-hand")
	expect(t, "in a folder that Envoy does not follow", step(t, f, envoy.AwaitOptions{}, publish("v6", "eds"), subscribed("v6", "EDS")...), envoy.Unconfirmed, 1)
}

// changed returns the time of the last change of a file or of its folder.
func changed(t *testing.T, path string) (last time.Time) {
	for _, p := range []string{path, filepath.Dir(path)} {
		var s unix.Stat_t
		if err := unix.Stat(p, &s); err != nil {
			t.Fatal(err)
		}
		if at := time.Unix(s.Ctim.Unix()); at.After(last) {
			last = at
		}
	}
	return last
}

// TestVersionOfEndpoints: only a version_text has the version of the endpoints of a cluster.
func TestVersionOfEndpoints(t *testing.T) {
	s := newEverything(newFixture(t))
	_, a := s.start(s.more)
	const version = "version-of-endpoints"
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	expect(t, version, step(t, f, envoy.AwaitOptions{}, func() { s.publish("eds", version, s.good("eds")...) }, sub("EDS", envoy.EDS("c"), version)), envoy.Confirmed, 1)
	for question, tells := range map[string]bool{
		"/stats?type=TextReadouts": true, "/config_dump?include_eds": false, "/config_dump?resource=dynamic_endpoint_configs&include_eds": false,
		"/clusters": false, "/clusters?format=json": false, "/init_dump": false, "/stats?type=Gauges": false, "/listeners?format=json": false,
	} {
		_, body, err := envoytest.Get(t, a.String()+question)
		if err != nil || strings.Contains(body, version) != tells {
			t.Errorf("%s: %v, it tells the version: %t, want %t", question, err, !tells, tells)
		}
	}
}

// TestAnotherProcess: the memory of one process does not count for another process.
func TestAnotherProcess(t *testing.T) {
	s := newEverything(newFixture(t))
	_, direct := s.start(s.more)
	c, a := newCounted(t, direct.String())
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	for _, version := range []string{"v2", "v3"} {
		expect(t, version, step(t, f, envoy.AwaitOptions{}, func() { s.publish("eds", version, s.good("eds")...) }, sub("EDS", envoy.EDS("c"), version)), envoy.Confirmed, 1)
	}
	// The starts of both processes differ in /server_info.
	envoytest.Eventually(t, patience, "the first process runs for some time", func() (bool, string) {
		_, body, err := envoytest.Get(t, direct.String()+"/server_info")
		var says struct {
			Uptime string `json:"uptime_current_epoch"`
		}
		if err != nil || json.Unmarshal([]byte(body), &says) != nil {
			return false, body
		}
		up, err := time.ParseDuration(says.Uptime)
		return err == nil && up > 3*time.Second, says.Uptime
	})
	_, other := newFixture(t).start(nil)
	c.lead(t, other.String())
	c.take()
	_, err := f.Begin(t.Context(), []envoy.Subscription{sub("EDS", envoy.EDS("c"), "v4")}, nil)
	if _, ok := errors.AsType[*envoy.NotSubscribedError](err); !ok || !strings.Contains(err.Error(), "reads no file below") {
		t.Errorf("an Envoy that reads another directory: %T %v; it was asked %v", err, err, c.take())
	}
}

// TestRunning: if an Envoy excludes statistics of a published file, Begin fails before the first step, even if the
// step has other files.
func TestRunning(t *testing.T) {
	s := newEverything(newFixture(t))
	s.more["stats_config"] = object{"stats_matcher": object{"exclusion_list": object{"patterns": []any{object{"prefix": "sds."}}}}}
	_, a := s.start(s.more)
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	running := func() []envoy.Subscription {
		secret := sub("SDS", envoy.SDS("sds"), "v1")
		secret.File, secret.Entrypoints = "sds/file.json", []string{"cds/file.json"}
		clusters := sub("CDS", envoy.CDS(), "v1")
		clusters.File = "cds/file.json"
		return []envoy.Subscription{clusters, secret}
	}
	if _, err := f.Begin(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	f = envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir}) // it knows no Envoy yet
	_, err := f.Begin(t.Context(), nil, running)
	if _, ok := errors.AsType[*envoy.StatsExcludedError](err); !ok {
		t.Errorf("%T %v", err, err)
	}
}
