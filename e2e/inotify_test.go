package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// The tests here do not run in parallel, because all Envoys of the user share 128 inotify instances.

// TestManyEndpoints: the files of 200 EDS clusters would abort an Envoy. xdspub inlines their endpoints, and edits
// of the endpoints still work.
func TestManyEndpoints(t *testing.T) {
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port := envoytest.FreePort(t)
	s := startFixture(t, map[string]string{
		"many.yaml": many(0, 199, blue.Port()),
		"edge.yaml": documents(edsCluster("web"), endpoints("web", blue.Port()), routes("main", "web"), listener("edge", port, rds("main"))),
	})
	if !inlined(s) {
		t.Error("nothing is said about what went inline")
	}
	page := func() string { return ask(t, request{port: port}).text }
	becomes(t, "the page", "200 blue", page)
	s.edit(t, "edge.yaml", replace(fmt.Sprint(blue.Port()), fmt.Sprint(green.Port())))
	becomes(t, "the page", "200 green", page)
	s.edit(t, "many.yaml", replace("type: EDS", "type: EDS, connect_timeout: 2s"))
	becomes(t, "the page", "200 green", page)
	content(t, s.envoy)
}

// TestManyRoutes: the route files of 130 listeners would abort an Envoy. Inlined endpoints save too few instances,
// so xdspub also inlines the routes into the listeners. Edits of the routes still work.
func TestManyRoutes(t *testing.T) {
	const listeners, edited = 130, 77
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port := envoytest.FreePort(t)
	var edge, tables []string
	for i := range listeners {
		name := fmt.Sprintf("l%03d", i)
		edge = append(edge, replace("{address: 127.0.0.1,", fmt.Sprintf("{address: 127.0.1.%d,", i+1))(listener(name, port, rds(name))))
		tables = append(tables, routes(name, "blue"))
	}
	s := startFixture(t, map[string]string{
		"clusters.yaml": documents(edsCluster("blue"), endpoints("blue", blue.Port()), edsCluster("green"), endpoints("green", green.Port())),
		"edge.yaml":     documents(edge...),
		"routes.yaml":   documents(tables...),
	})
	log := s.watch.Log()
	if !strings.Contains(log, "code=routes-inlined") || strings.Contains(log, "code=endpoints-inlined") {
		t.Error("not just routes went inline")
	}
	pages := func(want func(i int) string) {
		t.Helper()
		for i := range listeners {
			becomes(t, fmt.Sprintf("page %d", i), want(i), func() string { return ask(t, request{address: fmt.Sprintf("127.0.1.%d", i+1), port: port}).text })
		}
		if got := s.envoy.InotifyInstances(t); got != 4 {
			t.Errorf("%d inotify instances, want 4, of cds, lds and two clusters", got)
		}
		content(t, s.envoy)
	}
	pages(func(int) string { return "200 blue" })
	s.edit(t, "routes.yaml", func(string) string {
		tables[edited] = routes(fmt.Sprintf("l%03d", edited), "green")
		return documents(tables...)
	})
	pages(func(i int) string {
		if i == edited {
			return "200 green"
		}
		return "200 blue"
	})
}

// TestDrainingRoutes: draining filter chains keep the subscriptions of their routes, even without a connection, and
// although the files stay. xdspub counts these subscriptions as long.
func TestDrainingRoutes(t *testing.T) {
	const listeners = 5
	upstream := envoytest.NewUpstream(t, "upstream")
	asked := func(suffix string) string {
		var list []string
		for i := range listeners {
			name := fmt.Sprintf("l%d", i)
			list = append(list, replace("127.0.0.1", fmt.Sprintf("127.0.1.%d", i+1))(listener(name, 1, rds(name+suffix))), routes(name+"a", "web"), routes(name+"b", "web"))
		}
		return documents(list...)
	}
	port := fmt.Sprintf("port_value: %d", envoytest.FreePort(t))
	s := newFixture(t, map[string]string{"web.yaml": staticCluster("web", upstream.Port()), "edge.yaml": replace("port_value: 1}", port+"}")(asked("a"))}, "--trim-delay", "10m")
	s.startWatch(t)
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{"--drain-time-s", "4"}})
	has := func(want, counted int) {
		t.Helper()
		envoytest.Eventually(t, patience, fmt.Sprintf("Envoy has %d inotify instances", want), func() (bool, string) {
			got := s.envoy.InotifyInstances(t)
			return got == want, fmt.Sprint(got)
		})
		if got := s.counted(t); got != counted {
			t.Errorf("xdspub counts %d inotify instances, want %d", got, counted)
		}
		content(t, s.envoy)
	}
	has(2+listeners, 2+listeners)
	s.edit(t, "edge.yaml", func(string) string { return replace("port_value: 1}", port+"}")(asked("b")) })
	has(2+2*listeners, 2+2*listeners)
	envoytest.Eventually(t, patience, "the filter chains have drained", func() (bool, string) {
		n := s.envoy.Stat(t, "listener_manager.total_filter_chains_draining")
		return n == 0, fmt.Sprint(n, " drain")
	})
	has(2+listeners, 2+2*listeners) // xdspub counts until --trim-delay is over
	s.args = append(s.args, "--trim-delay", "0s")
	has(2+listeners, 2+listeners)
}

// inlined reports whether xdspub has logged that it inlines endpoints.
func inlined(s *fixture) bool { return strings.Contains(s.watch.Log(), "code=endpoints-inlined") }

// TestFullBudget uses the whole default inotify budget of xdspub, and makes the changes that need the most further
// instances.
func TestFullBudget(t *testing.T) {
	upstream := envoytest.NewUpstream(t, "upstream")
	port := envoytest.FreePort(t)
	const taken = 3 // by cds, lds and rds
	start := func(t *testing.T, clusters string, n int, args ...string) *fixture {
		t.Helper()
		needInotify(t, 120)
		s := startFixture(t, map[string]string{
			"many.yaml": clusters,
			"edge.yaml": documents(staticCluster("web", upstream.Port()), routes("main", "web"), listener("edge", port, rds("main"))),
		}, args...)
		if got := s.envoy.InotifyInstances(t); got != taken+n {
			t.Errorf("%d inotify instances, want %d and one for each of %d clusters", got, taken, n)
		}
		return s
	}
	answers := func(t *testing.T, s *fixture) {
		t.Helper()
		becomes(t, "the page", "200 upstream", func() string { return ask(t, request{port: port}).text })
		content(t, s.envoy)
	}
	settles := func(t *testing.T, s *fixture, n int) {
		t.Helper()
		envoytest.Eventually(t, patience, fmt.Sprintf("Envoy has %d clusters by file", n), func() (bool, string) {
			got := s.envoy.InotifyInstances(t)
			return got == taken+n, fmt.Sprint(got, " inotify instances")
		})
		answers(t, s)
	}

	t.Run("110 clusters", func(t *testing.T) {
		s := start(t, many(0, 110, upstream.Port()), 110, "--trim-delay", "500ms")
		// All clusters change. Envoy replaces each before it adds the next.
		s.edit(t, "many.yaml", replace("type: EDS", "type: EDS, connect_timeout: 2s"))
		settles(t, s, 110)
		// Retired clusters stay until their trim. xdspub counts each once, not also its file.
		s.edit(t, "many.yaml", func(string) string { return many(0, 100, upstream.Port(), "connect_timeout: 2s") })
		s.watch.WaitLog(t, "event=trimmed")
		settles(t, s, 100)
		if inlined(s) {
			t.Error("endpoints went inline, though all was within the budget")
		}
	})
	t.Run("70 clusters make way for 70 others", func(t *testing.T) {
		s := start(t, many(0, 70, upstream.Port()), 70, "--trim-delay", "500ms", "--allow-removal")
		s.edit(t, "many.yaml", func(string) string { return many(70, 140, upstream.Port()) })
		if !inlined(s) {
			t.Error("endpoints stayed in files, though old and new together are past the budget")
		}
		answers(t, s)
		s.watch.WaitLog(t, "event=trimmed")
		settles(t, s, 0)
	})
	// An upstream that takes connections and never answers a health check.
	t.Run("70 clusters get warm beside those that run", func(t *testing.T) {
		silent, err := net.Listen("tcp", address(0))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { silent.Close() })
		const check = "health_checks: [{timeout: 0.5s, interval: 60s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]"
		clusters := many(0, 70, silent.Addr().(*net.TCPAddr).Port, check)
		s := start(t, clusters, 70)
		envoytest.Eventually(t, patience, "Envoy has warm clusters", func() (bool, string) {
			n := s.envoy.Stat(t, "cluster_manager.warming_clusters")
			return n == 0, fmt.Sprint(n, " clusters are getting warm")
		})
		s.edit(t, "many.yaml", replace("type: EDS", "type: EDS, connect_timeout: 2s"))
		if !inlined(s) {
			t.Error("endpoints stayed in files, though old and new together are past the budget")
		}
		settles(t, s, 0)
	})
}

// TestWatches compares the inotify instances that xdspub counts with those that Envoy takes. If xdspub counted too
// few, an Envoy could abort. If it counted too many, it would waste its budget.
func TestWatches(t *testing.T) {
	p := newPair(t, "localhost")
	dir := t.TempDir()
	certificateFile, keyFile := filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
	for name, text := range map[string]string{certificateFile: p.certificate, keyFile: p.key} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inFiles := func(name string) string {
		return document("envoy.extensions.transport_sockets.tls.v3.Secret", `name: %q, tls_certificate: {certificate_chain: {filename: %q}, private_key: {filename: %q}}`, name, certificateFile, keyFile)
	}
	web := staticCluster("web", 1)
	inline := "route_config: {" + hosts("web") + "}"
	marker := "http_filters: [" + discovered("marker", headerMutation) + ", " + router + "]"
	late := "initial_fetch_timeout: 3s" // makes another config source for the same resource
	body := func(watched string) string {
		return fmt.Sprintf(`route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {filename: %q%s}}}]}]}`, certificateFile, watched)
	}
	upstreamFilters := `typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http_protocol_options: {}}, ` +
		"http_filters: [" + discovered("marker", headerMutation) + `, {name: codec, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec}}]}}`

	const bootstrap = 2 // cds and lds
	for _, tt := range []struct {
		name   string
		source string
		envoy  int // the instances that Envoy takes beside those of the bootstrap
		more   int // the instances that xdspub counts in addition
	}{
		{name: "clusters that hold their endpoints", source: web},
		{name: "each EDS cluster", source: documents(edsCluster("a"), endpoints("a", 1), edsCluster("b"), endpoints("b", 1)), envoy: 2},
		{name: "two EDS clusters of one assignment", source: documents(edsCluster("a", "eds_cluster_config: {service_name: s}"), edsCluster("b", "eds_cluster_config: {service_name: s}"), endpoints("s", 1)), envoy: 2},
		{name: "RDS of two listeners", source: documents(web, routes("r", "web"), listener("a", 1, rds("r")), listener("b", 2, rds("r"))), envoy: 1},
		// Envoy compares only a part of the config source here.
		{name: "RDS of two listeners, asked for in two ways", source: documents(web, routes("r", "web"), listener("a", 1, rds("r")), listener("b", 2, replace("ads: {}", "ads: {}, "+late)(rds("r")))), envoy: 1, more: 1},
		{name: "SDS of two listeners and a cluster", source: documents(staticCluster("web", 1, upstreamTLS("s")), certificate("s", p), tlsListener("a", 1, downstreamTLS("s"), inline), tlsListener("b", 2, downstreamTLS("s"), inline)), envoy: 1},
		{name: "SDS asked for in two ways", source: documents(web, certificate("s", p), tlsListener("a", 1, downstreamTLS("s"), inline), tlsListener("b", 2, downstreamTLS("s", late), inline)), envoy: 2},
		{name: "SDS with files, of two listeners", source: documents(web, inFiles("s"), tlsListener("a", 1, downstreamTLS("s"), inline), tlsListener("b", 2, downstreamTLS("s"), inline)), envoy: 2},
		{name: "ECDS of two listeners", source: documents(web, extension("marker", responseHeader("x")), listener("a", 1, inline, marker), listener("b", 2, inline, marker)), envoy: 1},
		{name: "ECDS asked for in two ways", source: documents(web, extension("marker", responseHeader("x")), listener("a", 1, inline, marker), listener("b", 2, inline, "http_filters: ["+discovered("marker", headerMutation, late)+", "+router+"]")), envoy: 2},
		{name: "ECDS upstream, in two clusters", source: documents(staticCluster("a", 1, upstreamFilters), staticCluster("b", 1, upstreamFilters), extension("marker", responseHeader("x"))), envoy: 1},
		{name: "ECDS upstream and downstream", source: documents(staticCluster("web", 1, upstreamFilters), extension("marker", responseHeader("x")), listener("a", 1, inline, marker)), envoy: 2},
		{name: "SRDS of two listeners", source: documents(web, routes("r", "web"), routes("q", "web"), scope("r", "r", "r"), scope("q", "q", "q"), listener("a", 1, srds("s")), listener("b", 2, srds("t"))), envoy: 1},
		{name: "RTDS", source: documents(web, runtimeLayer("a", "{}"), runtimeLayer("b", "{}")), envoy: 2},
		{name: "a response from a file", source: listener("a", 1, body(""))},
		{name: "a response from a file that is watched, twice", source: documents(listener("a", 1, body(fmt.Sprintf(", watched_directory: {path: %q}", dir))), listener("b", 2, body(fmt.Sprintf(", watched_directory: {path: %q}", dir)))), envoy: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := envoytest.FreePort(t), envoytest.FreePort(t)
			source := strings.NewReplacer("port_value: 1}}, filter_chains", fmt.Sprintf("port_value: %d}}, filter_chains", a),
				"port_value: 2}}, filter_chains", fmt.Sprintf("port_value: %d}}, filter_chains", b)).Replace(tt.source)
			s := startFixture(t, map[string]string{"all.yaml": source})
			content(t, s.envoy)
			if got := s.envoy.InotifyInstances(t); got != bootstrap+tt.envoy {
				t.Errorf("Envoy takes %d inotify instances, want %d", got, bootstrap+tt.envoy)
			}
			if got := s.counted(t); got != bootstrap+tt.envoy+tt.more {
				t.Errorf("xdspub counts %d inotify instances, want %d", got, bootstrap+tt.envoy+tt.more)
			}
		})
	}
}

// counted returns the instances that xdspub counts: render logs them if they exceed the inotify budget.
func (s *fixture) counted(t *testing.T) int {
	t.Helper()
	args := append([]string{"render", "--dry-run", "--eds", "file", "--inotify-budget", "2"}, append(s.args, s.src)...)
	_, stderr, exit := xdspub(t, args...)
	if exit == 0 {
		return 2
	}
	m := regexp.MustCompile(`need (\d+) inotify instances`).FindStringSubmatch(stderr)
	if m == nil {
		t.Fatalf("exit status %d: %s", exit, stderr)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// many returns EDS clusters with their endpoints, named c<from> to c<to-1>.
func many(from, to, port int, config ...string) string {
	var list []string
	for i := from; i < to; i++ {
		name := fmt.Sprintf("c%03d", i)
		list = append(list, edsCluster(name, config...), endpoints(name, port))
	}
	return documents(list...)
}

// needInotify waits until n inotify instances are free: other tests take some, too.
func needInotify(t *testing.T, n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		t.Skip("inotify is Linux's")
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	envoytest.Eventually(t, patience, fmt.Sprintf("%d of %d inotify instances are free", n, limit), func() (bool, string) {
		taken := inotifyInstances(t)
		return taken+n <= limit, fmt.Sprint(taken, " are taken")
	})
}

// inotifyInstances returns the number of inotify instances in all processes whose descriptors this process can read.
func inotifyInstances(t *testing.T) int {
	t.Helper()
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range fds {
		info, err := os.Lstat(fd)
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
			continue
		}
		if target, err := os.Readlink(fd); err == nil && target == "anon_inode:inotify" {
			n++
		}
	}
	return n
}
