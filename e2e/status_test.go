package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xdspub/render/publish"
	"xdspub/tools/envoytest"
	"xdspub/watch/status"
)

// status returns the report of "xdspub status" about a fixture and its Envoys. It fails the test if the exit status
// does not fit the report.
func (s *fixture) status(t *testing.T, envoys ...*envoytest.Envoy) status.Report {
	t.Helper()
	args := []string{"status", "--format", "json", "--out", s.out}
	for _, e := range envoys {
		args = append(args, "--envoy-admin", adminURL(t, e))
	}
	stdout, stderr, exit := xdspub(t, args...)
	var r status.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || stderr != "" {
		t.Fatalf("exit status %d, %v\n%s%s", exit, err, stdout, stderr)
	}
	if want := map[bool]int{true: 0, false: 1}[r.InSync]; exit != want {
		t.Errorf("exit status %d, want %d:\n%s", exit, want, stdout)
	}
	return r
}

// words returns the state of each published file in an Envoy, one on each line.
func words(e status.EnvoyReport) string {
	var list []string
	for _, row := range e.Subscriptions {
		list = append(list, fmt.Sprintf("%s %s", row.Sync, row.File))
	}
	return strings.Join(list, "\n")
}

// shows waits until the words of the Envoys are want.
func (s *fixture) shows(t *testing.T, what string, inSync bool, want string, envoys ...*envoytest.Envoy) (r status.Report) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), ".json", "."+s.format)
	envoytest.Eventually(t, patience, what, func() (bool, string) {
		r = s.status(t, envoys...)
		fits := r.InSync == inSync
		for _, e := range r.Envoys {
			fits = fits && words(e) == want
		}
		return fits, fmt.Sprintf("%+v", r)
	})
	return r
}

// reader starts another Envoy that reads the output directory.
func (s *fixture) reader(t *testing.T) *envoytest.Envoy {
	t.Helper()
	bootstrap := strings.Replace(string(s.bootstrap(t)), fmt.Sprint(s.admin), "0", 1)
	return envoytest.Start(t, envoytest.Options{Bootstrap: []byte(bootstrap)})
}

// statusFixture returns a published tree with a file that nobody reads.
func statusFixture(t *testing.T, args ...string) *fixture {
	t.Helper()
	envoytest.Binary(t)
	s := newFixture(t, map[string]string{
		"edge.yaml": documents(edsCluster("web"), endpoints("web", 1), routes("main", "web"), listener("edge", envoytest.FreePort(t), rds("main"))),
		"lone.yaml": routes("lone", "web"),
	}, append(args, "--step-gap", "0s", "--trim-delay", "1h")...)
	s.publish(t)
	return s
}

// publish publishes the tree.
func (s *fixture) publish(t *testing.T) {
	t.Helper()
	if stdout, stderr, exit := xdspub(t, append(append([]string{"render"}, s.args...), s.src)...); exit != 0 {
		t.Fatalf("exit status %d\n%s%s", exit, stdout, stderr)
	}
}

const allSynced = `
SYNCED cds/cds.json
SYNCED eds/web/eds.json
SYNCED lds/lds.json
NOT SENT rds/lone/rds.json
SYNCED rds/main/rds.json`

// TestStatus brings the files of two Envoys into each of the states.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := statusFixture(t)
	one, two := s.reader(t), s.reader(t)
	r := s.shows(t, "both run what is out", true, allSynced, one, two)
	if r.Published.Resources["RDS"] != 2 || len(r.Envoys) != 2 || r.Envoys[0].State != "LIVE" || r.Change != nil {
		t.Errorf("%+v", r)
	}
	for _, row := range r.Envoys[0].Subscriptions {
		if row.Sync == status.Synced && (row.Version == "" || row.Runs != row.Version || row.Stats == "") {
			t.Errorf("%+v", row)
		}
	}

	routesFile := filepath.Join(s.out, "rds/main/rds.json")
	text, err := os.ReadFile(routesFile)
	if err != nil {
		t.Fatal(err)
	}
	for what, edit := range map[string]func() error{
		"edited":   func() error { return os.WriteFile(routesFile, append(text, '\n'), 0o644) },
		"replaced": func() error { return errors.Join(os.Remove(routesFile), os.Symlink("/dev/null", routesFile)) },
		"removed":  func() error { return os.Remove(routesFile) },
	} {
		if err := edit(); err != nil {
			t.Fatal(err)
		}
		r := s.shows(t, what, false, strings.Replace(allSynced, "SYNCED rds/main", "DRIFTED rds/main", 1), one, two)
		if len(r.Drifted) != 1 || r.Drifted[0] != "rds/main/rds.json" {
			t.Errorf("%s: %v", what, r.Drifted)
		}
		s.publish(t)
		s.shows(t, "mended", true, allSynced, one, two)
	}

	// The folder is replaced: Envoy watches the old folder for ever.
	folder := filepath.Join(s.out, "eds/web")
	eds, err := os.ReadFile(filepath.Join(folder, "eds.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	envoytest.Publish(t, filepath.Join(folder, "eds.json"), string(eds))
	s.shows(t, "nothing changed yet", true, allSynced, one, two)
	s.write(t, "edge.yaml", replace("port_value: 1}", "port_value: 2}")(s.read(t, "edge.yaml")))
	s.publish(t)
	stale := strings.Replace(allSynced, "SYNCED eds", "STALE eds", 1)
	s.shows(t, "the dead folder", false, stale, one, two)
	if r := s.status(t, one, s.reader(t)); r.Envoys[0].InSync || !r.Envoys[1].InSync || words(r.Envoys[1]) != strings.TrimSpace(allSynced) {
		t.Errorf("one that was started since: %+v", r)
	}

	// No Envoy confirms this publish, so the refused file stays published.
	held, err := net.Listen("tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	s.write(t, "refused.yaml", listener("refused", held.Addr().(*net.TCPAddr).Port, rds("main")))
	s.publish(t)
	r = s.shows(t, "a refused listener", false, strings.Replace(stale, "SYNCED lds", "REJECTED lds", 1), one, two)
	for _, row := range r.Envoys[0].Subscriptions {
		if row.API == "LDS" && (row.Runs == row.Version || row.Refusals != 1 || len(row.Reasons) != 1 || !strings.Contains(row.Reasons[0], `listener "refused": `) || !strings.Contains(row.Reasons[0], "already in use")) {
			t.Errorf("%+v", row)
		}
	}
	s.remove(t, "refused.yaml")
	s.publish(t)
	r = s.shows(t, "it refused one once, and runs what is out", false, stale, one, two)
	if len(r.Envoys[0].Subscriptions) != 5 || r.Envoys[0].Subscriptions[2].Refusals != 1 {
		t.Errorf("%+v", r.Envoys[0])
	}
}

// TestStatusOfMany asks an Envoy that is down, an Envoy that hangs, and an Envoy that reads clusters only.
func TestStatusOfMany(t *testing.T) {
	t.Parallel()
	s := statusFixture(t)
	up, down, hangs := s.reader(t), s.reader(t), s.reader(t)
	downURL := adminURL(t, down)
	down.Stop(t)
	if err := syscall.Kill(hangs.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(hangs.PID(), syscall.SIGCONT)
	clusters := envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, `
node: {id: clusters, cluster: clusters}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources: {cds_config: {path_config_source: {path: %s/cds/cds.json}}}
`, s.out)})
	wants := []string{
		0: "not in sync: 1 of 4 Envoys is down; 1 of 4 Envoys does not answer",
		3: "watch: none is running",
		4: "Envoy " + downURL + ": is down: ",
		5: "Envoy " + adminURL(t, hangs) + ": does not answer: ",
		6: "Envoy " + adminURL(t, up) + ": in sync, LIVE, 1 NOT SENT, 4 SYNCED",
		7: "  NOT SENT  rds/lone/rds.json",
		8: "Envoy " + adminURL(t, clusters) + ": in sync, LIVE, 2 SYNCED",
		9: "",
	}
	// On a busy machine, even a running Envoy may not answer in time.
	envoytest.Eventually(t, patience, "each has its line", func() (bool, string) {
		stdout, stderr, exit := xdspub(t, "status", "--out", s.out, "--envoy-admin", adminURL(t, up), "--envoy-admin", downURL, "--envoy-admin", adminURL(t, hangs), "--envoy-admin", adminURL(t, clusters))
		if exit != 1 || stderr != "" {
			t.Errorf("exit status %d\n%s", exit, stderr)
		}
		lines := strings.Split(stdout, "\n")
		return slices.EqualFunc(lines, wants, strings.HasPrefix), stdout
	})
}

// TestStatusCannotTell asks addresses that can't say anything about the directory.
func TestStatusCannotTell(t *testing.T) {
	t.Parallel()
	s, other := statusFixture(t), statusFixture(t)
	matcher := strings.Replace(string(s.bootstrap(t)), fmt.Sprint(s.admin), "0", 1) + `
stats_config: {stats_matcher: {exclusion_list: {patterns: [{contains: rds.main}]}}}
`
	for _, tt := range []struct{ name, admin, want string }{
		{"another directory", adminURL(t, other.reader(t)), "reads no file below " + s.out},
		{"another program", fmt.Sprintf("http://127.0.0.1:%d", envoytest.NewUpstream(t, "web").Port()), "is not the admin interface of an Envoy"},
		{"hidden statistics", adminURL(t, envoytest.Start(t, envoytest.Options{Bootstrap: []byte(matcher)})), "the stats_matcher of its bootstrap excludes http.*.rds.main"},
	} {
		stdout, stderr, exit := xdspub(t, "status", "--out", s.out, "--envoy-admin", tt.admin)
		if exit != 3 || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit status %d, want 3 and %q\n%s%s", tt.name, exit, tt.want, stdout, stderr)
		}
	}
}

// TestStatusWithinChange asks within a change, after its writer was killed, and after the change.
func TestStatusWithinChange(t *testing.T) { inFormats(t, testStatusWithinChange) }

func testStatusWithinChange(t *testing.T, format string) {
	s := statusFixture(t, "--format", format)
	e := s.reader(t)
	before := s.shows(t, "first", true, allSynced, e)
	s.write(t, "edge.yaml", replace(`cluster: "web"`, `cluster: "other"`)(s.read(t, "edge.yaml"))+"---\n"+documents(edsCluster("other"), endpoints("other", 1)))
	s.remove(t, "lone.yaml")
	s.beginWatch(t, "--step-gap", "1h")
	s.watch.WaitLog(t, "event=step-published step=\"new names\"")
	within := func(what string) {
		t.Helper()
		r := s.shows(t, what, false, `
SYNCED cds/cds.json
NOT SENT eds/other/eds.json
SYNCED eds/web/eds.json
SYNCED lds/lds.json
SYNCED rds/main/rds.json`, e)
		if c := r.Change; c == nil || c.From != before.Published.Snapshot || c.To == c.From || c.Direction != publish.Forward || c.Attempt != 1 || r.Published.Snapshot != c.From || len(r.Drifted) > 0 {
			t.Errorf("%s: %+v, %+v", what, r, r.Change)
		}
		stdout, _, _ := xdspub(t, "status", "--out", s.out)
		if want := "\nchange: forward, from " + before.Published.Snapshot; !strings.HasPrefix(stdout, "not in sync: a change is under way or was interrupted") || !strings.Contains(stdout, want) {
			t.Errorf("%s: no %q in\n%s", what, want, stdout)
		}
	}
	within("under way")
	s.watch.Signal(t, syscall.SIGKILL)
	s.watch.Wait(t)
	within("interrupted")
	s.startWatch(t)
	r := s.shows(t, "through", true, `
SYNCED cds/cds.json
SYNCED eds/other/eds.json
SYNCED eds/web/eds.json
SYNCED lds/lds.json
SYNCED rds/main/rds.json`, e)
	if len(r.Retired) != 1 || r.Retired[0].File != "rds/lone/rds."+format || r.Retired[0].Since.IsZero() {
		t.Errorf("%+v", r.Retired)
	}
}

// TestStatusOfHeld: an Envoy that refused a snapshot runs the previous snapshot, and is not in sync with the source
// tree.
func TestStatusOfHeld(t *testing.T) {
	t.Parallel()
	s := statusFixture(t)
	busy, _ := takePort(t)
	e := s.reader(t)
	s.startWatch(t, "--envoy-admin", adminURL(t, e))
	s.write(t, "refused.yaml", listener("refused", busy, rds("main")))
	s.watch.WaitLog(t, "event=rolled-back ")
	r := s.shows(t, "the snapshot before is published again", false, allSynced, e)
	if len(r.Held) != 1 || r.LastRefusal == nil || len(r.Held[0].Findings) != 1 || r.Change != nil || r.Held[0].Snapshot == r.Published.Snapshot {
		t.Fatalf("%+v", r)
	}
	if d := r.Held[0].Findings[0]; filepath.Base(d.File) != "refused.yaml" || !strings.Contains(d.Message, "already in use") {
		t.Errorf("%+v", d)
	}
	s.remove(t, "refused.yaml")
	if r := s.shows(t, "the source is as it was", true, allSynced, e); len(r.Held) != 0 || r.LastRefusal == nil {
		t.Errorf("%+v", r)
	}
}

// TestStatusBesideWatch asks again and again while a watch publishes. If an Envoy has refused a file once, status
// never says that it has refused a file that it has not read yet.
func TestStatusBesideWatch(t *testing.T) {
	t.Parallel()
	s := statusFixture(t)
	held, err := net.Listen("tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	e := s.reader(t)
	s.write(t, "refused.yaml", listener("refused", held.Addr().(*net.TCPAddr).Port, rds("main")))
	s.publish(t)
	s.shows(t, "a refused listener", false, strings.Replace(allSynced, "SYNCED lds", "REJECTED lds", 1), e)
	s.remove(t, "refused.yaml")
	s.startWatch(t, "--quiet-period", "1ms")

	stop, ended := make(chan struct{}), make(chan struct{})
	var edits atomic.Int64
	tree := s.read(t, "edge.yaml")
	go func() {
		defer close(ended)
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			s.write(t, "edge.yaml", strings.Replace(tree, "stat_prefix: ", fmt.Sprintf("server_name: generation-%d, stat_prefix: ", edits.Add(1)), 1))
		}
	}()
	answers := 0
	envoytest.Eventually(t, patience, "30 answers beside 30 edits", func() (bool, string) {
		r := s.status(t, e)
		if r.Envoys[0].Error == "" { // on a busy machine, Envoy may not answer in time
			answers++
		}
		if n := r.Envoys[0].Count(status.Rejected); n > 0 {
			t.Errorf("after %d edits: %+v", edits.Load(), r.Envoys[0])
		}
		return answers >= 30 && edits.Load() >= 30, fmt.Sprintf("%d answers, %d edits, %+v", answers, edits.Load(), r.Envoys[0])
	})
	close(stop)
	<-ended
	s.shows(t, "all has come to rest", true, allSynced, e)
	t.Logf("%d edits", edits.Load())
}

// adminURL returns the URL of an Envoy's admin interface.
func adminURL(t testing.TB, e *envoytest.Envoy) string {
	t.Helper()
	return "http://" + e.AdminAddress(t)
}

// TestStatusOfAWatchThatDied: if a watch hangs, or was killed, only status reports that it publishes no longer.
func TestStatusOfAWatchThatDied(t *testing.T) {
	t.Parallel()
	s := newFixture(t, map[string]string{"blue.yaml": `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: blue}`})
	s.startWatch(t)
	says := func(want int, words string) {
		t.Helper()
		stdout, stderr, exit := xdspub(t, "status", "--out", s.out, s.src)
		if exit != want || !strings.Contains(stdout, words) {
			t.Errorf("exit status %d, want %d and %q:\n%s%s", exit, want, words, stdout, stderr)
		}
	}
	says(0, "is published")
	s.watch.Signal(t, syscall.SIGSTOP)
	says(1, "no answer within 5s; no change of the source tree is published until")
	s.watch.Signal(t, syscall.SIGCONT)
	says(0, "is published")
	s.watch.Signal(t, syscall.SIGKILL)
	s.watch.Wait(t)
	says(1, "not in sync: the watch was killed\n")
	says(1, "no watch is running: the last one was killed")
	// render publishes in place of the watch.
	if _, stderr, exit := xdspub(t, "render", "--out", s.out, s.src); exit != 0 {
		t.Fatal(stderr)
	}
	says(0, "is published")
}
