package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
)

// TestConfirmWithin publishes changes with --confirm-within, while requests go through a real Envoy: a confirmed change
// stays, and others are undone by cancel, by the end of their time, and by the next watch after a watch that was killed
// during the wait or during the undo. No request fails, and Envoy runs what it should at the end of each round.
func TestConfirmWithin(t *testing.T) {
	s := newGenerations(t, "--confirm-within", "1h")
	usual := s.args
	s.args = append(usual, "--confirm-within", "1h")
	stop := s.send(t)
	next, base := 0, 0
	change := func() {
		t.Helper()
		next++
		s.publish(t, next)
		s.runs(t, next)
		becomes(t, "the change", "on trial", func() string {
			if stdout, _, _ := xdspub(t, "status", "--out", s.out); strings.Contains(stdout, "\non trial: ") {
				return "on trial"
			}
			return "under way" // Envoy is faster than the watch
		})
	}
	command := func(args ...string) string {
		t.Helper()
		stdout, stderr, exit := xdspub(t, append(args, "--out", s.out)...)
		if exit != 0 {
			t.Fatalf("%q: exit status %d\n%s%s", args, exit, stdout, stderr)
		}
		return stdout
	}

	change()
	command("confirm", s.onTrial(t))
	base = next
	s.restart(t, s.args)
	s.runs(t, base)

	change()
	command("cancel")
	s.runs(t, base)

	for seed := range uint64(2) { // killed during the wait, and then during the undo
		change()
		s.watch.Signal(t, syscall.SIGKILL)
		s.watch.Wait(t)
		s.lapse(t)
		s.startWatch(t)
		time.Sleep(time.Duration(rand.New(rand.NewPCG(seed, 0)).IntN(300)) * time.Millisecond)
		s.watch.Signal(t, syscall.SIGKILL)
		s.watch.Wait(t)
		s.startWatch(t)
		s.runs(t, base)
		s.isPinned(t, true)
	}

	s.restart(t, append(usual, "--confirm-within", "1s"))
	next++
	s.publish(t, next)
	s.watch.WaitLog(t, "event=undoing")
	s.runs(t, base)
	s.watch.WaitLog(t, "reason=undo")
	t.Logf("%d changes, %d requests", next, stop())
	content(t, s.envoy)
}

// onTrial returns the id of the snapshot that awaits confirmation.
func (s *fixture) onTrial(t *testing.T) string {
	t.Helper()
	stdout, _, exit := xdspub(t, "status", "--out", s.out)
	m := regexp.MustCompile(`(?m)^on trial: snapshot (\S+) awaits confirmation until `).FindStringSubmatch(stdout)
	if m == nil || exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, stdout)
	}
	return m[1]
}

// lapse makes the time of the trial be over, while no watch runs.
func (s *fixture) lapse(t *testing.T) {
	t.Helper()
	file := filepath.Join(s.out, ".xdspub", "operator.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`"uptime_ns": \d+`).ReplaceAllString(string(data), `"uptime_ns": 1`)
	if text == string(data) || !strings.Contains(text, `"trial"`) {
		t.Fatalf("nothing awaits confirmation: %s", data)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// restart ends the watch, and starts another one with these options.
func (s *fixture) restart(t *testing.T, args []string) {
	t.Helper()
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	s.args = args
	s.startWatch(t)
}

// TestUndoRefused undoes a change whose snapshot before Envoy can't apply any more: its port is taken. The change stays
// published, every view says why, and an operator may keep it.
func TestUndoRefused(t *testing.T) {
	envoytest.Binary(t)
	upstream := envoytest.NewUpstream(t, "upstream")
	port, later := envoytest.FreePort(t), envoytest.FreePort(t)
	source := func(port int) string {
		return documents(staticCluster("blue", upstream.Port()), routes("main", "blue"), listener(fmt.Sprintf("edge-%d", port), port, rds("main")))
	}
	s := newFixture(t, map[string]string{"edge.yaml": source(port)}, "--allow-removal")
	s.args = append(s.args, "--envoy-admin", "http://"+address(s.admin), "--confirm-within", "1h")
	s.startWatch(t)
	s.startEnvoy(t)
	becomes(t, "the page", "200 upstream", func() string { return ask(t, request{port: port}).text })
	s.edit(t, "edge.yaml", func(string) string { return source(later) })
	becomes(t, "the page", "200 upstream", func() string { return ask(t, request{port: later}).text })
	id := s.onTrial(t)
	occupy(t, port)
	stdout, stderr, exit := xdspub(t, "cancel", "--out", s.out)
	if exit != 1 || !strings.Contains(stderr, "the change can't be undone: ") {
		t.Fatalf("cancel: exit status %d\n%s%s", exit, stdout, stderr)
	}
	s.watch.WaitLog(t, "event=undo-failed")
	if stdout, _, exit := xdspub(t, "status", "--out", s.out); exit != 1 || !strings.Contains(stdout, ", and can't be undone: ") {
		t.Errorf("status: exit status %d\n%s", exit, stdout)
	}
	if got := ask(t, request{port: later}).text; got != "200 upstream" {
		t.Errorf("after the refused undo: %s", got)
	}
	if stdout, stderr, exit := xdspub(t, "confirm", "--out", s.out, id); exit != 0 {
		t.Errorf("confirm: exit status %d\n%s%s", exit, stdout, stderr)
	}
	if stdout, _, _ := xdspub(t, "status", "--out", s.out); strings.Contains(stdout, "on trial") {
		t.Errorf("after the confirmation:\n%s", stdout)
	}
}
