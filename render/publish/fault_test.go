package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/memdir"
	"xdspub/tools/portion"
)

// fault is a way for a system call to fail.
type fault struct {
	errno syscall.Errno
	// late means that the call has its effect, and fails afterwards.
	late bool
	// on means that all later calls fail too, including calls that clean up.
	on bool
}

func (f fault) String() string {
	return fmt.Sprintf("%v, late %t, on %t", f.errno, f.late, f.on)
}

// faultsOf returns the faults that the tests try for the n-th call of a scenario: the call fails without
// effect, after its effect, or together with all later calls. A write that fails has written half of its bytes.
// The errors that such a call can report take turns, because no code depends on them.
func faultsOf(n int, call string) []fault {
	op, _, _ := strings.Cut(call, " ")
	errnos := map[string][]syscall.Errno{
		"create": {syscall.ENOSPC, syscall.EACCES, syscall.EMFILE},
		"open":   {syscall.EMFILE},
		"write":  {syscall.ENOSPC, syscall.EIO},
		"sync":   {syscall.EIO},
		"close":  {syscall.EIO},
		"mkdir":  {syscall.ENOSPC, syscall.EACCES},
		"rename": {syscall.ENOSPC, syscall.EACCES},
		"remove": {syscall.EACCES},
		"chmod":  {syscall.EPERM},
		"chown":  {syscall.EPERM},
	}
	list := []fault{{errno: syscall.EIO, late: true}, {errno: syscall.EIO, on: true}}
	if turns := errnos[op]; len(turns) > 0 {
		list = append(list, fault{errno: turns[n%len(turns)]})
	}
	return list
}

func (s scenario) open(t *testing.T, out string, real disk) *Dir {
	t.Helper()
	d, err := open(out, s.options(), real)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// trace returns the calls of a scenario without faults. trace checks the invariants before and after each call.
func (s scenario) trace(t *testing.T) []string {
	t.Helper()
	out := filepath.Join(memdir.New(t), "out")
	w := s.found(t).at(t, out)
	p := &probe{root: out, quick: true}
	d := s.open(t, out, p)
	defer d.Close()
	p.calls, p.fault = nil, func(n int, call string) error {
		w.check(t, out)
		if t.Failed() {
			t.Fatalf("%s: before call %d, %s", s.name, n, call)
		}
		return nil
	}
	e := s.envoy(out)
	s.checkError(t, e, s.do(d, e))
	p.fault = nil
	calls := p.calls
	w.checkEnd(t, out)
	if t.Failed() {
		t.Fatalf("%s: in the end", s.name)
	}
	return calls
}

// calls returns the calls of a scenario: the calls that open its directory, and the rest.
func (s scenario) calls(t *testing.T) (opening, rest []string) {
	t.Helper()
	out := filepath.Join(memdir.New(t), "out")
	s.found(t).at(t, out)
	p := &probe{root: out, quick: true}
	d := s.open(t, out, p)
	defer d.Close()
	opening = slices.Clone(p.calls)
	e := s.envoy(out)
	s.checkError(t, e, s.do(d, e))
	return opening, slices.Clone(p.calls[len(opening):])
}

// checkError checks that err reports a refusal of e, and each of the errors is.
func (s scenario) checkError(t *testing.T, e *envoy, err error, is ...error) {
	t.Helper()
	refused, ok := errors.AsType[*RefusedError](err)
	if ok != e.refused {
		t.Errorf("refused %t, and the error is %v", e.refused, err)
	}
	if ok && refused.Refusal.Snapshot != s.plan.Manifest.Snapshot {
		t.Errorf("refused %+v", refused.Refusal)
	}
	if len(is) == 0 && !ok && err != nil {
		t.Error(err)
	}
	for _, want := range is {
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

// settle does what the program does with a directory after its start, or after a publish that failed.
func (w world) settle(t *testing.T, d *Dir) {
	t.Helper()
	e := w.envoy(d.Path())
	if _, err := d.Recover(context.Background(), Plan{Confirm: e}); err != nil {
		t.Error(err)
		return
	}
	in, err := ReadIntent(d.Path())
	if err != nil {
		t.Error(err)
	}
	m, err := ReadManifest(d.Path())
	if err != nil {
		t.Error(err)
	}
	r, err := ReadRefused(d.Path())
	if err != nil {
		t.Error(err)
	}
	if r.Holds(w.plan.Manifest.Snapshot, "d") == nil || w.run != nil {
		w.checkError(t, e, w.do(d, e))
	}
	if in == nil || !w.confirmed || w.refuse != "" {
		return
	}
	if done, err := in.done(m); err != nil || done {
		return
	}
	// Nobody saw the answer to the files that were published before.
	moved, last := in.paths(), w.plan.after(PublishedFiles{}, NewReader(""))
	for _, name := range last.Names() {
		if f, _ := last.Get(name); moved[name] && e.took[name] != f.Version {
			t.Errorf("nobody confirmed %s, but %q", name, e.took[name])
		}
	}
}

// disturb executes the scenario with a fault at a call, and then settles the directory.
func (w world) disturb(t *testing.T, out string, at int, call string, f fault) {
	t.Helper()
	w = w.at(t, out)
	defer os.RemoveAll(out)
	p := &probe{root: out, quick: true, late: f.late}
	d, err := open(out, w.options(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { d.Close() }()
	hit := ""
	p.calls, p.fault = nil, func(n int, call string) error {
		if n < at || n > at && !f.on {
			return nil
		}
		if n == at {
			hit = call
		}
		return f.errno
	}
	e := w.envoy(out)
	err = w.do(d, e)
	p.fault = nil
	if hit != call {
		t.Fatalf("call %d is %q, want %q", at, hit, call)
	}
	w.checkError(t, e, err, f.errno)
	w.check(t, out)
	// A watch goes on with its Dir, or is restarted.
	if f.late || f.on {
		d.Close()
		if d, err = open(out, w.options(), &probe{root: out, quick: true}); err != nil {
			t.Fatal(err)
		}
	}
	w.settle(t, d)
	w.checkEnd(t, out)
}

// TestFaults makes the system calls of each scenario fail. TestFaults tries one fault of seven, which find what
// all of them find (docs/evidence/reliability.md). make soak PART=whole tries all.
func TestFaults(t *testing.T) {
	every := portion.Every(7, 29)
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w, out, turn := s.found(t), filepath.Join(memdir.New(t), "out"), 0
			for i, call := range s.trace(t) {
				for _, f := range faultsOf(i, call) {
					if turn++; turn%every != 0 {
						continue
					}
					w.disturb(t, out, i+1, call, f)
					if t.Failed() {
						t.Fatalf("%s at call %d, %s", f, i+1, call)
					}
				}
			}
		})
	}
}

// TestOpenFaults makes each call of Open fail in turn, and checks that Open leaves no lock behind.
func TestOpenFaults(t *testing.T) {
	for _, late := range []bool{false, true} {
		for at := 1; ; at++ {
			dir := t.TempDir()
			out := filepath.Join(dir, "deep", "out")
			p := &probe{root: dir, quick: true, late: late, fault: func(n int, _ string) error {
				if n == at {
					return syscall.EIO
				}
				return nil
			}}
			d, err := open(out, Options{}, p)
			if err == nil {
				if at < 15 {
					t.Errorf("only %d calls", at)
				}
				d.Close()
				break
			}
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("at call %d, %s: %v", at, p.calls[at-1], err)
			}
			publishOnce(t, out, oldPlan())
			checkPublished(t, out, oldFiles)
			checkPrivate(t, out)
		}
	}
}

// TestCleanUpFails checks that a Dir still works after a publish that failed and could not remove its staged
// files. The Dir may belong to a watch that runs for months.
func TestCleanUpFails(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, oldPlan())
	p := &probe{root: out, quick: true}
	d := mustOpen(t, out, p)
	p.fault = func(_ int, call string) error {
		switch {
		case strings.HasPrefix(call, "rename"):
			return syscall.ENOSPC
		case strings.HasPrefix(call, "remove .xdspub/stage/0003"):
			return syscall.EIO
		}
		return nil
	}
	if _, err := d.Publish(context.Background(), newPlan()); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v", err)
	}
	checkPublished(t, out, oldFiles)
	p.fault = nil
	mustPublish(t, d, newPlan())
	checkPublished(t, out, newFiles)
	checkPrivate(t, out)
}
