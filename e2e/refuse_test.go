package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/tools/envoytest"
)

// shop is a source file with a part for each of the faults.
const shop = `
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
type: STATIC
lb_policy: LEAST_REQUEST
load_assignment:
  cluster_name: web
  endpoints:
  - lb_endpoints:
    - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[1]d}}}
---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: api
type: EDS
---
"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: api
endpoints:
- lb_endpoints:
  - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[1]d}}}
---
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: ingress
address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}
filter_chains:
- filters:
  - name: hcm
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: ingress
      rds: {route_config_name: main, config_source: {ads: {}}}
      http_filters:
      - name: router
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
---
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: main
virtual_hosts:
- name: site
  domains: [site.example, "*"]
  routes:
  - match: {safe_regex: {regex: "/api/[0-9]+"}}
    route: {cluster: api}
  - match: {prefix: /}
    route: {cluster: web}
`

// faults are edits of shop.yaml, or new files, that Envoy would refuse, apply partly, or misread.
var faults = []struct {
	name string
	file string              // "" is shop.yaml
	edit func(string) string // of the file's text
	code string
	at   string // the finding is at the last occurrence of these words in the file
}{
	{name: "YAML syntax", edit: replace("domains: [site.example, ", "domains: [site.example} "), code: "invalid-syntax"},
	{name: "unknown field", edit: replace("lb_policy:", "lb_polic:"), code: "unknown-field", at: "lb_polic"},
	{name: "unknown enum value", edit: replace("LEAST_REQUEST", "LEAST_REQEUST"), code: "unknown-enum-value", at: "LEAST_REQEUST"},
	{name: "constraint of a field", edit: replace("type: EDS", "type: EDS\nconnect_timeout: 0s"), code: "field-constraint", at: "0s"},
	{name: "cluster that does not exist", edit: replace("{cluster: api}", "{cluster: gone}"), code: "unresolved-reference/cluster", at: "gone"},
	{name: "route configuration that does not exist", edit: replace("route_config_name: main", "route_config_name: gone"), code: "unresolved-reference/route-configuration", at: "gone"},
	{name: "EDS cluster without endpoints", edit: replace("cluster_name: api", "cluster_name: other"), code: "unresolved-reference/endpoint-assignment", at: "api\ntype: EDS"},
	{name: "two resources of one name", file: "twice.yaml", edit: after(staticCluster("web", 1)), code: "duplicate-resource", at: `"web", type`},
	{name: "bad regex", edit: replace("[0-9]+", "[0-9+"), code: "bad-regex/invalid-pattern", at: `"/api/[0-9+`},
	{name: "domain of two virtual hosts", edit: after("- name: other\n  domains: [Site.Example]\n  routes: [{match: {prefix: /}, route: {cluster: web}}]\n"), code: "duplicate-domain", at: "Site.Example"},
	{name: "no such type", edit: replace("http.router.v3.Router", "http.ruoter.v3.Router"), code: "unknown-type", at: "type.googleapis.com/envoy.extensions.filters.http.ruoter"},
	{name: "type of API v2", edit: replace("type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "type.googleapis.com/envoy.api.v2.RouteConfiguration"), code: "unknown-type", at: "type.googleapis.com/envoy.api.v2"},
	{name: "list for a message", edit: replace("address: {socket_address: {address: 127.0.0.1, port_value: ", "address: [{socket_address: {address: 127.0.0.1}}]\nx: {y: {z: "), code: "invalid-value", at: "[{socket_address"},
	{name: "key that stands twice", edit: replace("name: api\n", "name: api\nname: web\n"), code: "duplicate-key", at: "name: web\ntype: EDS"},
	{name: "no UTF-8", edit: replace("name: api", "name: \xff"), code: "invalid-utf8"},
	{name: "empty file", file: "empty.yaml", edit: after("# nothing\n"), code: "empty-file"},
}

// after returns an edit that adds text at the end.
func after(more string) func(string) string { return func(s string) string { return s + more } }

// TestRefused makes each of the faults together with a good edit. No byte of the output changes, Envoy reads no
// file, and a finding names the fault with its place. Without the fault, xdspub publishes the good edit.
func TestRefused(t *testing.T) { inFormats(t, testRefused) }

func testRefused(t *testing.T, format string) {
	colors := []*envoytest.Upstream{envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")}
	port := envoytest.FreePort(t)
	current := fmt.Sprintf(shop, colors[0].Port(), port)
	s := startFixture(t, map[string]string{"shop.yaml": current}, "--format", format)
	page := request{port: port}
	answers := func(want string) {
		t.Helper()
		becomes(t, "the page", want, func() string { return ask(t, page).text })
		content(t, s.envoy)
	}
	was, next := "200 blue", "200 green"
	answers(was)
	stop := send(t, page, func(answer string) bool { return answer == "200 blue" || answer == "200 green" })

	// good returns the tree with the next color.
	good := func() string { return replace(fmt.Sprint(colors[0].Port()), fmt.Sprint(colors[1].Port()))(current) }
	stays := func(t *testing.T, before string) {
		t.Helper()
		s.watch.WaitLog(t, "event=source-invalid ")
		if diff := cmp.Diff(before, s.published(t)); diff != "" {
			t.Errorf("the output moved (-before +after):\n%s", diff)
		}
		answers(was)
	}
	comesOut := func(t *testing.T) {
		t.Helper()
		s.watch.WaitLog(t, "event=published ")
		current = good()
		colors[0], colors[1], was, next = colors[1], colors[0], next, was
		answers(was)
	}

	for _, fault := range faults {
		ok := t.Run(fault.name, func(t *testing.T) {
			before := s.published(t)
			name, text := fault.file, ""
			if name == "" {
				name, text = "shop.yaml", good()
			}
			bad := fault.edit(text)
			s.write(t, name, bad)
			line := s.watch.WaitLog(t, "code="+fault.code+" ")
			at := fault.at
			if want := fmt.Sprintf("place=%s:%s", filepath.Join(s.src, name), position(bad, at)); at != "" && !strings.Contains(line+" ", want+" ") {
				t.Errorf("the finding is not at %q, %s:\n%s", at, want, line)
			}
			stays(t, before)

			if fault.file != "" {
				s.remove(t, fault.file)
			}
			s.write(t, "shop.yaml", good())
			comesOut(t)
		})
		if !ok {
			return // the state of the fixture is unknown
		}
	}

	// A reader may see half of a file that an editor saves in place.
	t.Run("half of a save", func(t *testing.T) {
		before := s.published(t)
		name := filepath.Join(s.src, "shop.yaml")
		half, _, _ := strings.Cut(good(), "api}")
		if err := os.WriteFile(name, []byte(half), 0o644); err != nil {
			t.Fatal(err)
		}
		s.watch.WaitLog(t, "code=invalid-syntax ")
		stays(t, before)
		if err := os.WriteFile(name, []byte(good()), 0o644); err != nil {
			t.Fatal(err)
		}
		comesOut(t)
	})
	if sent := stop(); sent < 100 {
		t.Errorf("just %d requests went out meanwhile", sent)
	}

	// A new Envoy reads the published files. So does a new xdspub, whose source tree is invalid.
	t.Run("restarts", func(t *testing.T) {
		before := s.published(t)
		s.write(t, "shop.yaml", faults[0].edit(good()))
		stays(t, before)
		s.envoy.Kill(t)
		s.startEnvoy(t)
		answers(was)

		s.watch.Signal(t, syscall.SIGKILL)
		s.watch.Wait(t)
		s.beginWatch(t)
		stays(t, before)
		s.envoy.Stop(t)
		s.startEnvoy(t)
		answers(was)

		s.write(t, "shop.yaml", good())
		comesOut(t)
	})
}

// position returns the line and column of the last occurrence of words in text.
func position(text, words string) string {
	i := strings.LastIndex(text, words)
	if i < 0 {
		return "not there"
	}
	line := strings.LastIndex(text[:i], "\n") + 1
	return fmt.Sprintf("%d:%d", 1+strings.Count(text[:i], "\n"), i-line+1)
}
