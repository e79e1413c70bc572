package publish

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/memdir"
)

// damages are ways to damage a file or folder in .xdspub.
var damages = []struct {
	name string
	do   func(name string) error
}{
	{"removed", os.RemoveAll},
	{"empty", instead(func(name string) error { return os.WriteFile(name, nil, 0o600) })},
	{"cut", func(name string) error {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil // a folder
		}
		return errors.Join(os.Remove(name), os.WriteFile(name, data[:len(data)/2], 0o600))
	}},
	{"garbage", instead(func(name string) error { return os.WriteFile(name, []byte("\x00{]\xff"), 0o600) })},
	{"of another kind", instead(func(name string) error { return os.WriteFile(name, []byte(`["layout"]`), 0o600) })},
	{"newer", instead(func(name string) error {
		return os.WriteFile(name, []byte(`{"layout": 3, "steps": 7, "going": {}}`), 0o600)
	})},
	{"a folder", instead(func(name string) error { return os.Mkdir(name, 0o700) })},
	{"a folder with something in it", instead(func(name string) error { return os.MkdirAll(filepath.Join(name, "x", "y"), 0o700) })},
	{"a pipe", instead(func(name string) error { return syscall.Mkfifo(name, 0o600) })},
	{"a link to nothing", instead(func(name string) error { return os.Symlink("nowhere", name) })},
	{"a link to itself", instead(func(name string) error { return os.Symlink(filepath.Base(name), name) })},
}

func instead(do func(name string) error) func(string) error {
	return func(name string) error { return errors.Join(os.RemoveAll(name), do(name)) }
}

// resume is settle, and returns the error with which the program would end.
func (w world) resume(d *Dir) error {
	e := w.envoy(d.Path())
	r, err := ReadRefused(d.Path())
	if err != nil {
		return err
	}
	if _, err := d.Recover(context.Background(), Plan{Confirm: e}); err != nil {
		return err
	}
	if r.Holds(w.plan.Manifest.Snapshot, "d") != nil {
		return nil
	}
	if err := w.publish(d, e); !onlyRefused(err) {
		return err
	}
	return nil
}

// onlyRefused reports whether err is only a refusal by Envoy. Callers of Publish use the same test.
func onlyRefused(err error) bool {
	_, ok := err.(*RefusedError)
	return ok
}

var wayOut = regexp.MustCompile(`remove (/\S+) and publish again`)

// TestDamage damages each file of .xdspub in each way: while no change is running, halfway forward, and halfway
// back; between two processes, and while a writer runs. The writer carries on, or its error names a remedy that
// works.
func TestDamage(t *testing.T) {
	turn := 0
	half := scenario{plan: state2(), refuse: "main 2", confirmed: true}
	back := killed(state2(), &envoy{snapshot: "s2", refuse: "main 2"}, 2, "rename", " cds/cds.json")
	for _, situation := range []struct {
		name string
		more []func(string) error
	}{
		{"at rest", nil},
		{"forward", []func(string) error{killed(state2(), &envoy{}, 1, "rename", " lds/lds.json")}},
		{"back", []func(string) error{back}},
	} {
		s := half
		s.before = slices.Concat([]func(string) error{done(state1()), refusedOnce}, situation.more)
		w := s.found(t)
		for _, name := range parts(t, w.found) {
			for _, damage := range damages {
				for _, running := range []bool{false, true} {
					if turn++; testing.Short() && turn%7 != 0 {
						continue
					}
					at := strings.Join([]string{situation.name, name, damage.name, map[bool]string{false: "between", true: "under a writer"}[running]}, ", ")
					t.Run(at, func(t *testing.T) {
						w.damaged(t, filepath.Join(memdir.New(t), "out"), name, damage.do, running)
					})
				}
			}
		}
	}
}

// refusedOnce records a refusal.
func refusedOnce(out string) error {
	return within(out, nil, func(d *Dir) error { return d.refused(Refusal{Time: day1}, true) })
}

// parts returns the paths of .xdspub, of its entries, and of the first saved file.
func parts(t *testing.T, out string) []string {
	t.Helper()
	list := []string{private}
	for _, pattern := range []string{private + "/*", basesPath + "/*", undoPath + "/*"} {
		names, err := filepath.Glob(filepath.Join(out, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if pattern == undoPath+"/*" && len(names) > 0 {
			names = names[:1]
		}
		for _, name := range names {
			list = append(list, strings.TrimPrefix(name, out+"/"))
		}
	}
	return list
}

func (w world) damaged(t *testing.T, out, name string, damage func(string) error, running bool) {
	w.at(t, out)
	before := files(published(t, out))
	reopen := func() (*Dir, error) { return open(out, Options{maxChanged: 1}, &probe{root: out, quick: true}) }
	var d *Dir
	var err error
	if running {
		if d, err = reopen(); err != nil {
			t.Fatal(err)
		}
	}
	if err := damage(filepath.Join(out, name)); err != nil {
		t.Fatal(err)
	}
	if !running {
		d, err = reopen()
	}
	if err == nil {
		err = w.resume(d)
		d.Close()
	}
	w.checkUnharmed(t, out, before)
	for range 3 { // each attempt may find another fault
		if err == nil {
			break
		}
		bad := filepath.Join(out, name)
		if !strings.Contains(err.Error(), bad) && !errors.Is(err, ErrLost) {
			t.Errorf("error %v does not name %s", err, bad)
		}
		t.Log(strings.ReplaceAll(err.Error(), out, "OUT"))
		if to := wayOut.FindStringSubmatch(err.Error()); to != nil {
			bad = to[1]
		}
		if !errors.Is(err, ErrLost) {
			if err := os.RemoveAll(bad); err != nil {
				t.Fatal(err)
			}
		}
		if d, err = reopen(); err == nil {
			err = w.resume(d)
			d.Close()
		}
		w.checkUnharmed(t, out, before)
	}
	if err != nil {
		t.Errorf("and in the end %v", err)
	}
	if in, err := ReadIntent(out); err != nil || in != nil {
		t.Errorf("still under way: %+v, %v", in, err)
	}
	for _, folder := range []string{stagePath, undoPath} {
		if left, err := os.ReadDir(filepath.Join(out, folder)); err != nil || len(left) > 0 {
			t.Errorf("%s holds %v, %v", folder, left, err)
		}
	}
}

// checkUnharmed checks that all published files exist, and have a version that was published.
func (w world) checkUnharmed(t *testing.T, out string, before files) {
	t.Helper()
	is := files(published(t, out))
	if broken := is.whole(); broken != "" {
		t.Errorf("%s, which is not there", broken)
	}
	one, two := files{}.withPlans([]Plan{state1()}), files{}.withPlans([]Plan{state1(), state2()})
	back := one.with(kept(state2()).Steps...)
	for name := range two {
		if has(is, name) != has(before, name) && has(one, name) || has(is, name) && is[name] != one[name] && is[name] != two[name] && is[name] != back[name] {
			t.Errorf("%s is %q", name, is[name])
		}
	}
}

// TestTakenAway removes the output directory, or its .xdspub, while a publish waits for Envoy. The publish
// fails, and does not touch the files of another writer that has opened the directory meanwhile.
func TestTakenAway(t *testing.T) {
	for _, whole := range []bool{false, true} {
		for _, refuse := range []bool{false, true} {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			if err := done(state1())(out); err != nil {
				t.Fatal(err)
			}
			d := mustOpen(t, out, &probe{root: out, quick: true})
			s := scenario{plan: state2()}
			if refuse {
				s.refuse = "cds 2"
			}
			var other *Dir
			e := &taken{envoy: s.envoy(out), step: "clusters", take: func() {
				name := filepath.Join(out, private)
				if whole {
					name = out
				}
				if err := os.Rename(name, filepath.Join(dir, "away")); err != nil {
					t.Fatal(err)
				}
				other = mustOpen(t, out, &probe{root: out, quick: true})
				// The other writer is about to publish.
				if _, err := other.stageAll(context.Background(), state3().files()); err != nil {
					t.Fatal(err)
				}
			}}
			p := state2()
			p.Confirm = e
			_, err := d.Publish(context.Background(), p)
			if !errors.Is(err, ErrLost) {
				t.Errorf("error %v", err)
			}
			if _, ok := errors.AsType[*RefusedError](err); ok != refuse {
				t.Errorf("refused %t: %v", refuse, err)
			}
			for i, f := range state3().files() {
				if data, err := os.ReadFile(other.path(stagePath + "/000" + string(rune('1'+i)))); err != nil || !bytes.Equal(data, f.Data) {
					t.Errorf("of the other's stage: %q, %v", data, err)
				}
			}
			for name, err := range map[string]error{"Release": d.Release(), "Recover": recovered(d)} {
				if !errors.Is(err, ErrLost) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if whole {
				checkPublished(t, out, nil)
			}
		}
	}
}

func recovered(d *Dir) error {
	_, err := d.Recover(context.Background(), Plan{})
	return err
}

// taken is an envoy that calls take after a step.
type taken struct {
	*envoy
	step string
	take func()
}

func (e *taken) After(ctx context.Context, s Step) (bool, error) {
	answered, err := e.envoy.After(ctx, s)
	if s.Name == e.step {
		e.take()
	}
	return answered, err
}
