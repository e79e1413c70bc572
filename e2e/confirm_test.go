package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/render/publish"
	"xdspub/tools/envoytest"
)

// confirmed returns the flags of a watch that Envoys with these admin ports confirm.
func confirmed(admins ...int) []string {
	args := []string{"--ack-timeout", ackTimeout.String()}
	for _, port := range admins {
		args = append(args, "--envoy-admin", "http://"+address(port))
	}
	return args
}

// startConfirmed is startFixture with Envoys that confirm.
func startConfirmed(t *testing.T, source map[string]string, args ...string) *fixture {
	t.Helper()
	envoytest.Binary(t)
	s := newFixture(t, source, args...)
	s.args = append(s.args, confirmed(s.admin)...)
	s.startWatch(t)
	s.startEnvoy(t)
	s.took(t)
	return s
}

// takePort takes a port of the loopback interface, like another program, so that Envoy can't listen on it.
func takePort(t *testing.T) (port int, free func()) {
	t.Helper()
	// Not an ephemeral port, which any connection could take after free.
	port = envoytest.FreePort(t)
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return port, func() { l.Close() }
}

// bytesOut returns the content of the published files, by name.
func (s *fixture) bytesOut(t *testing.T) map[string]string {
	t.Helper()
	m, err := publish.ReadManifest(s.out)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, name := range m.Files.Names() {
		text, err := os.ReadFile(filepath.Join(s.out, name))
		if err != nil {
			t.Error(err)
		}
		files[name] = string(text)
	}
	return files
}

// sameOut fails the test unless the published files are those of before, except for retired clusters and files.
func (s *fixture) sameOut(t *testing.T, before map[string]string) {
	t.Helper()
	m, err := publish.ReadManifest(s.out)
	if err != nil {
		t.Fatal(err)
	}
	goes := m.RetiredAt()
	now := s.bytesOut(t)
	for name, text := range before {
		if name == "cds/cds.json" {
			if diff := cmp.Diff(clustersIn(t, text, nil), clustersIn(t, now[name], goes)); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		} else if now[name] != text {
			t.Errorf("%s is not what it was", name)
		}
	}
	for name := range now {
		if _, going := goes[publish.Retired{File: name}]; before[name] == "" && !going {
			t.Errorf("%s has come, and does not go", name)
		}
	}
}

// clustersIn returns the clusters of a CDS file that are not retired.
func clustersIn(t *testing.T, text string, goes map[publish.Retired]time.Time) []map[string]any {
	t.Helper()
	var response struct{ Resources []map[string]any }
	if err := json.Unmarshal([]byte(text), &response); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(response.Resources, func(c map[string]any) bool {
		_, going := goes[publish.Retired{Cluster: c["name"].(string)}]
		return going
	})
}

// TestRefusedByEnvoy adds a listener on a port that another process holds, and removes another listener. Envoy
// removes the listener, and refuses the new one. The watch rolls back: the removed listener serves again, and
// clients of a third listener notice nothing. The watch does not retry until the source changes.
func TestRefusedByEnvoy(t *testing.T) {
	t.Parallel()
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	edge, dropped := envoytest.FreePort(t), envoytest.FreePort(t)
	busy, free := takePort(t)
	s := startConfirmed(t, map[string]string{
		"edge.yaml":    documents(edsCluster("blue"), endpoints("blue", blue.Port()), routes("main", "blue"), listener("edge", edge, rds("main"))),
		"dropped.yaml": listener("dropped", dropped, rds("main")),
	})
	pages := []request{{port: edge}, {port: dropped}}
	for _, page := range pages {
		becomes(t, "the page", "200 blue", func() string { return ask(t, page).text })
	}
	before := s.bytesOut(t)
	stop := send(t, pages[0], func(answer string) bool { return answer == "200 blue" })

	// The watch reads the three files in one pass, so that they are one change.
	s.watch.Signal(t, syscall.SIGSTOP)
	s.write(t, "green.yaml", documents(edsCluster("green"), endpoints("green", green.Port()), listener("busy", busy, "route_config: {"+hosts("green")+"}")))
	s.remove(t, "dropped.yaml")
	s.watch.Signal(t, syscall.SIGCONT)
	moved := logTime(t, s.watch.WaitLog(t, "event=step-published step=listeners"))
	line := s.watch.WaitLog(t, "event=rolled-back ")
	if took := logTime(t, line).Sub(moved); took > ackTimeout || !strings.Contains(line, "step=listeners") {
		t.Errorf("back after %v, more than the ack timeout: %s", took, line)
	}
	finding := s.watch.WaitLog(t, "code=refused-by-envoy")
	for _, want := range []string{"green.yaml:", "busy", "Address already in use"} {
		if !strings.Contains(finding, want) {
			t.Errorf("the finding %s lacks %q", finding, want)
		}
	}
	becomes(t, "the dropped listener", "200 blue", func() string { return ask(t, pages[1]).text })
	s.sameOut(t, before)
	stop()
	refused, err := publish.ReadRefused(s.out)
	if err != nil || len(refused.Held) != 1 || refused.Last == nil || len(refused.Last.Findings) == 0 {
		t.Fatalf("on record: %+v, %v", refused, err)
	}

	// The watch holds the same snapshot. After SIGHUP, it retries, and Envoy refuses the snapshot again.
	s.write(t, "green.yaml", "# another look of the same\n"+s.read(t, "green.yaml"))
	s.watch.Signal(t, syscall.SIGHUP)
	s.watch.WaitLog(t, "event=rolled-back ")
	s.sameOut(t, before)
	stdout, stderr, exit := xdspub(t, "render", "--dry-run", "--out", s.out, s.src)
	if exit != 0 || !strings.Contains(stdout, "held: Envoy rejected it at") {
		t.Errorf("dry run: exit status %d\n%s%s", exit, stdout, stderr)
	}

	free()
	s.watch.Signal(t, syscall.SIGHUP)
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "the listener that was refused", "200 green", func() string { return ask(t, request{port: busy}).text })
	if refused, err := publish.ReadRefused(s.out); err != nil || len(refused.Held) > 0 {
		t.Errorf("still held: %+v, %v", refused, err)
	}
}

// logTime returns the time of a log line.
func logTime(t *testing.T, line string) time.Time {
	t.Helper()
	text, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestRefusedThenFixed: a watch that holds a snapshot publishes another one, also if it was restarted in between.
// render says why a snapshot is held.
func TestRefusedThenFixed(t *testing.T) {
	t.Parallel()
	up := envoytest.NewUpstream(t, "up")
	edge, other := envoytest.FreePort(t), envoytest.FreePort(t)
	busy, _ := takePort(t)
	second := func(port int) string {
		return listener("second", port, "route_config: {"+hosts("up")+"}")
	}
	s := startConfirmed(t, map[string]string{"edge.yaml": documents(staticCluster("up", up.Port()), listener("edge", edge, "route_config: {"+hosts("up")+"}"))})
	before := s.bytesOut(t)
	s.write(t, "second.yaml", second(busy))
	s.watch.WaitLog(t, "event=rolled-back ")
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	if log := s.watch.Log(); strings.Contains(log, "event=failed ") {
		t.Errorf("a refusal is no failure of the watch:\n%s", log)
	}

	render := append([]string{"render"}, append(s.args, s.src)...)
	_, stderr, exit := xdspub(t, render...)
	if exit != 1 || !strings.Contains(stderr, "is held: Envoy rejected it") || !strings.Contains(stderr, "[refused-by-envoy]") {
		t.Errorf("exit status %d\n%s", exit, stderr)
	}
	_, stderr, exit = xdspub(t, append(render, "--retry-held")...)
	if exit != 1 || !strings.Contains(stderr, "the snapshot before is published again") {
		t.Errorf("exit status %d\n%s", exit, stderr)
	}
	s.sameOut(t, before)
	s.beginWatch(t)
	s.watch.WaitLog(t, "event=held ")
	s.write(t, "second.yaml", second(other))
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "the second listener", "200 up", func() string { return ask(t, request{port: other}).text })
}

// TestRefusedThatStays: a file that an Envoy refused at its start stays published. If somebody asks for a retry,
// xdspub publishes it again, although no byte has changed.
func TestRefusedThatStays(t *testing.T) {
	t.Parallel()
	up := envoytest.NewUpstream(t, "up")
	busy, free := takePort(t)
	s := startConfirmed(t, map[string]string{"edge.yaml": staticCluster("up", up.Port())})
	s.envoy.Stop(t)
	s.write(t, "busy.yaml", listener("busy", busy, "route_config: {"+hosts("up")+"}"))
	s.watch.WaitLog(t, "event=published ") // no Envoy runs yet
	s.startEnvoy(t)
	status := []string{"status", "--out", s.out, "--envoy-admin", "http://" + address(s.admin)}
	stdout, _, exit := xdspub(t, status...)
	if exit != 1 || !strings.Contains(stdout, "REJECTED") || !strings.Contains(stdout, "Address already in use") {
		t.Errorf("status: exit status %d\n%s", exit, stdout)
	}
	s.watch.Signal(t, syscall.SIGHUP)
	s.watch.WaitLog(t, "event=refused-kept ")
	free()
	s.watch.Signal(t, syscall.SIGHUP)
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "the listener", "200 up", func() string { return ask(t, request{port: busy}).text })
	if stdout, _, exit := xdspub(t, status...); exit != 0 {
		t.Errorf("status: exit status %d\n%s", exit, stdout)
	}
}

// TestOneOfTwoRefuses has two Envoys read one directory. The first of them already has the port of a new listener.
// Both Envoys go back to the old listeners. With --ack-quorum any, the Envoy that accepts the new listener is
// enough.
func TestOneOfTwoRefuses(t *testing.T) {
	t.Parallel()
	up := envoytest.NewUpstream(t, "up")
	edge, second := envoytest.FreePort(t), envoytest.FreePort(t)
	page := "route_config: {" + hosts("up") + "}"
	s := startConfirmed(t, map[string]string{"edge.yaml": documents(staticCluster("up", up.Port()), listener("edge", edge, page))})
	otherAdmin := envoytest.FreePort(t)
	stdout, stderr, exit := xdspub(t, "bootstrap", "envoy", "--out", s.out, "--admin", address(otherAdmin))
	if exit != 0 {
		t.Fatal(stderr)
	}
	other := envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, `%s
static_resources: {listeners: [{name: static, address: {socket_address: {address: 127.0.0.1, port_value: %d}}, filter_chains: [{filters: [
  {name: answer, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.direct_response.v3.Config}}]}]}]}
`, stdout, second)})
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	before := s.bytesOut(t)
	versions := func() [2]string {
		const stat = "listener_manager.lds.version_text"
		return [2]string{s.envoy.TextStat(t, stat), other.TextStat(t, stat)}
	}
	old := versions()

	s.write(t, "second.yaml", listener("second", second, page))
	s.args = append(s.args, confirmed(otherAdmin)...)
	render := append([]string{"render"}, append(s.args, s.src)...)
	_, stderr, exit = xdspub(t, render...)
	if exit != 1 || !strings.Contains(stderr, "has duplicate address") || !strings.Contains(stderr, address(otherAdmin)) {
		t.Errorf("exit status %d\n%s", exit, stderr)
	}
	s.sameOut(t, before)
	if now := versions(); now != old {
		t.Errorf("they run %v, ran %v", now, old)
	}
	for _, l := range s.envoy.ConfigDump(t, "dynamic_listeners") {
		if l["name"] == "second" && l["active_state"] != nil {
			t.Errorf("the one that took it still has the listener: %v", l)
		}
	}

	stdout, stderr, exit = xdspub(t, append(render, "--retry-held", "--ack-quorum", "any")...)
	if exit != 0 || !strings.Contains(stdout, "confirmed: 1 of 2 Envoys acknowledged it") || !strings.Contains(stderr, address(otherAdmin)) {
		t.Errorf("exit status %d\n%s%s", exit, stdout, stderr)
	}
	if now := versions(); now[0] == old[0] {
		t.Errorf("they run %v", now)
	}
}

// TestBackWhileDraining restores a route configuration and a secret while their listener still drains. Envoy would
// never see an update of a file whose folder was replaced. The test shows that Envoy sees later updates of both.
func TestBackWhileDraining(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args func(s *fixture) []string
	}{
		{"confirmed", func(s *fixture) []string { return confirmed(s.admin) }},
		// The files are trimmed, although their listener drains.
		{"trimmed at once", func(*fixture) []string { return []string{"--trim-delay", "10ms"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			envoytest.Binary(t)
			up := envoytest.NewUpstream(t, "up")
			secure := envoytest.FreePort(t)
			pairs := []pair{newPair(t, "first"), newPair(t, "second"), newPair(t, "third")}
			generation := func(name, server string, p pair) string {
				return documents(staticCluster("up", up.Port()), certificate("certificate-"+name, p),
					routes("routes-"+name, "up", fmt.Sprintf(`{match: {prefix: /who}, direct_response: {status: 200, body: {inline_string: %s}}}`, server)),
					tlsListener("secure", secure, downstreamTLS("certificate-"+name), rds("routes-"+name)))
			}
			s := newFixture(t, map[string]string{"a.yaml": generation("a", "one", pairs[0])})
			s.args = append(s.args, tt.args(s)...)
			s.startWatch(t)
			s.startEnvoy(t)
			s.took(t)
			kept := keepTLS(t, secure)
			defer kept.Close()

			s.write(t, "a.yaml", generation("b", "two", pairs[1]))
			s.watch.WaitLog(t, "event=published ")
			becomes(t, "the listener", "second", func() string { return peer(secure) })
			if tt.name != "confirmed" {
				envoytest.Eventually(t, patience, "the file goes", func() (bool, string) { return !s.exists("rds/routes-a/rds.json"), "" })
			}
			if n := s.envoy.Stat(t, "listener_manager.total_listeners_draining") + s.envoy.Stat(t, "listener_manager.total_filter_chains_draining"); n < 1 {
				t.Errorf("%d listeners and filter chains drain", n)
			}

			s.write(t, "a.yaml", generation("a", "three", pairs[0]))
			s.watch.WaitLog(t, "event=published ")
			becomes(t, "the listener", "first", func() string { return peer(secure) })
			becomes(t, "the page", "200 three", func() string { return whoTLS(t, secure) })
			s.write(t, "a.yaml", generation("a", "four", pairs[2]))
			s.watch.WaitLog(t, "event=published ")
			becomes(t, "the page", "200 four", func() string { return whoTLS(t, secure) })
			becomes(t, "the listener", "third", func() string { return peer(secure) })
			content(t, s.envoy)
		})
	}
}

// TestBadAdmins: if an admin interface can't confirm, xdspub says so before any file moves.
func TestBadAdmins(t *testing.T) {
	t.Parallel()
	up := envoytest.NewUpstream(t, "up")
	edge := func(name string) string {
		return documents(staticCluster("up", up.Port()), listener(name, envoytest.FreePort(t), "route_config: {"+hosts("up")+"}"))
	}
	s := newFixture(t, map[string]string{"edge.yaml": edge("edge")})
	s.startWatch(t)
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	before := s.bytesOut(t)
	s.write(t, "edge.yaml", edge("other"))
	s.write(t, "late.yaml", documents(edsCluster("late"), endpoints("late", up.Port()))) // nobody is subscribed to it yet

	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") }))
	defer page.Close()
	elsewhere := newFixture(t, map[string]string{"edge.yaml": edge("edge")})
	elsewhere.startWatch(t)
	elsewhere.startEnvoy(t)
	hides := func(matcher string) string {
		hidden := newFixture(t, nil)
		hidden.out = s.out
		hidden.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: append(hidden.bootstrap(t), "stats_config: {stats_matcher: "+matcher+"}\n"...)})
		return "http://" + address(hidden.admin)
	}
	var turn atomic.Int32
	nothing := "{exclusion_list: {patterns: [{prefix: no.such.statistic}]}}"
	behind := []string{hides(nothing), hides(nothing)}
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, _ := url.Parse(behind[int(turn.Add(1))%len(behind)])
		r.SetURL(to)
	}})
	defer balancer.Close()
	for _, tt := range []struct {
		name, url, want string
		exit            int
	}{
		{"two Envoys behind one address", balancer.URL, "another process answers each time", 3},
		{"no URL", "localhost", "write http://HOST:PORT or unix:PATH", 2},
		{"another program", page.URL, "is not the admin interface of an Envoy", 3},
		{"an Envoy that reads another directory", "http://" + address(elsewhere.admin), "reads no file below " + s.out, 3},
		{"an Envoy that hides its statistics", hides("{reject_all: true}"), "stats_matcher", 3},
		{"an Envoy that hides those of clusters", hides("{exclusion_list: {patterns: [{prefix: cluster_manager.cds}]}}"), "excludes cluster_manager.cds", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, exit := xdspub(t, append([]string{"render", "--allow-removal", "--envoy-admin", tt.url}, append(s.args, s.src)...)...)
			if exit != tt.exit || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit status %d, want %d and %q\n%s", exit, tt.exit, tt.want, stderr)
			}
			s.sameOut(t, before)
			if s.exists("eds/late/eds.json") {
				t.Error("a new name is out")
			}
		})
	}
}

// TestHangingEnvoy stops an Envoy within a change. The watch waits for the Envoy, and then goes on without it. It
// trims nothing until the Envoy acknowledges the change.
func TestHangingEnvoy(t *testing.T) {
	t.Parallel()
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	edge := envoytest.FreePort(t)
	color := func(name string, port int) string {
		return documents(staticCluster(name, port), routes("main", name), listener("edge", edge, rds("main")))
	}
	s := startConfirmed(t, map[string]string{"edge.yaml": color("blue", blue.Port())}, "--trim-delay", "1ms")
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	s.startWatch(t, "--ack-timeout", "1s")
	s.envoy.Signal(t, syscall.SIGSTOP)
	s.write(t, "edge.yaml", color("green", green.Port()))
	s.watch.WaitLog(t, "event=step-unconfirmed ")
	s.watch.WaitLog(t, "event=published ")
	if text := s.bytesOut(t)["cds/cds.json"]; !strings.Contains(text, `"blue"`) || !strings.Contains(text, `"green"`) {
		t.Errorf("the clusters are\n%s", text)
	}
	s.envoy.Signal(t, syscall.SIGCONT)
	becomes(t, "the page", "200 green", func() string { return ask(t, request{port: edge}).text })
	s.watch.WaitLog(t, "event=trimmed")
	if text := s.bytesOut(t)["cds/cds.json"]; strings.Contains(text, `"blue"`) {
		t.Errorf("the clusters are\n%s", text)
	}
	content(t, s.envoy)
}

// TestKilledUnconfirmed kills xdspub while it waits for the answer of an Envoy that refuses. The next xdspub asks
// again, and rolls back.
func TestKilledUnconfirmed(t *testing.T) {
	t.Parallel()
	up := envoytest.NewUpstream(t, "up")
	edge := envoytest.FreePort(t)
	busy, _ := takePort(t)
	page := "route_config: {" + hosts("up") + "}"
	s := startConfirmed(t, map[string]string{"edge.yaml": documents(staticCluster("up", up.Port()), listener("edge", edge, page))})
	before := s.bytesOut(t)
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)

	// A proxy of the admin interface that stops answering after the rename.
	lds := filepath.Join(s.out, "lds/lds.json")
	target, err := url.Parse("http://" + address(s.admin))
	if err != nil {
		t.Fatal(err)
	}
	way := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if now, err := os.ReadFile(lds); err != nil || string(now) != before["lds/lds.json"] {
			<-r.Context().Done() // until the client gives up
			return
		}
		way.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	s.write(t, "busy.yaml", listener("busy", busy, page))
	direct := s.args
	s.args = []string{"--out", s.out, "--ack-timeout", "1h", "--envoy-admin", proxy.URL}
	s.beginWatch(t)
	s.watch.WaitLog(t, "event=step-published step=listeners")
	s.watch.Signal(t, syscall.SIGKILL)
	s.watch.Wait(t)
	if in, err := publish.ReadIntent(s.out); err != nil || in == nil {
		t.Fatalf("the change has ended: %v", err)
	}
	s.args = direct
	s.beginWatch(t)
	s.watch.WaitLog(t, "event=rolled-back ")
	s.sameOut(t, before)
	if in, err := publish.ReadIntent(s.out); err != nil || in != nil {
		t.Errorf("on its way yet: %+v, %v", in, err)
	}
	becomes(t, "the page", "200 up", func() string { return ask(t, request{port: edge}).text })
}

// keepTLS opens a connection and sends a request, so that the listener of the connection has to drain.
func keepTLS(t *testing.T, port int) net.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", address(port), &tls.Config{InsecureSkipVerify: true}) // self-signed
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET /who HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// whoTLS sends a request over a new connection, and returns the answer.
func whoTLS(t *testing.T, port int) string {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Get("https://" + address(port) + "/who")
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}
