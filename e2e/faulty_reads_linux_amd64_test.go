package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
)

// faultyDisk is a fixture whose programs run under the injector, which makes reads of the source tree and of the
// output directory fail.
type faultyDisk struct {
	*fixture
	source map[string]string
	injection
	changes int
	read    int64 // the part of the log that seen has read, in bytes
}

func newFaultyDisk(t *testing.T) *faultyDisk {
	t.Helper()
	p := newPair(t, "edge")
	source := map[string]string{
		"xdspub.yaml":  "warnings-as-errors: false\n",
		"blue.yaml":    aCluster("blue"),
		"red/red.yaml": aCluster("red"),
		"certificate.yaml": document("envoy.extensions.transport_sockets.tls.v3.Secret",
			`name: edge, tls_certificate: {certificate_chain: {filename: certs/edge.pem}, private_key: {filename: certs/edge.key}}`),
		"edge.yaml":      staticCluster("green", 1, upstreamTLS("edge")),
		"certs/edge.pem": p.certificate,
		"certs/edge.key": p.key,
	}
	s := newFixture(t, source)
	if err := os.Symlink("../certificate.yaml", filepath.Join(s.src, "red", "link.txt")); err != nil {
		t.Fatal(err)
	}
	aside := t.TempDir()
	return &faultyDisk{fixture: s, source: source, injection: injection{Below: []string{filepath.Dir(s.src)}, Fault: filepath.Join(aside, "fault"), Log: filepath.Join(aside, "log")}}
}

// command returns a command of xdspub under the injector.
func (s *faultyDisk) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s.injection)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{binary}, args...)...)
	cmd.Dir, cmd.Env = root, append(environment(), injectorVariable+"="+string(text))
	return cmd
}

// result is the output of a command, without times, and its exit status.
type result struct {
	stdout, stderr string
	exit           int
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z( \(\w+ ago\))?`)

func (s *faultyDisk) run(t *testing.T, args ...string) result {
	t.Helper()
	s.read = 0
	cmd := s.command(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{times.ReplaceAllString(out.String(), "TIME"), errs.String(), cmd.ProcessState.ExitCode()}
}

// seen returns the reads of the last program since the last call of seen.
func (s *faultyDisk) seen(t *testing.T) (list []seenRead) {
	t.Helper()
	f, err := os.Open(s.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(s.read, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the tracer has not written the rest of the line
			return list
		}
		var r seenRead
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		list, s.read = append(list, r), s.read+int64(len(line))
	}
}

// fail makes a read fail, and all later reads of the same file by the same call.
func (s *faultyDisk) fail(t *testing.T, r seenRead) {
	t.Helper()
	text, err := json.Marshal(fault{r.Call, r.Path, r.Nth})
	if err == nil {
		err = os.WriteFile(s.Fault, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// heal ends the failures of reads.
func (s *faultyDisk) heal(t *testing.T) {
	t.Helper()
	if err := os.Remove(s.Fault); err != nil {
		t.Fatal(err)
	}
}

// files returns the content of the published files, by path.
func (s *faultyDisk) files(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(s.out, func(path string, e fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		case e.Name() == ".xdspub":
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// consistOf fails the test unless each published file is a file of before a change, or of after it.
func (s *faultyDisk) consistOf(t *testing.T, before, after map[string]string) {
	t.Helper()
	is := s.files(t)
	for path, text := range is {
		if text != before[path] && text != after[path] {
			t.Errorf("%s is not whole:\n%s", path, text)
		}
	}
	for path := range before {
		if _, ok := is[path]; !ok && after[path] != "" {
			t.Errorf("%s is gone", path)
		}
	}
}

func (r seenRead) String() string {
	return fmt.Sprintf("%s %s, from call %d on", r.Call, r.Path, r.Nth)
}

// says reports whether a text says that a read has failed, and names the file.
func (r seenRead) says(text string) bool {
	return strings.Contains(text, "input/output error") && strings.Contains(text, r.Path)
}

// readingCommand is a command whose reads fail.
type readingCommand struct {
	begin func(*testing.T, *faultyDisk)
	args  func(*faultyDisk) []string
	// times bounds the successful reads of a file before a read fails.
	times int
}

var readingCommands = map[string]readingCommand{
	"validate":             {func(*testing.T, *faultyDisk) {}, func(s *faultyDisk) []string { return []string{"validate", s.src} }, 0},
	"render":               {func(*testing.T, *faultyDisk) {}, (*faultyDisk).render, 0},
	"render a change":      {changed, (*faultyDisk).render, 1},
	"validate a bootstrap": {writeBootstrap, func(s *faultyDisk) []string { return []string{"validate", s.bootstrap()} }, 0},
	"status":               {func(t *testing.T, s *faultyDisk) { s.publish(t) }, func(s *faultyDisk) []string { return []string{"status", "--out", s.out, s.src} }, 0},
}

// bootstrap returns the path of the bootstrap of an Envoy that reads the output directory.
func (s *faultyDisk) bootstrap() string { return filepath.Join(filepath.Dir(s.src), "envoy.yaml") }

func writeBootstrap(t *testing.T, s *faultyDisk) {
	s.publish(t)
	text, stderr, exit := xdspub(t, "bootstrap", "envoy", "--out", s.out, "--node-id", "edge", "--node-cluster", "edge")
	if exit != 0 {
		t.Fatal(stderr)
	}
	if err := os.WriteFile(s.bootstrap(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *faultyDisk) render() []string { return []string{"render", "--out", s.out, s.src} }

func changed(t *testing.T, s *faultyDisk) {
	s.publish(t)
	s.write(t, "blue.yaml", aCluster("yellow"))
}

// fails reports whether a command names the failed read, and has the right exit status.
func (is result) fails(r seenRead) bool {
	unknown := is.exit == 1 && strings.HasPrefix(is.stdout, "not in sync: the watch can't be asked\n")
	return (is.exit == 3 || unknown) && r.says(is.stdout+is.stderr)
}

func mustRun(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}

func TestReadsFail(t *testing.T) {
	t.Parallel()
	for name, c := range readingCommands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFaultyDisk(t)
			c.begin(t, s)
			backup := filepath.Join(t.TempDir(), "backup")
			mustRun(t, "mkdir", "-p", s.out)
			mustRun(t, "cp", "-a", s.out, backup)
			restore := func() {
				mustRun(t, "rm", "-r", s.out)
				mustRun(t, "cp", "-a", backup, s.out)
			}
			before := s.files(t)
			well := s.run(t, c.args(s)...)
			if well.exit != 0 {
				t.Fatalf("exit status %d: %s", well.exit, well.stderr)
			}
			after := s.files(t)
			every := portion.Every(7, 9)
			for i, r := range s.seen(t) {
				if r.Nth > 1+c.times || i%every != every-1 {
					continue
				}
				restore()
				s.fail(t, r)
				is := s.run(t, c.args(s)...)
				s.heal(t)
				if same := is.exit == 0 && is.stdout == well.stdout; !same && !is.fails(r) {
					t.Errorf("%s: exit status %d\n%s%s", r, is.exit, is.stdout, is.stderr)
				}
				s.consistOf(t, before, after)
				if _, stderr, exit := xdspub(t, c.args(s)...); exit != 0 {
					t.Errorf("%s: after the disk has healed, exit status %d: %s", r, exit, stderr)
				}
				s.consistOf(t, after, after)
			}
		})
	}
}

// TestReadsOfWatchFail makes each read of a running watch and a running serve fail while the source tree changes.
// The process continues with the previous snapshot, or without the read, and names the file. It publishes the
// change when reads succeed again.
func TestReadsOfWatchFail(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"watch", "serve"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFaultyDisk(t)
			args := []string{name, "--out", s.out, "--rescan", "200ms", "--quiet-period", "20ms"}
			if name == "serve" {
				args = append(args, "--grpc", address(envoytest.FreePort(t)))
			}
			s.watch = startCommand(t, s.command(t, append(args, s.src)...))
			s.watch.WaitLog(t, "event=published ")
			every := portion.Every(7, 9)
			for i, r := range s.repeated(t) {
				if i%every == every-1 {
					s.failMeanwhile(t, r)
				}
			}
		})
	}
}

// change changes a cluster, and returns its name. It writes all source files again, so that all are read.
func (s *faultyDisk) change(t *testing.T) (cluster string) {
	t.Helper()
	s.changes++
	cluster = fmt.Sprintf("blue-%d", s.changes)
	for name, text := range s.source {
		if name == "blue.yaml" {
			text = aCluster(cluster)
		}
		s.write(t, name, text)
	}
	return cluster
}

// repeated returns the reads that a watch repeats for each change of the source tree: the first of each file by
// each call.
func (s *faultyDisk) repeated(t *testing.T) (list []seenRead) {
	t.Helper()
	known := make(map[seenRead]int)
	for n := range 3 {
		s.seen(t)
		cluster := s.change(t)
		envoytest.Eventually(t, patience, "the change is published", func() (bool, string) { return s.has(t, cluster), s.watch.Log() })
		for _, r := range s.seen(t) {
			r.Nth = 0
			if known[r] == n {
				known[r]++
				if n == 2 {
					list = append(list, r)
				}
			}
		}
	}
	return list
}

// has reports whether a cluster is published.
func (s *faultyDisk) has(t *testing.T, cluster string) bool {
	t.Helper()
	return strings.Contains(s.files(t)[filepath.Join(s.out, "cds/cds.json")], strconv.Quote(cluster))
}

// failMeanwhile makes a read of a running watch fail while the source tree changes.
func (s *faultyDisk) failMeanwhile(t *testing.T, r seenRead) {
	t.Helper()
	before, logged, met := s.files(t), len(s.watch.Log()), false
	s.seen(t)
	s.fail(t, r)
	cluster := s.change(t)
	failed := func() bool { return strings.Contains(s.watch.Log()[logged:], "event=failed") }
	meets := func() bool {
		met = met || slices.ContainsFunc(s.seen(t), func(r seenRead) bool { return r.Failed })
		return met
	}
	for more := 20; ; more-- {
		envoytest.Eventually(t, patience, r.String(), func() (bool, string) {
			return s.has(t, cluster) || meets() && failed(), s.watch.Log()[logged:]
		})
		if meets() || more == 0 {
			break
		}
		before, cluster = s.files(t), s.change(t) // not each change reads the file: the watch may trust what it knows
	}
	if failed() {
		if log := s.watch.Log()[logged:]; !r.says(log) {
			t.Errorf("%s: the watch logs\n%s", r, log)
		}
		if !s.has(t, cluster) {
			s.consistOf(t, before, before)
		}
	}
	s.heal(t)
	envoytest.Eventually(t, patience, r.String()+", and the disk has healed", func() (bool, string) { return s.has(t, cluster), s.watch.Log()[logged:] })
}
