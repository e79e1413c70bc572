package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// checkHalfway holds what must be true at any moment between oldPlan and
// newPlan: each file is the old one or the new one, mode and bytes; the steps
// that are out are a prefix of the plan; the record tells the truth.
func checkHalfway(t *testing.T, out string) {
	t.Helper()
	got := published(t, out)
	out1, out2 := 0, 0 // of the files that change: out, and still as before
	steps := [][]string{
		{"sds/mtls/sds.json", "eds/api/eds.json"},
		{"cds/cds.json"},
		{"lds/lds.json", "eds/old/eds.json"},
	}
	begun := true // whether the step before this one is out
	for _, step := range steps {
		whole := true
		for _, name := range step {
			switch is, ok := got[name]; {
			case is == newFiles[name] && ok == has(newFiles, name):
				out2++
				if !begun {
					t.Errorf("%s is out before the step before it", name)
				}
			case is == oldFiles[name] && ok == has(oldFiles, name):
				out1++
				whole = false
			default:
				t.Errorf("%s is %q, neither old nor new", name, is)
			}
			delete(got, name)
		}
		begun = begun && whole
	}
	unchanged := map[string]string{
		"sds/cert/sds.json": oldFiles["sds/cert/sds.json"],
		"eds/web/eds.json":  oldFiles["eds/web/eds.json"],
	}
	if !maps.Equal(got, unchanged) {
		t.Errorf("and %v, want %v", got, unchanged)
	}
	m, err := ReadManifest(out)
	if err != nil {
		t.Error(err)
	}
	if m.Snapshot == "s2" && out1 > 0 || m.Snapshot != "s1" && m.Snapshot != "s2" {
		t.Errorf("the record says %q with %d files left", m.Snapshot, out1)
	}
	if out2 > 0 && len(m.Going) != 1 {
		t.Errorf("something moved, and the record says going %v", m.Going)
	}
}

func has(files map[string]string, name string) bool { _, ok := files[name]; return ok }

// TestFaults makes each call of a publish fail in turn, in each of the ways.
func TestFaults(t *testing.T) {
	for _, fault := range []struct {
		errno syscall.Errno
		late  bool
	}{{syscall.ENOSPC, false}, {syscall.EIO, false}, {syscall.EACCES, false}, {syscall.EIO, true}} {
		t.Run(fmt.Sprintf("%s,late=%t", fault.errno, fault.late), func(t *testing.T) {
			for at := 1; ; at++ {
				out := t.TempDir()
				publishOnce(t, out, oldPlan())
				p := &probe{root: out, quick: true, late: fault.late}
				d := mustOpen(t, out, p)
				hit := ""
				p.calls, p.fault = nil, func(n int, call string) error {
					if n != at {
						return nil
					}
					hit = call
					return fault.errno
				}
				_, err := d.Publish(context.Background(), newPlan())
				if hit == "" {
					if err != nil || at < 40 {
						t.Fatalf("no fault at call %d: %v", at, err)
					}
					return
				}
				if !errors.Is(err, fault.errno) {
					t.Errorf("%s failed, and Publish says %v", hit, err)
				}
				checkHalfway(t, out)
				checkPrivate(t, out)
				p.fault = nil
				mustPublish(t, d, newPlan())
				checkPublished(t, out, newFiles)
				checkPrivate(t, out)
				d.Close()
				if t.Failed() {
					t.Fatalf("at call %d, %s", at, hit)
				}
			}
		})
	}
}

// TestOpenFaults makes each call of Open fail in turn: it leaves no lock behind.
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

// TestCleanUpFails has a publish that fails and can't clear away what it staged.
// The same Dir, which may belong to a watcher that runs for months, gets over it.
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
