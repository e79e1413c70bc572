package envoy_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xdspub/envoy"
	"xdspub/internal/envoytest"
)

// counted is a proxy before an admin interface that takes down what it is asked.
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

// lead has c lead to another admin interface.
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

// take returns what was asked since the last call.
func (c *counted) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// TestFewQuestions: of an Envoy that has acknowledged the step before, a step asks for the uptime
// and once for texts. Where these can't tell, it asks for the counters.
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

// TestAnotherProcess: what one process was seen to run says nothing of another one.
func TestAnotherProcess(t *testing.T) {
	s := newEverything(newFixture(t))
	_, direct := s.start(s.more)
	c, a := newCounted(t, direct.String())
	f := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	for _, version := range []string{"v2", "v3"} {
		expect(t, version, step(t, f, envoy.AwaitOptions{}, func() { s.publish("eds", version, s.good("eds")...) }, sub("EDS", envoy.EDS("c"), version)), envoy.Confirmed, 1)
	}
	// The two start at times that /server_info tells apart.
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
	if _, ok := errors.AsType[*envoy.NotSubscribedError](err); !ok || !strings.Contains(err.Error(), "reads nothing below") {
		t.Errorf("an Envoy that reads another directory: %T %v; it was asked %v", err, err, c.take())
	}
}

// TestRunning: where an Envoy excludes statistics of a file that is published, Begin fails before
// the first step, be it one of other files.
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
