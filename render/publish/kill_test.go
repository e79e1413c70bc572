package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/tools/memdir"
)

// die carries a scenario out and has itself killed at its n-th call, those of Open
// included, or in the end.
func die() error {
	at, err := strconv.Atoi(os.Getenv(envAt))
	if err != nil {
		return err
	}
	list := scenarios()
	i := slices.IndexFunc(list, func(s scenario) bool { return s.name == os.Getenv(envScenario) })
	if i < 0 {
		return fmt.Errorf("no scenario %q", os.Getenv(envScenario))
	}
	s, out := list[i], os.Getenv(envOut)
	kill := func() {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it takes a moment, in which nothing more may happen
	}
	p := &probe{root: out, quick: true}
	p.fault = func(n int, _ string) error {
		if n == at {
			kill()
		}
		return nil
	}
	d, err := open(out, s.options(), p)
	if err != nil {
		return err
	}
	e := s.envoy(out)
	if err := s.do(d, e); err != nil && !e.refused {
		return err
	}
	if at != len(p.calls)+1 {
		return fmt.Errorf("killed at call %d, there are %d", at, len(p.calls))
	}
	kill()
	return nil
}

// moments chooses when each scenario is killed.
type moments map[[2]string]bool

// of returns the calls, from 1, at which a scenario of these calls is killed: before it, which is after
// the one before it, or with half of it done where it is a write. It leaves out what it has chosen in
// another scenario: a call, and the one before it. The last is the end.
func (m moments) of(calls []string) (at []int) {
	before := ""
	for i, call := range calls {
		if moment := [2]string{before, call}; !m[moment] {
			m[moment] = true
			at = append(at, i+1)
		}
		before = call
	}
	return append(at, len(calls)+1)
}

// TestKill kills the process at system calls of each scenario, and holds what that leaves to what
// a process leaves of which all calls fail from there on: so TestFaults shows what comes of a kill at
// all the others. Of the hundreds of processes most of the work is their start. So they run a binary
// without the histories, which need all of Envoy's API: it starts in a tenth of the time.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each call of each scenario")
	}
	light := filepath.Join(t.TempDir(), "publish.test")
	if said, err := exec.Command("go", "test", "-c", "-vet", "off", "-tags", "light", "-o", light, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, said)
	}
	chosen := make(moments)
	for _, s := range scenarios() {
		opening, calls := s.calls(t)
		kills := chosen.of(slices.Concat(opening, calls))
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w, out := s.found(t), filepath.Join(memdir.New(t), "out")
			for _, at := range kills {
				w.kill(t, light, out, at)
				if t.Failed() {
					t.Fatalf("killed at call %d, of %d to open and %d", at, len(opening), len(calls))
				}
			}
		})
	}
}

// kill has another process, of a binary of these tests, carry the scenario out as far as
// to the call at, and then does what its successor does.
func (w world) kill(t *testing.T, binary, out string, at int) {
	t.Helper()
	w = w.at(t, out)
	defer os.RemoveAll(out)
	err := child(binary, envRole+"=die", envOut+"="+out, envScenario+"="+w.name, envAt+"="+strconv.Itoa(at)).Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("not killed: %v", err)
		return
	}
	w.check(t, out)
	if diff := cmp.Diff(w.failing(t, filepath.Join(filepath.Dir(out), "failing"), at), everything(t, out)); diff != "" {
		t.Errorf("what is left where calls fail, and where the process is killed (-fail +kill):\n%s", diff)
	}
	d, err := open(out, w.options(), &probe{root: out, quick: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w.check(t, out)
	w.settle(t, d)
	w.checkEnd(t, out)
}

// failing carries the scenario out with each call failing from the call at on, those of Open included,
// and returns what that leaves.
func (w world) failing(t *testing.T, out string, at int) map[string]string {
	t.Helper()
	w = w.at(t, out)
	defer os.RemoveAll(out)
	p := &probe{root: out, quick: true, fault: func(n int, _ string) error {
		if n < at {
			return nil
		}
		return syscall.EIO
	}}
	if d, err := open(out, w.options(), p); err == nil {
		w.do(d, w.envoy(out))
		d.Close()
	}
	return everything(t, out)
}

// begun is when a change began, in its intent, which may end within that time.
var begun = regexp.MustCompile(`"begun": "[^"]*`)

// everything returns all files of an output directory but the lock, as published does, without times.
func everything(t *testing.T, out string) map[string]string {
	t.Helper()
	files := published(t, out)
	if _, err := os.Stat(filepath.Join(out, private)); errors.Is(err, fs.ErrNotExist) {
		return files
	}
	for name, file := range published(t, filepath.Join(out, private)) {
		if name = filepath.Join(private, name); name != lockPath {
			files[name] = begun.ReplaceAllString(file, "")
		}
	}
	return files
}
