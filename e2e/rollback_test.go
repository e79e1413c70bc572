package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
)

// generations is a watch with an Envoy whose listener names the generation of the source tree in each answer.
type generations struct {
	*fixture
	page request
	of   func(generation int) string // the file edge.yaml
}

// newGenerations publishes the generation 0 by a watch with further arguments.
func newGenerations(t *testing.T, args ...string) *generations {
	t.Helper()
	envoytest.Binary(t)
	upstream, port := envoytest.NewUpstream(t, "upstream"), envoytest.FreePort(t)
	g := &generations{page: request{port: port}, of: func(n int) string {
		name := fmt.Sprintf("generation-%d", n)
		return documents(staticCluster(name, upstream.Port()), routes("main", name), listener("edge", port, "server_name: "+name, rds("main")))
	}}
	g.fixture = newFixture(t, map[string]string{"edge.yaml": g.of(0)}, "--trim-delay", "1s")
	g.args = append(g.args, "--envoy-admin", "http://"+address(g.admin))
	g.startWatch(t, args...)
	g.startEnvoy(t)
	g.runs(t, 0)
	return g
}

// publish writes a generation into the source tree.
func (g *generations) publish(t *testing.T, n int) {
	t.Helper()
	g.edit(t, "edge.yaml", func(string) string { return g.of(n) })
}

// runs waits until Envoy runs a generation.
func (g *generations) runs(t *testing.T, n int) {
	t.Helper()
	becomes(t, "the listener", fmt.Sprintf("generation-%d", n), func() string { return ask(t, g.page).header.Get("Server") })
}

// send sends requests, none of which may fail, until stop is called. stop returns their number.
func (g *generations) send(t *testing.T) (stop func() int) {
	return send(t, g.page, func(answer string) bool { return answer == "200 upstream" })
}

// TestRollback rolls back again and again, while requests go through a real Envoy. In each third round the watch is
// killed in the middle of the rollback, and the next watch completes the rollback. No request fails, and at the end of
// each round Envoy runs the snapshot of the rollback.
func TestRollback(t *testing.T) {
	s := newGenerations(t)
	stop := s.send(t)
	rounds, killed := 100/portion.Every(10, 25), 0
	for n := 1; n <= rounds; n++ {
		s.publish(t, n)
		s.runs(t, n)
		if n%3 == 0 {
			killed += s.killedRollback(t, n)
		} else {
			s.rollback(t)
		}
		s.runs(t, n-1)
		s.isPinned(t, true)
		stdout, stderr, exit := xdspub(t, "resume", "--out", s.out)
		if exit != 0 {
			t.Fatalf("round %d: resume: exit status %d\n%s%s", n, exit, stdout, stderr)
		}
		s.runs(t, n)
		s.isPinned(t, false)
	}
	t.Logf("%d rounds, %d rollbacks were begun when the watch was killed, %d requests", rounds, killed, stop())
	content(t, s.envoy)
}

// rollback rolls back to the entry before.
func (s *fixture) rollback(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"rollback", "--out", s.out, "--reason", "a test"}, args...)
	if stdout, stderr, exit := xdspub(t, args...); exit != 0 {
		t.Fatalf("%q: exit status %d\n%s%s", args, exit, stdout, stderr)
	}
}

// killedRollback kills the watch during a rollback, and starts the next watch. If the watch was killed before it knew
// of the rollback, killedRollback rolls back once more. killedRollback returns the number of rollbacks that were begun.
func (s *fixture) killedRollback(t *testing.T, round int) (begun int) {
	t.Helper()
	command := start(t, binary, "rollback", "--out", s.out, "--reason", "a test")
	random := rand.New(rand.NewPCG(uint64(round), 0))
	time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
	s.watch.Signal(t, syscall.SIGKILL)
	s.watch.Wait(t)
	command.Wait(t) // the watch may have ended before it answered
	s.startWatch(t)
	if stdout, _, _ := xdspub(t, "status", "--out", s.out); strings.Contains(stdout, "publishing is pinned") {
		return 1
	}
	s.rollback(t)
	return 0
}

// isPinned checks what status says.
func (s *fixture) isPinned(t *testing.T, want bool) {
	t.Helper()
	stdout, _, exit := xdspub(t, "status", "--out", s.out)
	if is := strings.Contains(stdout, "\npinned: to entry "); is != want || is && exit != 1 {
		t.Fatalf("pinned: %t, exit status %d\n%s", is, exit, stdout)
	}
}

// TestRollbackRefused rolls back to a snapshot that Envoy can't apply any more: its port is taken. The snapshot before
// the rollback stays published, and nothing is pinned.
func TestRollbackRefused(t *testing.T) {
	envoytest.Binary(t)
	upstream := envoytest.NewUpstream(t, "upstream")
	port, later := envoytest.FreePort(t), envoytest.FreePort(t)
	source := func(port int) string {
		return documents(staticCluster("blue", upstream.Port()), routes("main", "blue"), listener(fmt.Sprintf("edge-%d", port), port, rds("main")))
	}
	s := newFixture(t, map[string]string{"edge.yaml": source(port)}, "--allow-removal")
	s.args = append(s.args, "--envoy-admin", "http://"+address(s.admin))
	s.startWatch(t)
	s.startEnvoy(t)
	becomes(t, "the page", "200 upstream", func() string { return ask(t, request{port: port}).text })
	s.edit(t, "edge.yaml", func(string) string { return source(later) })
	becomes(t, "the page", "200 upstream", func() string { return ask(t, request{port: later}).text })
	occupy(t, port)
	stdout, stderr, exit := xdspub(t, "rollback", "--out", s.out, "--reason", "a test")
	if exit != 1 || !strings.Contains(stderr, "Envoy rejected it in step") {
		t.Fatalf("rollback: exit status %d\n%s%s", exit, stdout, stderr)
	}
	s.watch.WaitLog(t, "event=pin-refused")
	s.isPinned(t, false)
	if got := ask(t, request{port: later}).text; got != "200 upstream" {
		t.Errorf("after the refused rollback: %s", got)
	}
}

// occupy takes a port that a listener of Envoy has left, once the listener has drained.
func occupy(t *testing.T, port int) {
	t.Helper()
	envoytest.Eventually(t, patience, "the port is free", func() (bool, string) {
		l, err := net.Listen("tcp", address(port))
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err == nil, fmt.Sprint(err)
	})
}
