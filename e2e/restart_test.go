package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"xdspub/render/publish"
	"xdspub/tools/envoytest"
)

// gate is a proxy of an admin interface. It shuts after a file has moved a number of times: later requests wait
// until the gate opens. So the test can act after a step is published, and before the watch knows Envoy's reaction.
type gate struct {
	port, to int

	mu      sync.Mutex
	file    string
	was     string // the last content of the file
	moves   int    // the moves of the file until the gate shuts; below 1, the gate stays open
	reached chan struct{}
	open    chan struct{}
}

func newGate(t *testing.T, to int) *gate {
	t.Helper()
	l, err := net.Listen("tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{port: l.Addr().(*net.TCPAddr).Port, to: to}
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			asking.Go(func() { g.pass(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.let()
		asking.Wait()
	})
	return g
}

// shut makes the gate shut after the file has moved a number of times. reached is closed then.
func (g *gate) shut(file string, moves int) (reached <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.file, g.was, g.moves = file, held(file), moves
	g.reached, g.open = make(chan struct{}), make(chan struct{})
	return g.reached
}

// held returns the content of a file; "" if there is no file.
func held(file string) string {
	data, _ := os.ReadFile(file)
	return string(data)
}

// let opens the gate until the next shut.
func (g *gate) let() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.moves = -1; g.open != nil {
		close(g.open)
		g.open = nil
	}
}

// closed returns the channel that a request has to wait for; nil if the gate is open.
func (g *gate) closed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.moves > 0 {
		if now := held(g.file); now != g.was {
			g.was = now
			if g.moves--; g.moves == 0 {
				close(g.reached)
			}
		}
	}
	if g.moves == 0 {
		return g.open
	}
	return nil
}

func (g *gate) pass(from net.Conn) {
	defer from.Close()
	if open := g.closed(); open != nil {
		<-open
	}
	to, err := net.Dial("tcp", address(g.to))
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// restarts is a fixture whose Envoy is restarted within the steps of changes that need all steps.
type restarts struct {
	*fixture
	gate  *gate
	color func(name string) string
	pages func(t *testing.T, colors ...string)
	is    string // the present color of the tree
}

// newRestarts returns a fixture that has published the color blue.
func newRestarts(t *testing.T, start func(s *fixture)) *restarts {
	t.Helper()
	envoytest.Binary(t)
	up := map[string]int{"blue": envoytest.NewUpstream(t, "blue").Port(), "green": envoytest.NewUpstream(t, "green").Port()}
	certificates := map[string]pair{"blue": newPair(t, "blue"), "green": newPair(t, "green")}
	port, secure := envoytest.FreePort(t), envoytest.FreePort(t)
	leaves := map[string]int{"blue": envoytest.FreePort(t), "green": envoytest.FreePort(t)}
	comes := map[string]int{"blue": envoytest.FreePort(t), "green": leaves["blue"]}
	color := func(name string) string {
		named := fmt.Sprintf(`{match: {prefix: /named}, route: {cluster: %s}}`, name)
		return documents(edsCluster("common"), endpoints("common", up[name]), edsCluster(name), endpoints(name, up[name]),
			certificate("certificate", certificates[name]), runtimeLayer("flags", fmt.Sprintf("{color: %s}", name)), extension("marker", responseHeader(name)),
			routes("main", "common", named), listener("edge", port, rds("main"), "http_filters: ["+discovered("marker", headerMutation)+", "+router+"]"),
			routes(name, name), tlsListener("secure", secure, downstreamTLS("certificate"), rds(name)),
			listener("leaves", leaves[name], "route_config: {"+hosts("common")+"}"), listener("comes", comes[name], "route_config: {"+hosts("common")+"}"))
	}
	pages := func(t *testing.T, colors ...string) {
		t.Helper()
		for _, page := range []request{{port: port}, {port: port, path: "/named"}} {
			envoytest.Eventually(t, patience, fmt.Sprintf("a page of one of %v", colors), func() (bool, string) {
				got := ask(t, page).text
				return slices.Contains(colors, strings.TrimPrefix(got, "200 ")), got
			})
		}
		envoytest.Eventually(t, patience, fmt.Sprintf("TLS of one of %v", colors), func() (bool, string) {
			got := peer(secure)
			return slices.Contains(colors, got), got
		})
	}
	s := newFixture(t, map[string]string{"all.yaml": color("blue")}, "--trim-delay", "1s")
	g := newGate(t, s.admin)
	s.args = append(s.args, confirmed(g.port)...)
	s.startWatch(t)
	start(s)
	s.took(t)
	r := &restarts{fixture: s, gate: g, color: color, pages: pages, is: "blue"}
	r.pages(t, "blue")
	return r
}

// step is a step of a change. It is published when the file has moved a number of times. NEW stands for the new
// color.
type step struct {
	name, file string
	moves      int
}

// allSteps are the steps after which the watch asks Envoy.
var allSteps = []step{
	{"new names", "eds/NEW/eds.json", 1},
	{"secrets, extensions, runtime", "sds/certificate/sds.json", 1},
	{"clusters", "cds/cds.json", 1},
	{"endpoints", "eds/common/eds.json", 1},
	{"extensions", "ecds/marker/ecds.json", 1},
	{"listeners that leave an address", "lds/lds.json", 1},
	{"listeners", "lds/lds.json", 2},
	{"routes", "rds/main/rds.json", 1},
	{"trim clusters", "cds/cds.json", 2},
}

// change begins the change to the other color. It returns when a step is published, and the watch asks for Envoy's
// reaction.
func (r *restarts) change(t *testing.T, at step) (old string) {
	t.Helper()
	old = r.is
	r.is = map[string]string{"blue": "green", "green": "blue"}[old]
	reached := r.gate.shut(filepath.Join(r.out, strings.ReplaceAll(at.file, "NEW", r.is)), at.moves)
	r.write(t, "all.yaml", r.color(r.is))
	envoytest.Eventually(t, patience, "the step is out", func() (bool, string) {
		select {
		case <-reached:
			return true, ""
		default:
			return false, "the watch does not ask"
		}
	})
	return old
}

// ends waits until the change is published, Envoy runs it, and everything retired is trimmed.
func (r *restarts) ends(t *testing.T) {
	t.Helper()
	r.pages(t, r.is)
	envoytest.Eventually(t, patience, "all is trimmed", func() (bool, string) {
		m, err := publish.ReadManifest(r.out)
		return err == nil && len(m.Retired) == 0 && m.Snapshot != "", fmt.Sprint(m.Retired, err)
	})
	envoytest.Eventually(t, patience, "in sync", func() (bool, string) {
		stdout, stderr, exit := xdspub(t, "status", "--out", r.out, "--envoy-admin", "http://"+address(r.admin))
		return exit == 0, stdout + stderr
	})
	content(t, r.envoy)
	if log := r.watch.Log(); regexp.MustCompile("event=(failed|source-invalid|step-refused|rolled-back|refused-kept|rollback-failed) ").MatchString(log) {
		t.Error("the watch says that something was refused, or could not run")
	}
}

// TestEnvoyKilledWithinSteps kills Envoy when a step is published and not confirmed. An Envoy that starts in the
// middle of the change or after it gets a complete configuration. The change goes on to its end, and retired
// resources are trimmed.
func TestEnvoyKilledWithinSteps(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, s *fixture) {
		s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{"--drain-time-s", "1", "--parent-shutdown-time-s", "2"}})
	}
	for _, again := range []bool{true, false} {
		name := map[bool]string{true: "and started again", false: "and down until the change is out"}[again]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestarts(t, func(s *fixture) { start(t, s) })
			for _, at := range allSteps {
				t.Log(at.name)
				old := r.change(t, at)
				r.envoy.Kill(t)
				r.gate.let()
				if again {
					start(t, r.fixture)
					r.pages(t, old, r.is)
				}
				out := "event=published "
				if at.name == "trim clusters" {
					out = "event=trimmed"
				}
				r.watch.WaitLog(t, out)
				if !again {
					start(t, r.fixture)
					r.pages(t, r.is)
				}
				r.ends(t)
				if t.Failed() {
					t.FailNow()
				}
			}
		})
	}
}

// TestHotRestartWithinSteps has a new Envoy take over when a step is published and not confirmed. The new Envoy
// confirms the change, although the old one reads the files, too.
func TestHotRestartWithinSteps(t *testing.T) {
	t.Parallel()
	id, epoch := envoytest.BaseID(t), 0
	start := func(s *fixture) {
		t.Helper()
		s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{
			"--base-id", id, "--restart-epoch", strconv.Itoa(epoch), "--drain-time-s", "1", "--parent-shutdown-time-s", "2"}})
		epoch++
	}
	r := newRestarts(t, start)
	until := r.watch.Log()
	for _, at := range allSteps {
		t.Log(at.name)
		old := r.change(t, at)
		parent := r.envoy
		start(r.fixture)
		r.pages(t, old, r.is)
		r.gate.let()
		if at.name != "trim clusters" {
			r.watch.WaitLog(t, "event=published ")
		}
		r.watch.WaitLog(t, "event=trimmed")
		parent.Wait(t)
		r.ends(t)
		// On a busy machine, for a while neither process may answer.
		if log := r.watch.Log()[len(until):]; strings.Count(log, "event=step-unconfirmed ") > strings.Count(log, "answering=0") {
			t.Error("a step was not confirmed")
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestHotRestartBetweenChanges: the old process serves connections of a removed listener, of which the new process
// knows nothing. The cluster of the listener stays as long. Both processes have an inotify instance for each
// subscription.
func TestHotRestartBetweenChanges(t *testing.T) {
	t.Parallel()
	id := envoytest.BaseID(t)
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	dropped, edge := envoytest.FreePort(t), envoytest.FreePort(t)
	always := documents(edsCluster("green"), endpoints("green", green.Port()), routes("main", "green"), listener("edge", edge, rds("main")))
	s := newFixture(t, map[string]string{"edge.yaml": always,
		"blue.yaml": documents(edsCluster("blue"), endpoints("blue", blue.Port()), routes("dropped", "blue"), listener("dropped", dropped, rds("dropped")))},
		"--trim-delay", "1ms", "--rescan", "1h") // the last pass is the one that was asked for
	s.args = append(s.args, confirmed(s.admin)...)
	s.startWatch(t)
	start := func(epoch string) *envoytest.Envoy {
		t.Helper()
		return envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{
			"--base-id", id, "--restart-epoch", epoch, "--drain-time-s", "300", "--parent-shutdown-time-s", "400"}})
	}
	parent := start("0")
	s.envoy = parent
	s.took(t)
	kept, err := dial(dropped)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.close()
	asks := func(what string) {
		t.Helper()
		fmt.Fprint(kept, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		response, err := http.ReadResponse(kept.read, nil)
		if err != nil {
			return // a draining listener may close the connection at any time
		}
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); response.StatusCode != http.StatusOK || string(body) != "blue" || err != nil {
			t.Errorf("%s: the connection that was kept gets %d %s, %v", what, response.StatusCode, body, err)
		}
	}
	asks("before")
	s.remove(t, "blue.yaml")
	s.watch.WaitLog(t, "event=published ")

	until := s.watch.Log()
	s.envoy = start("1")
	asks("after the hot restart")
	both := func(what string) {
		t.Helper()
		if old, now := parent.InotifyInstances(t), s.envoy.InotifyInstances(t); old < now || old > now+2 {
			t.Errorf("%s: %d inotify instances in the old process, %d in the new one", what, old, now)
		}
	}
	both("after the hot restart")
	s.watch.Signal(t, syscall.SIGHUP)
	envoytest.Eventually(t, patience, "the watch has looked", func() (bool, string) {
		w := s.asked(t)
		return w.Running == nil && w.Last != nil && w.Last.Reason == "SIGHUP", fmt.Sprintf("%+v", w.Last)
	})
	if text := held(filepath.Join(s.out, "cds/cds.json")); !strings.Contains(text, `"blue"`) {
		t.Error("blue is gone, and the old process has connections that use it")
	}
	asks("after a look")

	// A change while both run: the new one confirms it, and both read it.
	s.edit(t, "edge.yaml", func(text string) string {
		return documents(text, edsCluster("third"), endpoints("third", green.Port()))
	})
	envoytest.Eventually(t, patience, "both read the third cluster's endpoints", func() (bool, string) {
		old, now := parent.InotifyInstances(t), s.envoy.InotifyInstances(t)
		return old >= now && now >= 6, fmt.Sprint(old, " and ", now)
	})
	if log := s.watch.Log()[len(until):]; strings.Contains(log, "event=step-unconfirmed ") || strings.Contains(log, "trimmed") {
		t.Error("a step was not confirmed, or something was trimmed")
	}
	content(t, s.envoy)
	s.envoy.Stop(t) // and with it the other one
	parent.Wait(t)
}
