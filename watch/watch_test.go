package watch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const deadline = 30 * time.Second // generous: it only bounds a failing test

// entry is one log record. The debug entries are the counted events: the tests
// read them to tell what counted from what only happened near something that did.
type entry struct {
	level slog.Level
	path  string // absolute
	err   string
}

type journal chan entry

func (j journal) Enabled(context.Context, slog.Level) bool { return true }
func (j journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j journal) WithGroup(string) slog.Handler            { return j }

func (j journal) Handle(_ context.Context, r slog.Record) error {
	e := entry{level: r.Level}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "path":
			e.path = a.Value.String()
		case "error":
			e.err = a.Value.String()
		}
		return true
	})
	j <- e
	return nil
}

// until returns what came up to an entry that want likes, with that entry.
func (j journal) until(t *testing.T, want func(entry) bool) []entry {
	t.Helper()
	var got []entry
	timeout := time.After(deadline)
	for {
		select {
		case e := <-j:
			got = append(got, e)
			if want(e) {
				return got
			}
		case <-timeout:
			t.Fatalf("waited in vain; came so far: %+v", got)
		}
	}
}

// counts tells whether path counts within a second.
func (j journal) counts(path string) bool {
	timeout := time.After(time.Second)
	for {
		select {
		case e := <-j:
			if e.path == path {
				return true
			}
		case <-timeout:
			return false
		}
	}
}

func level(l slog.Level) func(entry) bool { return func(e entry) bool { return e.level == l } }

func newWatcher(t *testing.T, root string, o Options) (*Watcher, journal) {
	t.Helper()
	j := make(journal, 1<<16)
	o.Log = slog.New(j)
	w, err := New(root, o)
	if err != nil {
		t.Fatal(err)
	}
	return w, j
}

// run runs w until the test ends.
func run(t *testing.T, w *Watcher) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

func waitSignal(t *testing.T, w *Watcher) Reason {
	t.Helper()
	select {
	case r := <-w.Signals():
		return r
	case <-time.After(deadline):
		t.Fatal("no signal")
		return ""
	}
}

func sh(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// A step runs a script, and then writes a file in root: events keep their order,
// so once that file has counted, all that the script did has had its chance.
type step struct {
	do   string
	want []string // paths below root that must have counted; none: nothing may
	not  []string // paths that may not
}

// TestTree is about what counts. There is no rescan that could cover up a fault.
// Scripts run in a folder that holds the folders root and out.
func TestTree(t *testing.T) {
	tests := []struct {
		name  string
		setup string
		root  string // "root" unless set
		steps []step
	}{
		{name: "edit in place", setup: "echo 1 >root/a.yaml", steps: []step{
			{do: "echo 2 >root/a.yaml", want: []string{"a.yaml"}},
			{do: "echo 3 >>root/a.yaml", want: []string{"a.yaml"}},
		}},
		{name: "rename over", setup: "echo 1 >root/a.yaml", steps: []step{
			{do: "echo 2 >root/.a.tmp; mv root/.a.tmp root/a.yaml", want: []string{"a.yaml"}},
			{do: "echo 3 >out/a.yaml; mv out/a.yaml root/a.yaml", want: []string{"a.yaml"}},
		}},
		{name: "saved by vim", setup: "echo 1 >root/a.yaml", steps: []step{
			{do: "echo >root/4913; rm root/4913; mv root/a.yaml root/a.yaml~; echo 2 >root/a.yaml; rm root/a.yaml~", want: []string{"a.yaml"}},
			{do: "echo 3 >>root/a.yaml", want: []string{"a.yaml"}},
		}},
		{name: "saved by emacs", setup: "echo 1 >root/a.yaml", steps: []step{
			{do: "ln -s me@host.1 root/.#a.yaml; mv root/a.yaml root/a.yaml~; echo 2 >root/a.yaml; rm root/.#a.yaml", want: []string{"a.yaml"}},
		}},
		{name: "removed file", setup: "echo 1 >root/a.yaml", steps: []step{
			{do: "rm root/a.yaml", want: []string{"a.yaml"}},
		}},
		{name: "new nested folders", steps: []step{
			{do: "mkdir -p root/x/y/z; echo 1 >root/x/y/z/a.yaml", want: []string{"x"}},
			{do: "echo 2 >root/x/y/z/a.yaml", want: []string{"x/y/z/a.yaml"}},
		}},
		{name: "copied in", setup: "mkdir -p out/x/y; echo 1 >out/x/a.yaml; echo 1 >out/x/y/b.yaml", steps: []step{
			{do: "cp -R out/x root/", want: []string{"x"}},
			{do: "echo 2 >root/x/y/b.yaml", want: []string{"x/y/b.yaml"}},
		}},
		{name: "moved in", setup: "mkdir -p out/x/y; echo 1 >out/x/y/a.yaml", steps: []step{
			{do: "mv out/x root/", want: []string{"x"}},
			{do: "echo 2 >root/x/y/a.yaml", want: []string{"x/y/a.yaml"}},
		}},
		{name: "moved out", setup: "mkdir -p root/x/y", steps: []step{
			{do: "mv root/x out/", want: []string{"x"}},
			{do: "echo 1 >out/x/a.yaml; echo 1 >out/x/y/a.yaml"},
			{do: "mkdir root/x; echo 1 >root/x/b.yaml", want: []string{"x"}},
			{do: "echo 2 >root/x/b.yaml; echo 2 >out/x/a.yaml", want: []string{"x/b.yaml"}, not: []string{"x/a.yaml"}},
		}},
		{name: "removed folder", setup: "mkdir -p root/x/y; echo 1 >root/x/y/a.yaml", steps: []step{
			{do: "rm -r root/x", want: []string{"x/y/a.yaml", "x"}},
			{do: "mkdir -p root/x/y", want: []string{"x"}},
			{do: "echo 2 >root/x/y/a.yaml", want: []string{"x/y/a.yaml"}},
		}},
		{name: "removed and made again", setup: "mkdir -p root/x/y", steps: []step{
			{do: "rm -r root/x; mkdir -p root/x/y; rm -r root/x; mkdir -p root/x/y", want: []string{"x"}},
			{do: "echo 1 >root/x/y/a.yaml", want: []string{"x/y/a.yaml"}},
		}},
		{name: "renamed inside", setup: "mkdir -p root/x/y root/z", steps: []step{
			{do: "mv root/x root/z/w", want: []string{"x", "z/w"}},
			{do: "echo 1 >root/z/w/a.yaml; echo 1 >root/z/w/y/a.yaml", want: []string{"z/w/a.yaml", "z/w/y/a.yaml"}, not: []string{"x/a.yaml", "x/y/a.yaml"}},
			{do: "mv root/z/w root/x", want: []string{"x"}},
			{do: "echo 2 >root/x/y/a.yaml", want: []string{"x/y/a.yaml"}, not: []string{"z/w/y/a.yaml"}},
		}},
		{name: "swapped", setup: "mkdir -p root/x/1 root/y/2", steps: []step{
			{do: "mv root/x root/t; mv root/y root/x; mv root/t root/y", want: []string{"x", "y"}},
			{do: "echo 1 >root/x/2/a.yaml; echo 1 >root/y/1/a.yaml", want: []string{"x/2/a.yaml", "y/1/a.yaml"}},
		}},
		{name: "names that begin alike", setup: "mkdir -p root/x root/x.d/y", steps: []step{
			{do: "rm -r root/x", want: []string{"x"}},
			{do: "echo 1 >root/x.d/y/a.yaml", want: []string{"x.d/y/a.yaml"}},
		}},
		{name: "linked folder", setup: "mkdir -p out/x/y; ln -s ../out/x root/l", steps: []step{
			{do: "echo 1 >out/x/y/a.yaml", want: []string{"l/y/a.yaml"}},
			{do: "mkdir out/x/z; echo 1 >out/x/z/a.yaml", want: []string{"l/z"}},
			{do: "echo 2 >out/x/z/a.yaml", want: []string{"l/z/a.yaml"}},
			{do: "rm root/l", want: []string{"l"}},
			{do: "echo 2 >out/x/y/a.yaml; echo 2 >out/x/z/a.yaml"},
		}},
		{name: "link turned", setup: "mkdir -p out/x out/y; ln -s ../out/x root/l", steps: []step{
			{do: "ln -s ../out/y root/l.new; mv root/l.new root/l.old; rm root/l; mv root/l.old root/l", want: []string{"l"}},
			{do: "echo 1 >out/y/a.yaml; echo 1 >out/x/b.yaml", want: []string{"l/a.yaml"}, not: []string{"l/b.yaml"}},
		}},
		{name: "target of a link moved away", setup: "mkdir -p out/x; ln -s ../out/x root/l", steps: []step{
			{do: "mv out/x out/y", want: []string{"l"}},
			{do: "echo 1 >out/y/a.yaml"},
		}},
		{name: "link to a folder in the tree", setup: "mkdir -p root/z; ln -s z root/a", steps: []step{
			{do: "rm root/a", want: []string{"a"}},
			{do: "echo 1 >root/z/a.yaml", want: []string{"z/a.yaml"}},
		}},
		{name: "loops", setup: "mkdir -p root/x; cd root/x; ln -s . self; ln -s .. up; ln -s ../.. upup; ln -s / all; ln -s eternal eternal; ln -s nowhere dangling", steps: []step{
			{do: "echo 1 >root/x/a.yaml; ln -s .. root/x/up2", want: []string{"x/a.yaml", "x/up2"}},
			{do: "echo 1 >out/a.yaml"},
		}},
		{name: "configmap", setup: "mkdir root/..1; echo 1 >root/..1/a.yaml; ln -s ..1 root/..data; ln -s ..data/a.yaml root/a.yaml", steps: []step{
			{do: "mkdir root/..2; echo 2 >root/..2/a.yaml; ln -s ..2 root/..data_tmp; mv -T root/..data_tmp root/..data 2>/dev/null || mv -h root/..data_tmp root/..data; rm -r root/..1", want: []string{"..2", "..data", "..1"}},
			{do: "echo 3 >root/..2/a.yaml", want: []string{"..2/a.yaml"}},
		}},
		{name: "ignored", setup: "mkdir -p root/ignored/x", steps: []step{
			{do: "echo 1 >root/ignored/a.yaml; echo 1 >root/ignored/x/a.yaml; mkdir root/ignored/y"},
			{do: "rm -r root/ignored"},
			{do: "mkdir -p root/ignored/x; echo 1 >root/ignored/x/a.yaml"},
			{do: "ln -s ignored root/l", want: []string{"l"}},
			{do: "echo 2 >root/ignored/a.yaml; echo 2 >root/l/x/a.yaml"},
			{do: "mv root/ignored root/x", want: []string{"x"}},
			{do: "echo 2 >root/x/a.yaml", want: []string{"x/a.yaml"}},
		}},
		{name: "attributes only", setup: "mkdir root/x; echo 1 >root/a.yaml", steps: []step{
			{do: "chmod 600 root/a.yaml; chmod 700 root/x; chmod 711 root; touch -a root/a.yaml"},
		}},
		{name: "next to root", steps: []step{
			{do: "echo 1 >a.yaml; mkdir x; echo 1 >x/a.yaml; rm a.yaml; echo 1 >roots"},
		}},
		{name: "a file as root", root: "root/a.yaml", setup: "echo 1 >root/a.yaml; mkdir root/x", steps: []step{
			{do: "echo 2 >root/a.new; mv root/a.new root/a.yaml", want: []string{"a.yaml"}},
			{do: "echo 1 >root/x/a.yaml"},
			{do: "mkdir root/y", want: []string{"y"}},
			{do: "echo 1 >root/y/a.yaml"},
		}},
		{name: "an ignored name as root", root: "ignored", setup: "mkdir -p ignored/x", steps: []step{
			{do: "echo 1 >ignored/x/a.yaml", want: []string{"x/a.yaml"}},
		}},
		{name: "a link as root", root: "current", setup: "mkdir root/x; ln -s root current", steps: []step{
			{do: "echo 1 >root/x/a.yaml", want: []string{"x/a.yaml"}},
			{do: "mkdir root/ignored; echo 1 >root/ignored/a.yaml"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sh(t, dir, "mkdir root out")
			sh(t, dir, tt.setup)
			root := filepath.Join(dir, cmp.Or(tt.root, "root"))
			w, log := newWatcher(t, root, Options{
				QuietPeriod: time.Millisecond,
				Rescan:      -1,
				Ignore:      func(path string) bool { return filepath.Base(path) == "ignored" },
			})
			run(t, w)
			if info, err := os.Stat(root); err != nil {
				t.Fatal(err)
			} else if !info.IsDir() {
				root = filepath.Dir(root)
			}
			for i, s := range tt.steps {
				sh(t, dir, s.do)
				if i == 0 && s.want != nil {
					if r := waitSignal(t, w); r != Change {
						t.Errorf("%s: signal %q", s.do, r)
					}
				}
				end := filepath.Join(root, fmt.Sprint("end.", i))
				sh(t, dir, ": >"+end)
				var got []string
				for _, e := range log.until(t, func(e entry) bool { return e.path == end }) {
					if e.level != slog.LevelDebug {
						t.Errorf("%s: logged %+v", s.do, e)
					}
					if e.path != end {
						got = append(got, strings.TrimPrefix(strings.TrimPrefix(e.path, root), "/"))
					}
				}
				for _, p := range s.want {
					if !slices.Contains(got, p) {
						t.Errorf("%s: %q did not count; did: %q", s.do, p, got)
					}
				}
				for _, p := range got {
					if s.want == nil || slices.Contains(s.not, p) {
						t.Errorf("%s: %q counted", s.do, p)
					}
				}
			}
		})
	}
}

func TestBurst(t *testing.T) {
	const quiet = 50 * time.Millisecond
	root := t.TempDir()
	w, log := newWatcher(t, root, Options{QuietPeriod: quiet, Rescan: -1})
	run(t, w)
	start := time.Now()
	sh(t, root, "mkdir -p a/b c; i=0; while [ $i -lt 500 ]; do echo $i >a/b/$i.yaml; echo $i >c/$i.yaml; i=$((i+1)); done; echo >last")
	signals, counted := 0, false
	for !counted {
		select {
		case <-w.Signals():
			signals++
		case e := <-log:
			counted = e.path == filepath.Join(root, "last")
		case <-time.After(deadline):
			t.Fatal("the last file never counted")
		}
	}
	waitSignal(t, w)
	signals++
	// Two signals are never closer than the quiet time, however slow the machine.
	if most := 1 + int(time.Since(start)/quiet); signals > most {
		t.Errorf("%d signals, want at most %d", signals, most)
	}
}

func TestRescan(t *testing.T) {
	w, _ := newWatcher(t, t.TempDir(), Options{Rescan: time.Millisecond})
	run(t, w)
	for range 3 {
		if r := waitSignal(t, w); r != Rescan {
			t.Errorf("signal %q in a tree at rest", r)
		}
	}
}

// TestRescanInBurst: a burst keeps its quiet time whatever the ticker says.
func TestRescanInBurst(t *testing.T) {
	w, _ := newWatcher(t, t.TempDir(), Options{QuietPeriod: 50 * time.Millisecond, Rescan: time.Millisecond})
	w.burst.event()
	run(t, w)
	if r := waitSignal(t, w); r != Change {
		t.Errorf("signal %q came before the end of the burst", r)
	}
}

// TestRootGone has no rescan: the watch on the parent must do.
func TestRootGone(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "parent")
	root := filepath.Join(dir, "root")
	sh(t, tmp, "mkdir -p parent/root/x")
	w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: -1})
	run(t, w)
	for _, s := range []struct{ gone, back string }{
		{"rm -r root", "mkdir -p root/x"},
		{"mv root away", "mv away root"},
		{"mv root away; echo >root", "rm root; mkdir -p root/x"},
	} {
		sh(t, dir, s.gone)
		waitSignal(t, w)
		log.until(t, level(slog.LevelWarn))
		sh(t, dir, s.back)
		waitSignal(t, w)
		log.until(t, level(slog.LevelInfo))
		// Root may have come in two events; the second look drops what is queued
		// (a signal stands for it), so one write may not show up.
		ok := false
		for try := 0; !ok && try < 10; try++ {
			sh(t, dir, "mkdir -p root/x; echo 1 >root/x/a.yaml")
			ok = log.counts(filepath.Join(root, "x/a.yaml"))
		}
		if !ok {
			t.Errorf("%s; %s: not watched again", s.gone, s.back)
		}
	}
	sh(t, tmp, "mv parent away")
	log.until(t, level(slog.LevelWarn))
}

// TestRootTurned swaps a link as root, as deployments do.
func TestRootTurned(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "mkdir -p 1/x 2/y; ln -s 1 current")
	w, log := newWatcher(t, filepath.Join(dir, "current"), Options{QuietPeriod: time.Millisecond, Rescan: -1})
	run(t, w)
	if err := os.Symlink("2", filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	waitSignal(t, w)
	sh(t, dir, "echo 1 >1/x/a.yaml; echo 1 >2/y/a.yaml")
	for _, e := range log.until(t, func(e entry) bool { return e.path == filepath.Join(dir, "current/y/a.yaml") }) {
		if e.path == filepath.Join(dir, "current/x/a.yaml") {
			t.Error("the old folder still counts")
		}
	}
}

// TestRootGoneWithParent leaves no watch at all: only the rescan can find root.
func TestRootGoneWithParent(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "mkdir -p base/root")
	w, log := newWatcher(t, filepath.Join(dir, "base/root"), Options{QuietPeriod: time.Millisecond, Rescan: 5 * time.Millisecond})
	run(t, w)
	sh(t, dir, "rm -r base")
	log.until(t, level(slog.LevelWarn))
	for range 5 {
		waitSignal(t, w)
	}
	sh(t, dir, "mkdir -p base/root")
	for _, e := range log.until(t, level(slog.LevelInfo)) {
		if e.level == slog.LevelWarn {
			t.Errorf("warned again: %s", e.err)
		}
	}
}

func TestNew(t *testing.T) {
	dir := t.TempDir()
	_, err := New(filepath.Join(dir, "missing"), Options{})
	if want := "watch: stat " + dir + "/missing: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestNothingLeft(t *testing.T) {
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil && runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		return len(entries)
	}
	dir := t.TempDir()
	sh(t, dir, "mkdir -p a/b; echo 1 >a/b/a.yaml") // and lets os/exec open what it keeps
	goroutines, open := runtime.NumGoroutine(), files()

	ctx, cancel := context.WithCancel(context.Background())
	w, _ := newWatcher(t, dir, Options{QuietPeriod: time.Millisecond, Rescan: time.Millisecond})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	for range 5 {
		waitSignal(t, w)
		sh(t, dir, "echo 2 >a/b/a.yaml")
	}
	cancel()
	<-done
	for range w.Signals() { // ends: it is closed
	}

	// A goroutine that has said goodbye may not be off the count yet.
	for limit := time.Now().Add(deadline); runtime.NumGoroutine() > goroutines || files() > open; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines and %d files, before %d and %d", runtime.NumGoroutine(), files(), goroutines, open)
		}
	}
}
