package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// advice is a row of a table of docs/runbook.md, and what its command prints in a situation.
type advice struct {
	Row  string // a part of the first cell
	cell `json:",inline"`
}

// adviceRow matches a row with a command.
var adviceRow = regexp.MustCompile("(?m)^\\| (.+?) \\| `([^`]+)` \\| (.*) \\|$")

// commandOf returns the first cell of the row of the runbook with a text, and its command.
func commandOf(t *testing.T, text string) (symptom, command string) {
	t.Helper()
	for _, row := range adviceRow.FindAllStringSubmatch(page(t, "docs/runbook.md"), -1) {
		if strings.Contains(row[1], text) {
			return row[1], row[2]
		}
	}
	t.Fatalf("docs/runbook.md has no row for %q", text)
	return "", ""
}

// heed runs the command of a row of the runbook in the present situation. heed returns the output.
func (s *fixture) heed(t *testing.T, a advice) {
	t.Helper()
	_, command := commandOf(t, a.Row)
	args := strings.Fields(command)
	for i, arg := range args {
		for name, value := range map[string]string{
			"OUT": s.out, "TREE": s.src, "TEXT": "a test", "FILE": filepath.Join(t.TempDir(), "bundle.tar.gz"), "BOOTSTRAP": filepath.Join(s.src, "..", "boot.yaml"),
		} {
			if arg == name || strings.HasPrefix(arg, name+"/") {
				args[i] = value + strings.TrimPrefix(arg, name)
			}
		}
	}
	switch {
	case args[0] == "kill":
		s.watch.Signal(t, map[string]syscall.Signal{"-HUP": syscall.SIGHUP, "-KILL": syscall.SIGKILL}[args[1]])
		if args[1] == "-KILL" {
			s.watch.Wait(t)
		}
	case args[1] == "watch":
		s.watch = start(t, watcher, args[1:]...)
	default:
		stdout, stderr, exit := xdspub(t, args[1:]...)
		for _, want := range a.Shows {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s does not print %q:\n%s%s", command, want, stdout, stderr)
			}
		}
		if a.Exit == nil || exit != *a.Exit {
			t.Errorf("%s: exit status %d\n%s%s", command, exit, stdout, stderr)
		}
		return
	}
	for _, want := range a.Shows {
		s.watch.WaitLog(t, want)
	}
}

// situation makes what a row of the runbook is about, if testdata/states.yaml has no such state.
type situation struct {
	advice
	make func(t *testing.T, s *fixture)
}

func prints(row string, exit int, shows ...string) advice {
	return advice{row, cell{Exit: &exit, Shows: shows}}
}

// situations are those of the rows of docs/runbook.md without a state.
var situations = []situation{
	{prints("the decisions of operators are unknown", 0, "is neither paused nor pinned any more"), func(t *testing.T, s *fixture) {
		s.publish(t)
		envoytest.Publish(t, filepath.Join(s.out, ".xdspub", "operator.json"), "damaged")
		if _, stderr, exit := xdspub(t, "status", "--out", s.out); exit != 3 || !strings.Contains(stderr, "the decisions of operators are unknown") {
			t.Errorf("status: exit status %d\n%s", exit, stderr)
		}
	}},
	{prints("nothing is published", 0, "snapshot v"), func(t *testing.T, s *fixture) {
		if err := os.MkdirAll(s.out, 0o755); err != nil {
			t.Fatal(err)
		}
		if stdout, _, exit := xdspub(t, "status", "--out", s.out); exit != 1 || !strings.Contains(stdout, "nothing is published") {
			t.Errorf("status: exit status %d\n%s", exit, stdout)
		}
	}},
	{prints("held by process", 0, "watch: process "), func(t *testing.T, s *fixture) {
		s.startWatch(t)
		if _, stderr, exit := xdspub(t, "render", "--out", s.out, s.src); exit != 3 || !strings.Contains(stderr, "held by process") {
			t.Errorf("render: exit status %d\n%s", exit, stderr)
		}
	}},
	{prints("internal-error", 0, "bundle.tar.gz"), renders},
	{prints("Envoy ends at its start", 1, "no-such-file.json"), func(t *testing.T, s *fixture) {
		envoytest.Publish(t, filepath.Join(s.src, "..", "boot.yaml"), "node: {id: a, cluster: b}\ndynamic_resources: {cds_config: {path_config_source: {path: no-such-file.json}}}\n")
	}},
	{prints("know what is out", 0, "BY", "unconfirmed"), renders},
	{prints("go back", 0, "rolled back to entry "), watchTwice},
	{prints("publish nothing for a while", 0, "is paused"), watchTwice},
	{prints("know what an edit does to Envoy", 1, "effects on a running Envoy", `! cluster "blue"`), func(t *testing.T, s *fixture) {
		s.publish(t)
		s.write(t, "blue.yaml", aCluster("green"))
	}},
	{prints("correct a misspelling", 0, "fixed 1 finding"), func(t *testing.T, s *fixture) {
		s.write(t, "blue.yaml", "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: blue\nconect_timeout: 1s\n")
	}},
	{prints("move endpoints while", 0, "event=part-published "), func(t *testing.T, s *fixture) {
		s.write(t, "blue.yaml", edsCluster("blue"))
		s.write(t, "endpoints.yaml", endpoints("blue", 1))
		s.publish(t)
		s.write(t, "bad.yaml", "name: x")
		s.write(t, "endpoints.yaml", endpoints("blue", 2))
	}},
	{prints("read a binary file", 0, "version_info", `name: "blue"`), func(t *testing.T, s *fixture) {
		s.args = append(s.args, "--format", "pb")
		s.publish(t)
	}},
}

// renders publishes a tree.
func renders(t *testing.T, s *fixture) { s.publish(t) }

// watchTwice publishes a tree by a watch, and then an edit.
func watchTwice(t *testing.T, s *fixture) {
	s.startWatch(t)
	s.write(t, "blue.yaml", aCluster("green"))
	s.watch.WaitLog(t, "event=published ")
}

// TestRunbook runs the command of each row of docs/runbook.md for which TestStates does not do that. Each row with a
// command has a state or a situation.
func TestRunbook(t *testing.T) {
	t.Parallel()
	table := statesTable(t)
	executed := make(map[string]bool)
	for _, row := range table.Watch {
		if row.Run != nil {
			symptom, _ := commandOf(t, row.Run.Row)
			if executed[symptom] = true; !names(symptom, slices.Concat(row.Out.Shows, row.Src.Shows)...) {
				t.Errorf("status does not say %q in the state %s", symptom, row.State)
			}
		}
	}
	for _, s := range situations {
		symptom, _ := commandOf(t, s.Row)
		executed[symptom] = true
		t.Run(s.Row, func(t *testing.T) {
			t.Parallel()
			of := newFixture(t, map[string]string{"blue.yaml": aCluster("blue")})
			s.make(t, of)
			of.heed(t, s.advice)
		})
	}
	for _, row := range adviceRow.FindAllStringSubmatch(page(t, "docs/runbook.md"), -1) {
		ofServer := strings.HasPrefix(row[2], "xdspub status --serve ") && slices.ContainsFunc(table.Serve, func(s servedState) bool { return names(row[1], s.Status.Shows...) })
		if !executed[row[1]] && !ofServer {
			t.Errorf("no test runs the command of the row %q", row[1])
		}
	}
}

// names reports whether a row of the runbook names a fault that status shows.
func names(symptom string, shows ...string) bool {
	count := regexp.MustCompile(`^\d+ of \d+`)
	for text := range strings.SplitSeq(symptom, ", ") {
		text = count.ReplaceAllString(text, "")
		if slices.ContainsFunc(shows, func(shown string) bool { return strings.Contains(shown, text) }) {
			return true
		}
	}
	return false
}
