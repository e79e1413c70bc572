package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// startDrained starts an Envoy with a drain time of a second on the fixture.
func (s *fixture) startDrained(t *testing.T) {
	t.Helper()
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{"--drain-time-s", "1", "--parent-shutdown-time-s", "2"}})
}

// says waits for the next lines of events, in this order. Each want is an event, followed by texts that its line has.
func (s *fixture) says(t *testing.T, wants ...string) {
	t.Helper()
	for _, want := range wants {
		texts := strings.Split(want, " | ")
		line := s.watch.WaitLog(t, "event="+texts[0])
		for _, text := range texts[1:] {
			if !strings.Contains(line+" ", text) {
				t.Errorf("no %q in\n%s", text, line)
			}
		}
	}
}

// TestLogOfADay: the log of a day on which everything happens that an operator may meet.
func TestLogOfADay(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	up := envoytest.NewUpstream(t, "up")
	busy, free := takePort(t)
	s := newFixture(t, map[string]string{
		"edge.yaml": documents(edsCluster("web"), endpoints("web", up.Port()), routes("main", "web"), listener("edge", envoytest.FreePort(t), rds("main"))),
		"more.yaml": staticCluster("more", up.Port()),
	}, "--rescan", "200ms")
	s.beginWatch(t, "--envoy-admin", "http://"+address(s.admin))
	s.says(t, "watching", "published | level=INFO | written=4 removed=0 resources=5 reason=start ")
	s.startDrained(t)
	s.says(t, "envoy-in-sync | files=4 ")

	s.write(t, "edge.yaml", replace("cluster: \"web\"", "cluster: more")(s.read(t, "edge.yaml")))
	s.says(t, "step-published | step=routes", "step-confirmed | answering=1 envoys=1 ", "published | resources_added=0 resources_changed=1 resources_removed=0 reason=change ")
	good := s.read(t, "edge.yaml")
	s.write(t, "edge.yaml", replace("cluster: more", "cluster: moer")(good))
	s.says(t, "finding | level=ERROR | code=unresolved-reference/cluster | edge.yaml:", "source-invalid | level=ERROR | errors=1 warnings=0 published=v")
	s.write(t, "edge.yaml", good)
	s.says(t, "source-valid")

	s.write(t, "busy.yaml", listener("busy", busy, rds("main")))
	s.says(t, "step-refused | step=listeners", "file-not-applied | level=WARN | file=lds/lds.json state=REJECTED expected_version=", "rolled-back | level=ERROR | snapshot=v | restored=v", "finding | code=refused-by-envoy | busy.yaml:")
	free()
	s.watch.Signal(t, syscall.SIGHUP)
	s.says(t, "published | resources_added=1 | reason=SIGHUP ", "refusal-ended | refused=v")

	s.envoy.Stop(t)
	s.startDrained(t)
	s.says(t, "envoy-restarted", "envoy-in-sync")

	if err := os.WriteFile(filepath.Join(s.out, "rds/main/rds.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.says(t, "published | written=1 removed=0 | resources_changed=0 | reason=rescan ")
	s.remove(t, "busy.yaml")
	s.says(t, "published | resources_removed=1 ")
	s.write(t, "edge.yaml", replace("cluster: more", "cluster: \"web\"")(good))
	s.remove(t, "more.yaml")
	s.says(t, "trimmed")
	s.watch.Signal(t, syscall.SIGHUP)
	s.says(t, "unchanged | reason=SIGHUP ")
	s.watch.Signal(t, syscall.SIGTERM)
	s.says(t, "ended | published=v")
	s.watch.Wait(t)
	log := s.watch.Log()
	t.Logf("the log of the day:\n%s", log)
	if n := len(regexp.MustCompile(`level=ERROR`).FindAllString(log, -1)); n != 4 {
		t.Errorf("%d errors, want those of one invalid edit and one refusal, two each", n)
	}
}

// TestRefusedAtStart: if an Envoy refuses its files at its start, or before the watch starts, the watch logs it
// once, and logs the end once.
func TestRefusedAtStart(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	up := envoytest.NewUpstream(t, "up")
	busy, free := takePort(t)
	s := newFixture(t, map[string]string{"edge.yaml": documents(staticCluster("up", up.Port()), listener("busy", busy, "route_config: {"+hosts("up")+"}"))},
		"--rescan", "100ms", "--envoy-admin", fmt.Sprint("http://", address(0)))
	s.args[len(s.args)-1] = "http://" + address(s.admin)
	s.beginWatch(t)
	s.says(t, "published")
	refused := "file-not-applied | level=ERROR | file=lds/lds.json state=REJECTED expected_version= | running_version= | Address already in use"
	s.startEnvoy(t)
	s.says(t, refused)
	s.envoy.Stop(t)
	s.startEnvoy(t)
	s.says(t, "envoy-restarted", refused)

	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	if n := strings.Count(s.watch.Log(), "event=file-not-applied "); n != 2 {
		t.Errorf("said %d times, want once for each start of Envoy:\n%s", n, s.watch.Log())
	}
	s.beginWatch(t)
	s.says(t, "watching", refused)
	free()
	s.watch.Signal(t, syscall.SIGHUP)
	s.says(t, "published | reason=SIGHUP", "envoy-in-sync | files=2 ")
	becomes(t, "the listener", "200 up", func() string { return ask(t, request{port: busy}).text })
}
