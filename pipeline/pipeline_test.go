package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"xdspub/publish"
	"xdspub/render"
	"xdspub/xds"
)

// fixture is a source tree and an output directory.
type fixture struct {
	t   *testing.T
	src string
	p   *Pipeline
	now time.Time
	// next is when there is more to trim, as publish said.
	next time.Time
}

func newFixture(t *testing.T, change func(*Options)) *fixture {
	dir := t.TempDir()
	o := Options{
		Source: filepath.Join(dir, "src"), Out: filepath.Join(dir, "out"), EnvoyPath: "/xds", Format: render.JSON,
		Endpoints: EndpointsAuto, InotifyBudget: 120, TrimDelay: 10 * time.Minute,
	}
	if change != nil {
		change(&o)
	}
	return &fixture{t: t, src: o.Source, p: New(o), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// tree replaces the source tree.
func (s *fixture) tree(archive string) {
	s.t.Helper()
	if err := os.RemoveAll(s.src); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(s.src, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *fixture) plan() *Plan {
	s.t.Helper()
	checked, err := s.p.Check(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if !checked.Accepted() {
		s.t.Fatal(checked.Diagnostics)
	}
	plan, list, err := s.p.Plan(s.t.Context(), checked.Snapshot, s.now)
	if err != nil || plan == nil {
		s.t.Fatal(err, list)
	}
	return plan
}

// publish makes one reconcile and returns what it moved, a line a file.
func (s *fixture) publish() string {
	s.t.Helper()
	plan := s.plan()
	dir, err := publish.Open(s.p.options.Out, publish.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer dir.Close()
	result, err := s.p.Publish(context.Background(), dir, plan)
	if err != nil {
		s.t.Fatal(err)
	}
	trimmed, next, err := s.p.Trim(context.Background(), dir, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	s.next = next
	var b strings.Builder
	for _, step := range append(result.Steps, trimmed.Steps...) {
		for _, f := range step.Written {
			fmt.Fprintf(&b, "%s: %s\n", step.Name, f)
		}
		for _, f := range step.Removed {
			fmt.Fprintf(&b, "%s: -%s\n", step.Name, f)
		}
	}
	return b.String()
}

func (s *fixture) want(what, want string) {
	s.t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(s.publish())); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// clusters returns the names in the published CDS file.
func (s *fixture) clusters() []string {
	s.t.Helper()
	published, err := s.p.published(xds.Cluster)
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, r := range published {
		names = append(names, r.Name)
	}
	return names
}

const (
	blue  = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: blue, type: EDS}`
	green = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: green, type: EDS}`

	blueEndpoints  = `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: blue}`
	greenEndpoints = `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: green}`
	routesTo       = `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: %s}}]}]}`
	listener       = `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: in, address: {socket_address: {address: 127.0.0.1, port_value: 10000}}, stat_prefix: "%s", filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: in, rds: {route_config_name: main, config_source: {ads: {}}}, http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]}`
	secret         = `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: token, generic_secret: {secret: {inline_string: "%s"}}}`
	layer          = `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: flags, layer: {a: 1}}`
)

func tree(documents ...string) string {
	return "-- all.yaml --\n" + strings.Join(documents, "\n---\n") + "\n"
}

// TestOrder: what is named goes out before what names it, and what named it
// before is still there.
func TestOrder(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, blueEndpoints, fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(listener, "a"), fmt.Sprintf(secret, "x")))
	s.want("the first publish", `
new names: eds/blue/eds.json
new names: rds/main/rds.json
new names: sds/token/sds.json
clusters: cds/cds.json
listeners: lds/lds.json`)
	s.want("nothing changed", "")

	s.tree(tree(blue, green, blueEndpoints[:len(blueEndpoints)-1]+`, policy: {overprovisioning_factor: 150}}`, greenEndpoints,
		fmt.Sprintf(routesTo, "green"), fmt.Sprintf(listener, "b"), fmt.Sprintf(secret, "y"), layer))
	s.want("all changed", `
new names: eds/green/eds.json
new names: rtds/flags/rtds.json
new names: sds/token/sds.json
clusters: cds/cds.json
endpoints: eds/blue/eds.json
listeners: lds/lds.json
routes: rds/main/rds.json`)
}

// TestTrim: what nothing needs any more stays for connections that drain, and
// goes in its time, the clusters before the files that they read.
func TestTrim(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, green, blueEndpoints, greenEndpoints, fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(listener, "a"), layer))
	s.publish()

	s.tree(tree(green, greenEndpoints, fmt.Sprintf(routesTo, "green"), fmt.Sprintf(listener, "a")))
	s.want("blue is dropped: its cluster stays, an empty layer stands in", `
secrets, extensions, runtime: rtds/flags/rtds.json
routes: rds/main/rds.json`)
	if diff := cmp.Diff([]string{"blue", "green"}, s.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if want := s.now.Add(10 * time.Minute); !s.next.Equal(want) {
		t.Errorf("the next trim is at %v, want %v", s.next, want)
	}
	s.now = s.now.Add(9 * time.Minute)
	s.want("too early", "")

	s.now = s.now.Add(2 * time.Minute)
	s.want("in time", `
trim clusters: cds/cds.json
trim files: -eds/blue/eds.json`)
	if diff := cmp.Diff([]string{"green"}, s.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(s.p.options.Out, "eds/blue")); err != nil {
		t.Errorf("the folder must stay for ever: %v", err)
	}
	s.want("nothing is left to do", "")
}

// TestFormats: what is out is known in each format, and so is what was damaged.
func TestFormats(t *testing.T) {
	for _, f := range render.Formats {
		t.Run(f.Name, func(t *testing.T) {
			s := newFixture(t, func(o *Options) { o.Format = f })
			named := func(text string) string { return strings.ReplaceAll(text, "json", f.Name) }
			s.tree(tree(blue, green, blueEndpoints, greenEndpoints, fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(listener, "a"), layer))
			s.publish()
			s.want("nothing changed", "")
			s.tree(tree(green, greenEndpoints, fmt.Sprintf(routesTo, "green"), fmt.Sprintf(listener, "a")))
			s.want("blue and the layer are dropped", named(`
secrets, extensions, runtime: rtds/flags/rtds.json
routes: rds/main/rds.json`))
			if diff := cmp.Diff([]string{"blue", "green"}, s.clusters()); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			layers, err := RuntimeLayers(s.p.options.Out, f)
			if err != nil || len(layers) != 1 || layers[0] != "flags" {
				t.Errorf("layers %v, %v", layers, err)
			}
			cds := filepath.Join(s.p.options.Out, f.Path(xds.Cluster, ""))
			whole, err := os.ReadFile(cds)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cds, whole[:len(whole)/2], 0o644); err != nil {
				t.Fatal(err)
			}
			s.want("a file that lost its end is mended", named("clusters: cds/cds.json"))
			s.now = s.now.Add(time.Hour)
			s.want("all of blue goes that is left", named("trim files: -eds/blue/eds.json"))
		})
	}
}

// TestReturn: a cluster that comes back while it waits is as if it never went: Envoy
// is subscribed to its file all the time.
func TestReturn(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, green, blueEndpoints, greenEndpoints))
	s.publish()
	s.tree(tree(green, greenEndpoints))
	s.publish()
	s.now = s.now.Add(time.Minute)
	s.tree(tree(blue, green, blueEndpoints[:len(blueEndpoints)-1]+`, policy: {overprovisioning_factor: 150}}`, greenEndpoints))
	s.want("blue returns", "endpoints: eds/blue/eds.json")
	s.now = s.now.Add(time.Hour)
	s.want("and does not go", "")
}

// TestStopped: a plan that was stopped before its end has not dropped anything
// yet, however long ago that was.
func TestStopped(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, green, blueEndpoints, greenEndpoints, fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(listener, "a")))
	s.publish()
	s.tree(tree(green, greenEndpoints, fmt.Sprintf(routesTo, "green"), fmt.Sprintf(listener, "b")))
	s.stop(1)

	dir, err := publish.Open(s.p.options.Out, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Hour)
	if result, next, err := s.p.Trim(t.Context(), dir, s.now); err != nil || len(result.Steps) > 0 || !next.IsZero() {
		t.Errorf("trims at once: %v, %v, %v", result, next, err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	s.publish()
	if diff := cmp.Diff([]string{"blue", "green"}, s.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// TestInotifyBudget: endpoints go inline once, and stay there.
func TestInotifyBudget(t *testing.T) {
	many := func(prefix string, n int) string {
		var documents []string
		for i := range n {
			name := fmt.Sprintf("%s%d", prefix, i)
			documents = append(documents, strings.ReplaceAll(blue, "blue", name), strings.ReplaceAll(blueEndpoints, "blue", name))
		}
		return tree(documents...)
	}
	s := newFixture(t, nil)
	s.tree(many("a", 70))
	s.publish()
	if got := s.plan().Change.Manifest.EDSMode; got != "file" {
		t.Fatalf("70 clusters: mode %q", got)
	}
	// Old and new count together: one too many would abort a live Envoy.
	s.tree(many("b", 70))
	if got := s.plan().Change.Manifest.EDSMode; got != "inline" {
		t.Fatalf("70 clusters replaced by 70 others: mode %q", got)
	}
	s.publish()
	s.tree(many("c", 3))
	if got := s.plan().Change.Manifest.EDSMode; got != "inline" {
		t.Errorf("auto went back by itself: mode %q", got)
	}

	s = newFixture(t, func(o *Options) { o.Endpoints = EndpointsFile })
	s.tree(many("a", 119))
	checked, err := s.p.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, list, err := s.p.Plan(s.t.Context(), checked.Snapshot, s.now)
	if err != nil || len(list) != 1 || list[0].Code != "inotify-budget" || !strings.Contains(list[0].Message, "need 121 ") {
		t.Errorf("119 clusters by file: %v, %v", list, err)
	}
}

// TestLive: a live output directory allows only what its Envoy can follow.
func TestLive(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, blueEndpoints))
	s.publish()
	s.p.options.EnvoyPath = "/elsewhere"
	checked, err := s.p.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var usage *UsageError
	if _, _, err := s.p.Plan(s.t.Context(), checked.Snapshot, s.now); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--envoy-path=/xds") {
		t.Errorf("another --envoy-path: %v", err)
	}
	s.p.options.EnvoyPath, s.p.options.Format = "/xds", render.Binary
	if _, _, err := s.p.Plan(s.t.Context(), checked.Snapshot, s.now); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--format=json") {
		t.Errorf("another --format: %v", err)
	}

	s.p.options.Format = render.JSON
	if err := os.WriteFile(filepath.Join(s.p.options.Out, "cds/cds.json"), []byte(`{"resources": [`), 0o644); err != nil {
		t.Fatal(err)
	}
	s.want("a published file that was damaged by hand is mended", "clusters: cds/cds.json")
}

func TestRefused(t *testing.T) {
	s := newFixture(t, nil)
	for _, test := range []struct {
		name, out, want string
		allowEmpty      bool
	}{
		{name: "an empty tree", out: "out", want: "empty-tree"},
		{name: "an empty tree that is meant", out: "out", allowEmpty: true},
		{name: "output inside", out: "src/out", want: "output-in-source"},
		{name: "source inside", out: ".", want: "output-in-source"},
		{name: "output is the source", out: "src", want: "output-in-source"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.tree("-- README.md --\nno resource\n")
			o := s.p.options
			o.Out, o.AllowEmpty = filepath.Join(filepath.Dir(s.src), test.out), test.allowEmpty
			checked, err := New(o).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(checked.Diagnostics) > 0 {
				got = checked.Diagnostics[0].Code
			}
			if got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}
