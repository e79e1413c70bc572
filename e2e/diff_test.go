package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/diff"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
)

// effects is what diff --format json says about a change.
type effects struct {
	Same    bool
	Counts  diff.Counts
	Effects []diff.Effect
}

// diffed compares the source tree with what is published. ok is false if the tree would not be published.
func (s *fixture) diffed(t testing.TB) (e effects, ok bool) {
	t.Helper()
	eds := "auto"
	if i := slices.Index(s.args, "--eds"); i >= 0 {
		eds = s.args[i+1]
	}
	stdout, stderr, exit := xdspub(t, "diff", "--out", s.out, "--eds", eds, "--format", "json", s.src)
	if exit > 1 {
		t.Logf("diff: exit status %d\n%s", exit, stderr)
		return e, false
	}
	if err := json.Unmarshal([]byte(stdout), &e); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	if e.Same != (exit == 0) {
		t.Errorf("exit status %d, and same is %v", exit, e.Same)
	}
	return e, true
}

// counted are the statistics that effects move, with the number by which a change moves each.
var counted = map[string]func(effects) int{
	"listener_manager.total_listeners_draining":     func(e effects) int { return e.Counts[diff.ListenerDrains] },
	"listener_manager.total_filter_chains_draining": func(e effects) int { return e.Counts[diff.FilterChainDrains] },
	"listener_manager.listener_in_place_updated": func(e effects) int {
		names := make(map[string]bool)
		for _, of := range e.Effects {
			if of.Kind == diff.FilterChainDrains || of.Kind == diff.ListenerUpdated {
				names[of.Name] = true
			}
		}
		return len(names)
	},
	"cluster_manager.cluster_added":    func(e effects) int { return e.Counts[diff.ClusterAdded] },
	"cluster_manager.cluster_modified": func(e effects) int { return e.Counts[diff.ClusterReplaced] },
}

// meter compares the statistics of an Envoy with effects.
type meter struct {
	envoy *envoytest.Envoy
	want  map[string]int
	goes  int // the clusters that diff says go
}

func newMeter(t testing.TB, e *envoytest.Envoy) *meter {
	m := &meter{envoy: e, want: make(map[string]int)}
	for name := range counted {
		m.want[name] = int(e.Stat(t, name))
	}
	return m
}

// moves checks that the statistics move by the effects, and by nothing else.
func (m *meter) moves(t testing.TB, e effects) {
	t.Helper()
	for name, by := range counted {
		m.want[name] += by(e)
	}
	envoytest.Eventually(t, patience, "Envoy does what diff says", func() (bool, string) {
		var wrong []string
		for _, name := range slices.Sorted(maps.Keys(counted)) {
			if got := int(m.envoy.Stat(t, name)); got != m.want[name] {
				wrong = append(wrong, fmt.Sprintf("%s is %d, want %d", name, got, m.want[name]))
			}
		}
		return len(wrong) == 0, strings.Join(wrong, "; ") + fmt.Sprintf("\n%+v", e.Effects)
	})
	if m.goes += e.Counts[diff.ClusterRemoved]; int(m.envoy.Stat(t, "cluster_manager.cluster_removed")) > m.goes { // a trim removes them, sooner or later
		t.Errorf("Envoy has removed more clusters than the %d that diff says", m.goes)
	}
	draining := make(map[string]bool)
	for _, l := range m.envoy.ConfigDump(t, "dynamic_listeners") {
		if l["draining_state"] != nil {
			draining[fmt.Sprint(l["name"])] = true
		}
	}
	for _, of := range e.Effects {
		if of.Kind == diff.ListenerDrains && !draining[of.Name] {
			t.Errorf("%s, but Envoy drains only %v", of.Text, slices.Sorted(maps.Keys(draining)))
		}
	}
}

// diffFact is a step of TestDiffFacts: a tree that replaces the one of the step before, and the kinds of effects. %d is
// the port of the listener.
type diffFact struct {
	name, listener, cluster string // empty keeps the one of the step before
	want                    []diff.Kind
}

// diffListener returns a listener with filter chains and further fields.
func diffListener(chains string, further ...string) string {
	return document("envoy.config.listener.v3.Listener", `name: in, address: {socket_address: {address: 127.0.0.1, port_value: %[1]d}}, filter_chains: [%[2]s]%[3]s`,
		7777, chains, more(further))
}

// diffChain returns a filter chain for a server name.
func diffChain(name, cluster string) string {
	return fmt.Sprintf(`{name: %[1]s, filter_chain_match: {server_names: [%[1]s.example]}, filters: [{name: t, typed_config: `+
		`{"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: %[2]s}}]}`, name, cluster)
}

func diffFacts() []diffFact {
	const (
		tls  = `{name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector}}`
		http = `{name: http, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.http_inspector.v3.HttpInspector}}`
	)
	a, b, inspect := diffChain("a", "c"), diffChain("b", "c"), "listener_filters: ["+tls+", "+http+"]"
	web := staticCluster("c", 1)
	of := func(kinds ...diff.Kind) []diff.Kind { return kinds }
	return []diffFact{
		{"nothing", diffListener(a+", "+b, inspect), web, nil},
		{"a chain with another cluster", diffListener(diffChain("a", "d")+", "+b, inspect), "", of(diff.FilterChainDrains)},
		{"chains in another order", diffListener(b+", "+diffChain("a", "d"), inspect), "", of(diff.ListenerUpdated)},
		{"a chain with another name only", diffListener(b+", "+strings.Replace(diffChain("a", "d"), "name: a", "name: z", 1), inspect), "", of(diff.FilterChainDrains)},
		{"a chain less", diffListener(b, inspect), "", of(diff.FilterChainDrains)},
		{"a chain more", diffListener(a+", "+b, inspect), "", of(diff.ListenerUpdated)},
		{"a default chain", diffListener(a+", "+b, inspect, "default_filter_chain: {filters: [{name: t, typed_config: "+tcpTo("c")+"}]}"), "", of(diff.ListenerUpdated)},
		{"another default chain", diffListener(a+", "+b, inspect, "default_filter_chain: {filters: [{name: t, typed_config: "+tcpTo("d")+"}]}"), "", of(diff.FilterChainDrains)},
		{"no default chain", diffListener(a+", "+b, inspect), "", of(diff.FilterChainDrains)},
		{"listener filters in another order", diffListener(a+", "+b, "listener_filters: ["+http+", "+tls+"]"), "", of(diff.ListenerUpdated)},
		{"the default of enable_reuse_port", diffListener(a+", "+b, inspect, "enable_reuse_port: true"), "", of(diff.ListenerDrains)},
		{"an empty value", diffListener(a+", "+b, inspect, "enable_reuse_port: true, transparent: false"), "", of(diff.ListenerUpdated)},
		{"the default of bind_to_port", diffListener(a+", "+b, inspect, "bind_to_port: true"), "", of(diff.ListenerDrains)},
		{"a stat prefix", diffListener(a+", "+b, inspect, "stat_prefix: x"), "", of(diff.ListenerDrains)},
		{"metadata", diffListener(a+", "+b, inspect, "metadata: {filter_metadata: {x: {y: z}}}"), "", of(diff.ListenerDrains)},
		{"a chain and metadata", diffListener(a, inspect), "", of(diff.ListenerDrains)},
		{"only a default chain", diffListener("", inspect, "default_filter_chain: {filters: [{name: t, typed_config: "+tcpTo("c")+"}]}"), "", of(diff.ListenerDrains)},
		{"another default chain alone", diffListener("", inspect, "default_filter_chain: {filters: [{name: t, typed_config: "+tcpTo("d")+"}]}"), "", of(diff.ListenerDrains)},
		{"chains again", diffListener(a+", "+b, inspect), "", of(diff.FilterChainDrains)},
		{"metadata of a cluster", "", staticCluster("c", 1, "metadata: {filter_metadata: {x: {y: z}}}"), of(diff.ClusterReplaced)},
		{"another endpoint of a static cluster", "", staticCluster("c", 2, "metadata: {filter_metadata: {x: {y: z}}}"), of(diff.ClusterReplaced, diff.EndpointRemoved, diff.EndpointAdded)},
		{"a cluster with endpoints by EDS", "", edsCluster("c") + "---\n" + endpoints("c", 1), of(diff.ClusterReplaced, diff.Applied)},
		{"another endpoint by EDS", "", edsCluster("c") + "---\n" + endpoints("c", 2), of(diff.EndpointRemoved, diff.EndpointAdded)},
		{"the spelling of a config source", "", edsCluster("c", "eds_cluster_config: {eds_config: {self: {}, resource_api_version: V3}}") + "---\n" + endpoints("c", 2), nil},
	}
}

// tcpTo returns the configuration of a tcp_proxy.
func tcpTo(cluster string) string {
	return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: %s}`, cluster)
}

// TestDiffFacts publishes one tree after another to an Envoy. diff says the effects of each, and the statistics of the
// Envoy agree. The steps hold what is known of Envoy: which changes of a listener drain it, which drain a filter chain,
// and which replace a cluster.
func TestDiffFacts(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	s := newFixture(t, nil, "--trim-delay", "1h", "--allow-removal")
	port := fmt.Sprint(envoytest.FreePort(t))
	var m *meter
	for i, f := range diffFacts() {
		for name, text := range map[string]string{"l.yaml": f.listener, "c.yaml": f.cluster, "d.yaml": staticCluster("d", 1)} {
			if text != "" {
				s.write(t, name, strings.ReplaceAll(text, "7777", port))
			}
		}
		if i == 0 {
			s.renders(t)
			s.startEnvoy(t)
			s.tookWhatItReads(t)
			m = newMeter(t, s.envoy)
			continue
		}
		e, ok := s.diffed(t)
		if !ok {
			t.Fatal(f.name)
		}
		var kinds []diff.Kind
		for _, of := range e.Effects {
			kinds = append(kinds, of.Kind)
		}
		if !slices.Equal(kinds, f.want) {
			t.Errorf("%s: %v, want %v", f.name, kinds, f.want)
		}
		s.renders(t)
		s.tookWhatItReads(t)
		t.Log(f.name)
		m.moves(t, e)
	}
}

// TestDiffEffects edits a tree at random, and publishes each edit to an Envoy whose listeners drain for ten minutes.
// The statistics of the Envoy move exactly by what diff says: the listeners and filter chains that drain, the listeners
// that are updated in place, and the clusters that are new or replaced.
func TestDiffEffects(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	for seed := range uint64(8) {
		if int(seed)%portion.Every(4, 8) != 0 {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := &chaos{soak: &soak{t: t, rand: rand.New(rand.NewPCG(seed, 32))}, busy: make(map[int]net.Listener)}
			c.fixture = newFixture(t, nil, "--trim-delay", "1h", "--eds", "file", "--allow-removal")
			c.grow()
			c.renders(t)
			c.startEnvoy(t)
			c.tookWhatItReads(t)
			c.args = append(c.args, "--envoy-admin", "http://"+address(c.admin)) // from now on, Envoy confirms each step
			m := newMeter(t, c.envoy)
			for range 12 {
				before := c.tree
				said := c.tree.edit(c)
				c.save()
				e, ok := c.diffed(t)
				if !ok { // a transition that Envoy would refuse
					c.tree = before
					c.save()
					continue
				}
				t.Logf("%s: %v", said, e.Counts)
				c.renders(t)
				m.moves(t, e)
			}
		})
	}
}

// renders publishes the source tree once.
func (s *fixture) renders(t testing.TB) {
	t.Helper()
	stdout, stderr, exit := xdspub(t, append(append([]string{"render"}, s.args...), s.src)...)
	if exit != 0 {
		t.Fatalf("xdspub render: exit status %d\n%s%s", exit, stdout, stderr)
	}
}

// TestDiffEnvoy compares a tree with a running Envoy, before and after an edit.
func TestDiffEnvoy(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	port, upstream := envoytest.FreePort(t), envoytest.NewUpstream(t, "blue")
	s := newFixture(t, map[string]string{
		"l.yaml": listener("in", port, rds("main")), "r.yaml": routes("main", "web"),
		"c.yaml": edsCluster("web"), "e.yaml": endpoints("web", upstream.Port()),
	})
	s.renders(t)
	s.startEnvoy(t)
	s.tookWhatItReads(t)
	admin := "http://" + address(s.admin)
	for _, with := range [][]string{{s.src}, {"--out", s.out}} {
		if stdout, stderr, exit := xdspub(t, append([]string{"diff", "--envoy-admin", admin}, with...)...); exit != 0 {
			t.Errorf("diff %v: exit status %d\n%s%s", with, exit, stdout, stderr)
		}
	}
	if err := os.Remove(filepath.Join(s.src, "l.yaml")); err != nil {
		t.Fatal(err)
	}
	stdout, _, exit := xdspub(t, "diff", "--envoy-admin", admin, s.src)
	if exit != 1 || !strings.Contains(stdout, fmt.Sprintf("127.0.0.1:%d drains", port)) {
		t.Errorf("exit status %d\n%s", exit, stdout)
	}
}

// TestDiffRoutes publishes random route tables to an Envoy. For each request that diff names, the Envoy answers before
// the change from the old target, and after the change from the new one. A request of another list is answered by the
// same cluster before and after, unless diff names a route of the table.
func TestDiffRoutes(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 32))
	port := envoytest.FreePort(t)
	s := newFixture(t, map[string]string{"l.yaml": listener("in", port, rds("main"))})
	for _, name := range []string{"a", "b", "c"} {
		s.write(t, name+".yaml", staticCluster(name, envoytest.NewUpstream(t, name).Port()))
	}
	s.write(t, "r.yaml", randomRoutes(random))
	s.renders(t)
	s.startEnvoy(t)
	s.tookWhatItReads(t)
	moved := 0
	for range 60 / portion.Every(2, 6) {
		s.write(t, "r.yaml", randomRoutes(random))
		e, ok := s.diffed(t)
		if !ok {
			t.Fatal("the tree is invalid")
		}
		answers := func(r diff.Effect) string { return answeredBy(ask(t, requestOf(t, port, r.Request)).text) }
		for _, r := range e.Effects {
			if r.Kind == diff.RouteMoves {
				if got := answers(r); got != r.Was {
					t.Errorf("%s was answered by %s, and diff says %s", r.Request, got, r.Was)
				}
			}
		}
		before := probes(t, port)
		s.renders(t)
		s.tookWhatItReads(t)
		for _, r := range e.Effects {
			if r.Kind == diff.RouteMoves {
				moved++
				becomes(t, "the answer to "+r.Request, r.Is, func() string { return answers(r) })
			}
		}
		if after := probes(t, port); !maps.Equal(before, after) && e.Counts[diff.RouteMoves] == 0 {
			t.Errorf("diff names no route that moves: before %v, after %v", before, after)
		}
	}
	if moved < 10 {
		t.Errorf("only %d requests have moved", moved)
	}
}

// randomRoutes returns a route configuration.
func randomRoutes(random *rand.Rand) string {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	routes := func() string {
		var list []string
		for range 1 + random.IntN(5) {
			match := pick(`prefix: /`, `prefix: /a`, `path: /a`, `path: /a/b`, `path_separated_prefix: /a`, `safe_regex: {regex: "/[ab]/[0-9]+"}`,
				`prefix: /A, case_sensitive: false`)
			match += pick("", "", `, headers: [{name: x-a, string_match: {exact: "1"}}]`, `, headers: [{name: x-a, present_match: true, invert_match: true}]`,
				`, query_parameters: [{name: q, string_match: {prefix: z}}]`)
			action := pick("route: {cluster: a}", "route: {cluster: b}", "route: {cluster: c}", "direct_response: {status: 418}")
			list = append(list, fmt.Sprintf("{match: {%s}, %s}", match, action))
		}
		return strings.Join(list, ", ")
	}
	hosts := fmt.Sprintf(`{name: all, domains: ["*"], routes: [%s]}`, routes())
	for i, domain := range []string{"a.example", "*.example", "a.*"} {
		if random.IntN(2) > 0 {
			hosts += fmt.Sprintf(`, {name: h%d, domains: [%q], routes: [%s]}`, i, domain, routes())
		}
	}
	return document("envoy.config.route.v3.RouteConfiguration", `name: main, virtual_hosts: [%s]`, hosts)
}

// requestOf returns the request that diff describes, such as GET http://example.com/a?q=z with x-a: 1.
func requestOf(t testing.TB, port int, text string) request {
	t.Helper()
	text, header, _ := strings.Cut(text, " with ")
	host, path, ok := strings.Cut(strings.TrimPrefix(text, "GET http://"), "/")
	if !ok || strings.Contains(header, ",") {
		t.Fatalf("no request: %q", text)
	}
	return request{port: port, host: host, path: path, header: header}
}

// answeredBy returns the target of a request by its answer, in the words of diff.
func answeredBy(answer string) string {
	status, body, _ := strings.Cut(answer, " ")
	if status == "200" {
		return fmt.Sprintf("cluster %q", strings.TrimSpace(body))
	}
	return "response " + status
}

// probes returns the targets of a list of requests.
func probes(t testing.TB, port int) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, host := range []string{"a.example", "b.example", "a.org", "other"} {
		for _, path := range []string{"", "a", "a/b", "A", "a/1", "ab", "a?q=z"} {
			for _, header := range []string{"", "x-a: 1", "x-a: 2"} {
				all[host+"/"+path+" "+header] = answeredBy(ask(t, request{port: port, host: host, path: path, header: header}).text)
			}
		}
	}
	return all
}
