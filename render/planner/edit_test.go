package planner_test

import (
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
)

// TestPlanEdit checks that the plan of an edit of an endpoint assignment or a cluster has only the files that
// change. FuzzEdits shows that the result is the same as of a plan of all files.
func TestPlanEdit(t *testing.T) {
	s := fixture.New(t, func(o *pipeline.Options) { o.Endpoints = planner.EndpointsFile })
	const tree = `
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
connect_timeout: 1s
type: EDS
eds_cluster_config: {eds_config: {ads: {}}}
---
"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: web
endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8080}}}}]}]
---
"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: more
endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9090}}}}]}]
---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: more
connect_timeout: 3s
type: EDS
eds_cluster_config: {eds_config: {ads: {}}}
`
	dir := s.Open()
	text := tree
	for i, step := range []struct {
		name     string
		old, new string
		trust    bool
		written  int // files of the plan, published or not
	}{
		{"the first", "", "", false, 4},
		{"nothing", "", "", true, 0},
		{"endpoints", "8080", "8081", true, 1},
		{"endpoints again", "8081", "8082", true, 1},
		{"other endpoints", "9090", "9091", true, 1},
		{"endpoints without trust", "8082", "8083", false, 4},
		{"a cluster", "1s", "2s", true, 1},
		{"endpoints after a cluster", "8083", "8084", true, 1},
	} {
		text = strings.ReplaceAll(text, step.old, step.new)
		s.Tree("-- tree.yaml --\n" + text)
		checked, err := s.Checked.Check(t.Context())
		if err != nil || !checked.Accepted() {
			t.Fatal(err, checked)
		}
		s.P.Trust(step.trust)
		plan, list, err := s.P.Plan(t.Context(), checked.Snapshot, s.Now)
		if err != nil || len(list) > 0 {
			t.Fatal(err, list)
		}
		written := 0
		for _, st := range plan.Change.Steps {
			written += len(st.Write)
		}
		if written != step.written {
			t.Errorf("%d, %s: the plan has %d files, want %d", i, step.name, written, step.written)
		}
		if _, err := s.P.Publish(t.Context(), dir, plan); err != nil {
			t.Fatal(err)
		}
		s.P.Trust(false)
		again, _, err := s.P.Plan(t.Context(), checked.Snapshot, s.Now)
		if err != nil {
			t.Fatal(err)
		}
		if left, err := publish.Pending(s.Options.Out, again.Change, publish.Options{}); err != nil || len(left.Steps) > 0 {
			t.Errorf("%s: after it this is not out: %+v, %v", step.name, left.Steps, err)
		}
	}
}

// TestEditOfWhatIsShared checks that an edit is an error if Envoy would refuse it because of a running
// singleton, even the edit of a route configuration (bad14 of the rule shared-settings-changed).
func TestEditOfWhatIsShared(t *testing.T) {
	s := fixture.New(t, nil)
	dir := s.Open()
	plan := func(kbps string) (*planner.Plan, diag.List) {
		t.Helper()
		s.Tree(`
-- tree.yaml --
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: main
virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}]
typed_per_filter_config:
  share:
    "@type": type.googleapis.com/envoy.extensions.filters.http.bandwidth_share.v3.BandwidthShare
    request_limit: {bucket_id: b, kbps: {default_value: ` + kbps + `, runtime_key: k}}
---
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: main
address: {socket_address: {address: 127.0.0.1, port_value: 10000}}
filter_chains:
- filters:
  - name: http
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: http
      rds: {route_config_name: main, config_source: {ads: {}}}
      http_filters:
      - {name: share, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.bandwidth_share.v3.BandwidthShare}}
      - {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
`)
		return s.Planned()
	}
	first, list := plan("5")
	if len(list) > 0 {
		t.Fatal(list)
	}
	if _, err := s.P.Publish(t.Context(), dir, first); err != nil {
		t.Fatal(err)
	}
	s.P.Trust(true)
	if _, list := plan("6"); !list.HasErrors() || list[0].Code != "shared-settings-changed" {
		t.Errorf("a bucket with other settings: %v", list)
	}
}

// TestEditAfterNoPlan checks that an edit after a snapshot that was rendered, and could not be planned, is
// planned against the published files and not against that snapshot.
func TestEditAfterNoPlan(t *testing.T) {
	s := fixture.New(t, func(o *pipeline.Options) { o.Endpoints, o.InotifyBudget = planner.EndpointsFile, 3 })
	dir := s.Open()
	plan := func(timeout, port string) (*planner.Plan, diag.List) {
		t.Helper()
		s.Tree(`
-- tree.yaml --
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
connect_timeout: ` + timeout + `
type: EDS
eds_cluster_config: {eds_config: {ads: {}}}
health_checks: [{timeout: 1s, interval: 5s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
---
"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: web
endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: ` + port + `}}}}]}]
`)
		return s.Planned()
	}
	first, list := plan("1s", "8080")
	if len(list) > 0 {
		t.Fatal(list)
	}
	if _, err := s.P.Publish(t.Context(), dir, first); err != nil {
		t.Fatal(err)
	}
	s.P.Trust(true)
	for _, port := range []string{"8080", "8081"} {
		if _, list := plan("2s", port); !list.HasErrors() {
			t.Errorf("endpoints at %s: the old cluster and the new one, which gets warm, fit into the budget", port)
		}
	}
}

// TestOpenedAgain checks that, after Opened, a Planner plans all files and does not trust its knowledge of the
// output directory.
func TestOpenedAgain(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(`
-- tree.yaml --
{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a, connect_timeout: 1s}
`)
	dir := s.Open()
	checked, err := s.Checked.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan := func() *planner.Plan {
		t.Helper()
		plan, list, err := s.P.Plan(t.Context(), checked.Snapshot, s.Now)
		if err != nil || len(list) > 0 {
			t.Fatal(err, list)
		}
		return plan
	}
	if _, err := s.P.Publish(t.Context(), dir, plan()); err != nil {
		t.Fatal(err)
	}
	files := func() (n int) {
		for _, step := range plan().Change.Steps {
			n += len(step.Write)
		}
		return n
	}
	s.P.Trust(true)
	if n := files(); n != 0 {
		t.Errorf("the plan of an edit of nothing has %d files", n)
	}
	s.P.Opened(dir)
	if n := files(); n == 0 {
		t.Error("the plan for a directory that was opened again lacks the files that stay")
	}
}

// TestEditForgetsWhatHasGone checks that the plan of an edit drops a retired file that no longer exists and is
// not among the recorded files, as after an interrupted trim.
func TestEditForgetsWhatHasGone(t *testing.T) {
	s := fixture.New(t, func(o *pipeline.Options) { o.Endpoints = planner.EndpointsFile })
	dir := s.Open()
	edit := func(factor string) {
		t.Helper()
		s.Tree(fixture.Tree(fixture.Green, strings.TrimSuffix(fixture.GreenEndpoints, "}")+", policy: {overprovisioning_factor: "+factor+"}}"))
		if _, err := s.P.Publish(t.Context(), dir, s.Plan()); err != nil {
			t.Fatal(err)
		}
	}
	record := func() publish.Manifest {
		t.Helper()
		m, err := dir.Reader().Manifest()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	edit("150")
	m := record()
	m.Retired = []publish.Retired{{File: "eds/blue/eds.json", Since: s.Now}}
	if _, err := dir.Publish(t.Context(), publish.Plan{Manifest: m}); err != nil {
		t.Fatal(err)
	}
	s.P.Trust(true)
	edit("160")
	if m := record(); len(m.Retired) > 0 {
		t.Errorf("%v wait for their trim", m.Retired)
	}
}
