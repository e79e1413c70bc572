package observe_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/check"
	"xdspub/observe"
	"xdspub/watch/control"
)

// tree checks a source tree with one file.
func tree(t *testing.T, text string) *check.Result {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	checked, err := check.Once(t.Context(), check.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	return checked
}

const (
	aRoute = `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: "NAME"}}]}]}`
	web    = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: "NAME", connect_timeout: 1s}`
)

// TestGraph: the graph is that of the published snapshot, and of the source tree while it is refused; names are text.
func TestGraph(t *testing.T) {
	const evil = `<script>alert(1)</script>`
	good := tree(t, "["+strings.ReplaceAll(aRoute+", "+web, "NAME", evil)+"]")
	bad := tree(t, "["+strings.ReplaceAll(aRoute, "NAME", "nowhere")+", "+strings.ReplaceAll(web, "NAME", "green")+"]")
	s := start(t, observe.Options{})
	graph := func(path string, code int, has ...string) {
		t.Helper()
		got, body := s.ask(t, "GET", path)
		for _, want := range append(has, "") {
			if got != code || !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %q:\n%s", path, got, want, body)
			}
		}
		if strings.Contains(body, "<script>alert") {
			t.Errorf("%s: a name is markup", path)
		}
		if !strings.HasPrefix(path, "/graph.svg") || code != 200 {
			return
		}
		for d := xml.NewDecoder(strings.NewReader(body)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
	graph("/graph", 404, "there is no target")
	s.Tell("", control.Watch{})
	graph("/graph", 404, "nothing is published")
	graph("/graph.svg", 200, "not read yet")
	s.Tell("", control.Watch{Snapshot: "v1"})
	s.Read("", good.Snapshot)
	s.Published("", good.Snapshot)
	graph("/graph", 200, "the published snapshot", "&lt;script&gt;alert(1)&lt;/script&gt;", "graph?focus=CDS%2F%3Cscript", "assets/graph.css")
	graph("/graph.svg", 200, "<svg", "main")
	graph("/graph?focus=RDS/main", 200, "whole graph", "main")
	graph("/graph?focus=CDS/mian", 404, "no resource has this name", "RDS/main")
	graph("/graph?target=%3Cscript%3Ealert", 404, "there is no target")
	graph("/assets/graph.css", 200, ".xdspub-graph")
	graph("/", 200, `src="graph.svg?target="`)

	s.Read("", bad.Snapshot)
	s.Tell("", control.Watch{Snapshot: "v1", Refused: &control.Refusal{Errors: 1}, Checked: control.Checked{Findings: bad.Diagnostics}})
	graph("/graph", 200, "not published", "nowhere", "error", "green")
	s.Tell("", control.Watch{Snapshot: "v1"})
	graph("/graph", 200, "the published snapshot", "&lt;script&gt;")
}

// TestManyEdges: the image of a tree with many references is bounded, and readers share it.
func TestManyEdges(t *testing.T) {
	var text strings.Builder
	text.WriteString("[")
	for i := range 300 {
		fmt.Fprintf(&text, "%s,\n", strings.ReplaceAll(web, "NAME", fmt.Sprint("c", i)))
	}
	for i := range 300 {
		fmt.Fprintf(&text, `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a%d, connect_timeout: 1s, lb_policy: CLUSTER_PROVIDED, cluster_type: {name: envoy.clusters.aggregate, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [`, i)
		for j := range 300 {
			fmt.Fprintf(&text, "c%d,", j)
		}
		text.WriteString("]}}},\n")
	}
	checked := tree(t, text.String()+"]")
	s := start(t, observe.Options{})
	s.Tell("", control.Watch{Snapshot: "v1"})
	s.Published("", checked.Snapshot)
	code, body := s.ask(t, "GET", "/graph.svg")
	if code != 200 || len(body) > 3<<20 {
		t.Errorf("%d: %d bytes", code, len(body))
	}
	code, again := s.ask(t, "GET", "/graph.svg")
	if code != 200 || again != body {
		t.Errorf("the second time: %d, %d bytes", code, len(again))
	}
	if code, body := s.ask(t, "GET", "/graph.svg?all"); code != 200 && code != 413 || len(body) > 32<<20 {
		t.Errorf("all: %d, %d bytes", code, len(body))
	}
}
