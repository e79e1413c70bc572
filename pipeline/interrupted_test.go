package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/publish"
)

// ender is a log that calls end when so many steps are out.
type ender struct {
	steps int
	end   func()
}

func (e *ender) Enabled(context.Context, slog.Level) bool { return true }
func (e *ender) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e *ender) WithGroup(string) slog.Handler            { return e }

func (e *ender) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "published" {
		if e.steps--; e.steps == 0 {
			e.end()
		}
	}
	return nil
}

// stop publishes the tree, and ends behind so many steps.
func (s *fixture) stop(steps int) {
	s.t.Helper()
	plan := s.plan()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	dir, err := publish.Open(s.p.options.Out, publish.Options{Log: slog.New(&ender{steps, cancel})})
	if err != nil {
		s.t.Fatal(err)
	}
	defer dir.Close()
	if result, err := s.p.Publish(ctx, dir, plan); !errors.Is(err, context.Canceled) || len(result.Steps) != steps {
		s.t.Fatalf("moved %v, error %v, want %v", result.Steps, err, context.Canceled)
	}
}

// TestBackThenInterrupted has something come back while it waits for its trim, the
// publish end early, and it go again: it goes since then, and not since the first time.
func TestBackThenInterrupted(t *testing.T) {
	routes := fmt.Sprintf(routesTo, "green")
	static := strings.Replace(blue, "EDS", "STATIC", 1)
	t.Run("a file", func(t *testing.T) {
		s := newFixture(t, nil)
		with := tree(blue, blueEndpoints, green, greenEndpoints, routes)
		s.tree(with)
		s.publish()
		s.tree(tree(static, green, greenEndpoints, routes))
		s.want("blue has no endpoints by file", "clusters: cds/cds.json")
		s.now = s.now.Add(9 * time.Minute)
		s.tree(strings.Replace(with, "cluster: green", "cluster: blue", 1))
		s.stop(1)
		s.now = s.now.Add(30 * time.Second)
		s.tree(tree(green, greenEndpoints, routes))
		s.want("blue goes", "")
		s.now = s.now.Add(time.Minute)
		s.want("10 minutes after it had gone the first time", "")
		s.now = s.now.Add(9 * time.Minute)
		s.want("10 minutes after it had gone", `
trim clusters: cds/cds.json
trim files: -eds/blue/eds.json`)
	})
	t.Run("a cluster", func(t *testing.T) {
		s := newFixture(t, nil)
		with, without := tree(blue, blueEndpoints, green, greenEndpoints, routes), tree(green, greenEndpoints, routes)
		s.tree(with)
		s.publish()
		s.tree(without)
		s.publish()
		s.now = s.now.Add(9 * time.Minute)
		s.tree(strings.Replace(with, "cluster: green", "cluster: blue", 1) + "---\n" + fmt.Sprintf(listener, "x") + "\n---\n" + fmt.Sprintf(secret, "x"))
		s.stop(2)
		s.tree(without)
		s.want("blue goes, and what routes to it", "routes that no listener asks for yet: rds/main/rds.json")
		s.now = s.now.Add(9 * time.Minute)
		s.want("not 10 minutes after that", "")
	})
}

// TestRoutesOfADeadChange has a publish end early that brought routes to a cluster which
// then never comes: a listener does not get to see them.
func TestRoutesOfADeadChange(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(green, greenEndpoints))
	s.publish()
	in := fmt.Sprintf(listener, "a")
	s.tree(tree(green, greenEndpoints, blue, blueEndpoints, fmt.Sprintf(routesTo, "blue"), in))
	s.stop(1)
	s.tree(tree(green, greenEndpoints, fmt.Sprintf(routesTo, "green"), in))
	s.want("the change that comes instead", `
routes that no listener asks for yet: rds/main/rds.json
listeners: lds/lds.json`)
}

// TestEndpointsOfADeadChange is the same with a cluster, which runs as STATIC.
func TestEndpointsOfADeadChange(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(strings.Replace(blue, "EDS", "STATIC", 1), green, greenEndpoints))
	s.publish()
	s.tree(tree(blue, blueEndpoints, green, greenEndpoints))
	s.stop(1)
	s.tree(tree(blue, strings.TrimSuffix(blueEndpoints, "}")+", policy: {overprovisioning_factor: 150}}", green, greenEndpoints))
	s.want("the change that comes instead", `
new names: eds/blue/eds.json
clusters: cds/cds.json`)
}

// TestClockSetBack: what is said to go since later goes since now.
func TestClockSetBack(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, blueEndpoints, green, greenEndpoints))
	s.publish()
	s.tree(tree(green, greenEndpoints))
	s.publish()
	s.now = s.now.Add(-24 * time.Hour)
	s.want("nothing changed", "")
	if want := s.now.Add(10 * time.Minute); !s.next.Equal(want) {
		t.Errorf("the next trim is at %v, want %v", s.next, want)
	}
	s.now = s.next
	s.want("in time", `
trim clusters: cds/cds.json
trim files: -eds/blue/eds.json`)
}

// TestClockSetForward: what goes has gone for as long as before, when a watch sees that
// the clock is set; also within a change that was interrupted.
func TestClockSetForward(t *testing.T) {
	s := newFixture(t, nil)
	var ran time.Duration // by a clock that nobody sets
	passes := func(d time.Duration) { s.now, ran = s.now.Add(d), ran+d }
	o := s.p.options
	o.Clock = NewClock(func() (time.Time, time.Duration) { return s.now, ran })
	s.p = New(o)
	s.tree(tree(blue, blueEndpoints, green, greenEndpoints))
	s.publish()
	s.tree(tree(green, greenEndpoints))
	s.publish()
	passes(4 * time.Minute)
	s.now = s.now.Add(24 * time.Hour)
	s.want("the clock is set", "")
	if want := s.now.Add(6 * time.Minute); !s.next.Equal(want) {
		t.Errorf("the next trim is at %v, want %v", s.next, want)
	}
	passes(time.Minute)
	s.tree(tree(green, greenEndpoints, fmt.Sprintf(secret, "x"), fmt.Sprintf(listener, "x"), fmt.Sprintf(routesTo, "green")))
	s.stop(1)
	s.now = s.now.Add(24 * time.Hour)
	s.keepTime()
	s.publish()
	for range 40 { // a time service moves it by little each time, and it adds up
		passes(6 * time.Second)
		s.now = s.now.Add(time.Second / 4)
		s.want("too early", "")
	}
	passes(time.Minute + 2*time.Second)
	s.want("in time", `
trim clusters: cds/cds.json
trim files: -eds/blue/eds.json`)
}

// keepTime has the record follow the clock.
func (s *fixture) keepTime() {
	s.t.Helper()
	dir, err := publish.Open(s.p.options.Out, publish.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer dir.Close()
	if err := s.p.KeepTime(dir); err != nil {
		s.t.Error(err)
	}
}

// TestTrimOfWhatIsNamed: a file stays as long as something that is published names it,
// whatever the record says.
func TestTrimOfWhatIsNamed(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, blueEndpoints, green, greenEndpoints))
	s.publish()
	dir, err := publish.Open(s.p.options.Out, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	m, err := publish.ReadManifest(s.p.options.Out)
	if err != nil {
		t.Fatal(err)
	}
	m.Retired = []publish.Retired{{File: "eds/blue/eds.json", Since: s.now.Add(-time.Hour)}}
	if _, err := dir.Publish(t.Context(), publish.Plan{Manifest: m}); err != nil {
		t.Fatal(err)
	}
	result, next, err := s.p.Trim(t.Context(), dir, s.now)
	if want := s.now.Add(10 * time.Minute); err != nil || len(result.Steps) > 0 || !next.Equal(want) {
		t.Errorf("trimmed %v, the next time at %v, %v, want %v", result.Steps, next, err, want)
	}
	if _, err := os.Stat(filepath.Join(s.p.options.Out, "eds/blue/eds.json")); err != nil {
		t.Error(err)
	}
}

// TestExtensionsAfterClusters: a filter calls clusters, so one that comes or changes goes
// out behind those that come; but for one that clusters themselves have.
func TestExtensionsAfterClusters(t *testing.T) {
	const (
		extension = `{"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, name: lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: 'function envoy_on_request(h) h:httpCall("%s", {}, "", 1) end'}}}`
		asks      = `http_filters: [{name: lua, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}}, `
	)
	in := strings.Replace(fmt.Sprintf(listener, "a"), "http_filters: [", asks, 1)
	s := newFixture(t, nil)
	s.tree(tree(green, greenEndpoints))
	s.publish()
	s.tree(tree(green, greenEndpoints, blue, blueEndpoints, fmt.Sprintf(routesTo, "green"), in, fmt.Sprintf(extension, "blue")))
	s.want("the filter comes with a cluster that it calls", `
new names: eds/blue/eds.json
new names: rds/main/rds.json
clusters: cds/cds.json
extensions: ecds/lua/ecds.json
listeners: lds/lds.json`)

	const asksUpstream = `, typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http_protocol_options: {}}, http_filters: [{name: lua, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}}, {name: codec, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec}}]}}}`
	s = newFixture(t, nil)
	s.tree(tree(green, greenEndpoints))
	s.publish()
	s.tree(tree(green, greenEndpoints, strings.TrimSuffix(blue, "}")+asksUpstream, blueEndpoints, fmt.Sprintf(extension, "green")))
	s.want("a cluster has the filter", `
new names: ecds/lua/ecds.json
new names: eds/blue/eds.json
clusters: cds/cds.json`)

	s = newFixture(t, nil)
	s.tree(tree(green, greenEndpoints, fmt.Sprintf(routesTo, "green"), in, fmt.Sprintf(extension, "green")))
	s.publish()
	s.tree(tree(green, greenEndpoints, blue, blueEndpoints, fmt.Sprintf(routesTo, "green"), in, fmt.Sprintf(extension, "blue")))
	s.want("it calls a cluster that comes", `
new names: eds/blue/eds.json
clusters: cds/cds.json
extensions: ecds/lua/ecds.json`)
}
