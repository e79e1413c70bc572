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

// die executes a scenario, and kills its own process at a call of the scenario, which may be a call of Open, or
// at the end.
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
		select {} // until the signal arrives, nothing more may happen
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

// of returns the numbers of the calls, from 1, before which a scenario with these calls is killed. A write is
// killed after half of its bytes. of omits a pair of a call and its predecessor that it has chosen for another
// scenario. The last number is the end.
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

// TestKill kills the process at system calls of each scenario. A killed process must leave the same files as a
// process whose calls all fail from there on. So TestFaults shows the result of a kill at every other call. The
// processes run a binary without the histories, which need all of Envoy's API: that binary starts in a tenth of
// the time.
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

// kill starts another process, which executes the scenario and is killed at the call at. kill then does what
// the next process does.
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

// failing executes the scenario with all calls failing from the call at on, and returns the files that are
// left.
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

// begun matches the time in an intent at which a change began. A killed process may have written only a part of
// it.
var begun = regexp.MustCompile(`"begun": "[^"]*`)

// everything returns all files of an output directory except the lock, in the form of published, without times.
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
