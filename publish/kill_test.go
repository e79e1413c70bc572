package publish

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"xdspub/internal/memdir"
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

// kills returns the number of moments at which a scenario of so many calls is killed:
// before each of them, which is after the one before it, and in the end. A write is
// half done when it dies.
func kills(calls int) int { return calls + 1 }

// TestKill kills the process at each system call of each scenario. Of the thousands of
// processes most of the work is their start. So they run a binary without the histories,
// which need all of Envoy's API: it starts in a tenth of the time.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each call of each scenario")
	}
	light := filepath.Join(t.TempDir(), "publish.test")
	if said, err := exec.Command("go", "test", "-c", "-vet", "off", "-tags", "light", "-o", light, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, said)
	}
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w, out := s.found(t), filepath.Join(memdir.New(t), "out")
			opening, calls := s.calls(t)
			for at := 1; at <= kills(opening+len(calls)); at++ {
				w.kill(t, light, out, at)
				if t.Failed() {
					t.Fatalf("killed at call %d, of %d to open and %d", at, opening, len(calls))
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
	d, err := open(out, w.options(), &probe{root: out, quick: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w.check(t, out)
	w.settle(t, d)
	w.checkEnd(t, out)
}
