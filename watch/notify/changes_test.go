package notify

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xdspub/internal/fspath"
	"xdspub/tools/sh"
)

// TestChanges checks that Read passes each change once, with paths as reached from the root.
func TestChanges(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "root")
	sh.Run(t, top, `mkdir -p root/x out/y root/f/g root/.h/i
		for f in root/a.yaml root/.key out/target root/f/g/k root/.h/i/k; do echo 1 >$f; done
		ln -s ../out/y root/l; ln -s ../out/target root/t.yaml; ln -s f/g/k root/k.yaml; ln -s .h/i/k root/h.yaml`)
	w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: -1, Skip: litter, Files: []string{filepath.Join(root, ".key")}})
	run(t, w)
	read := func() (got Changes) {
		t.Helper()
		w.Read(t.Context(), func(c Changes) { got.All = got.All || c.All; got.Paths = append(got.Paths, c.Paths...) })
		return got
	}
	if c := read(); !c.All {
		t.Error("before the first reading all is new")
	}
	if c := read(); c.All || len(c.Paths) > 0 {
		t.Errorf("nothing happened: %+v", c)
	}
	for i, s := range []struct {
		do   string
		want []string
		all  bool
	}{
		{do: "echo 2 >root/a.yaml", want: []string{"a.yaml"}},
		{do: "echo 3 >root/.b; mv root/.b root/x/b.yaml", want: []string{"x/b.yaml"}},
		{do: "rm root/x/b.yaml", want: []string{"x/b.yaml"}},
		{do: "mv root/a.yaml root/c.yaml", want: []string{"a.yaml", "c.yaml"}},
		{do: "mkdir -p root/n/m; echo 1 >root/n/m/a.yaml", want: []string{"n"}},
		{do: "mv root/n root/x/n", want: []string{"n", "x/n"}},
		{do: "echo 2 >root/x/n/m/a.yaml", want: []string{"x/n/m/a.yaml"}},
		{do: "echo 2 >out/y/a.yaml", want: []string{"l/a.yaml"}},
		{do: "echo 2 >out/target", want: []string{"t.yaml"}},
		{do: "echo 2 >root/.key", want: []string{".key"}},
		{do: "mv root/f away; cp -r away next; mv next root/f", want: []string{"f", "k.yaml"}},
		{do: "echo 2 >root/f/g/k", want: []string{"f/g/k", "k.yaml"}},
		{do: "mv root/.h .h; mv .h root/.h", want: []string{"h.yaml"}},
		{do: "echo 2 >root/.h/i/k", want: []string{"h.yaml"}},
		{do: "rm root/l; ln -s ../out root/l", all: true},
		{do: fmt.Sprintf("for i in $(seq %d); do : >root/x/$i; done", maxChanged+1), all: true},
		{do: "mv root away/root; mv away/root root", all: true},
	} {
		sh.Run(t, top, s.do)
		// Events keep their order: when this event has counted, the events of the script have too. If the
		// root itself was away, the event may get lost with the old watches.
		last := fmt.Sprint("last", i)
		log.again(t, filepath.Join(root, last), func(int) { sh.Run(t, root, "echo >>"+last) })
		waitSignal(t, w)
		got := read()
		if got.All != s.all {
			t.Errorf("%s: %+v", s.do, got)
		}
		for _, p := range s.want {
			if !slices.Contains(got.Paths, filepath.Join(root, p)) {
				t.Errorf("%s: %q has not changed", s.do, p)
			}
		}
		for _, p := range got.Paths {
			if rel, _ := filepath.Rel(root, p); !strings.HasPrefix(rel, "last") && !slices.ContainsFunc(s.want, func(want string) bool { return fspath.Within(rel, want) }) {
				t.Errorf("%s: %q changed too", s.do, rel)
			}
		}
	}
}

// TestBesideTheTree checks that changes beside the source tree, or beside a single source file, don't count.
func TestBesideTheTree(t *testing.T) {
	top := t.TempDir()
	sh.Run(t, top, "mkdir root; echo 1 >root/a.yaml; echo 1 >file.yaml; echo 1 >beside.yaml; mkdir folder")
	for _, source := range []struct{ path, edit, changed string }{
		{"root", "echo 2 >>root/a.yaml", "root/a.yaml"},
		{"file.yaml", "echo 2 >>file.yaml", "file.yaml"},
	} {
		w, _ := newWatcher(t, filepath.Join(top, source.path), Options{QuietPeriod: time.Millisecond, Rescan: -1})
		run(t, w)
		read := func() (got Changes) {
			w.Read(t.Context(), func(c Changes) { got = got.And(c) })
			return got
		}
		read()
		counted := w.counted.Load()
		sh.Run(t, top, "echo 2 >beside.yaml; echo 3 >new; mv new newer; chmod 600 newer; rm newer; mv folder moved; echo 1 >moved/a.yaml; mv moved folder; touch root")
		sh.Run(t, top, source.edit)
		waitSignal(t, w)
		want := filepath.Join(top, source.changed)
		if got := read(); got.All || !slices.Equal(got.Paths, []string{want}) {
			t.Errorf("%s: %+v changed, want %s", source.path, got, want)
		}
		if n := w.counted.Load() - counted; n > 2 { // an edit makes at most two events
			t.Errorf("%s: %d events counted", source.path, n)
		}
	}
}

// TestChangesUnknown checks that lost events lead to All.
func TestChangesUnknown(t *testing.T) {
	w, _ := newWatcher(t, t.TempDir(), Options{Rescan: time.Millisecond})
	run(t, w)
	for range 3 {
		waitSignal(t, w)
		w.Read(t.Context(), func(c Changes) {
			if !c.All {
				t.Error("a rescan can find anything")
			}
		})
	}
}

// TestChangesOnTheirWay checks that git or a changed link leads to All, because events may be on their way.
// The Watcher does not run in this test, so that no event comes.
func TestChangesOnTheirWay(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir .git ..1 ..2; ln -s ..1 ..data; echo 1 >.git/index")
	w, _ := newWatcher(t, dir, Options{})
	defer run(t, w) // frees what New took
	for _, tt := range []struct {
		before string
		all    bool
	}{
		{"true", true}, // the first Read passes All
		{"true", false},
		{"echo 22 >.git/index", true},
		{"true", false},
		{"ln -s ..2 ..new; mv -T ..new ..data", true},
		{"true", false},
	} {
		sh.Run(t, dir, tt.before)
		w.Read(t.Context(), func(c Changes) {
			if c.All != tt.all {
				t.Errorf("after %s, all may have changed: %v, want %v", tt.before, c.All, tt.all)
			}
		})
	}
}

// TestAnd checks that And joins changes up to a limit.
func TestAnd(t *testing.T) {
	var all, half Changes
	for i := range maxChanged/2 + 1 {
		all.Paths = append(all.Paths, fmt.Sprintf("/a/%04d", i))
		half.Paths = append(half.Paths, fmt.Sprintf("/b/%04d", i))
	}
	one := Changes{Paths: []string{"/a/0000"}}
	if c := all.And(one); c.All || !slices.Equal(c.Paths, all.Paths) {
		t.Errorf("a path that changed twice: %v and %d paths", c.All, len(c.Paths))
	}
	for _, c := range []Changes{all.And(half), one.And(Changes{All: true}), Changes{All: true}.And(one)} {
		if !c.All || len(c.Paths) > 0 {
			t.Errorf("%v and %d paths", c.All, len(c.Paths))
		}
	}
}
