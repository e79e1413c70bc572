package notify

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/tools/sh"
)

const deadline = 2 * time.Minute // generous, because it only bounds a failing test

// entry is a log record. Debug entries are counted events, by which tests distinguish events that count from
// events that don't.
type entry struct {
	level slog.Level
	path  string // absolute
	op    string
	file  string
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
		case "file":
			e.file = a.Value.String()
		case "op":
			e.op = a.Value.String()
		case "error":
			e.err = a.Value.String()
		}
		return true
	})
	j <- e
	return nil
}

// until returns the entries up to the first that want accepts, with that entry.
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

// again calls do until path counts, and returns that entry. One call may not suffice, because a look at the
// whole tree may drop an event.
func (j journal) again(t *testing.T, path string, do func(try int)) entry {
	t.Helper()
	limit := time.Now().Add(deadline)
	for try := 0; time.Now().Before(limit); try++ {
		do(try)
		if e, ok := j.soon(counts(path)); ok {
			return e
		}
	}
	t.Fatalf("%s does not count", path)
	return entry{}
}

// soon returns the next entry that want accepts, if one comes within a second.
func (j journal) soon(want func(entry) bool) (entry, bool) {
	timeout := time.After(time.Second)
	for {
		select {
		case e := <-j:
			if want(e) {
				return e, true
			}
		case <-timeout:
			return entry{}, false
		}
	}
}

func level(l slog.Level) func(entry) bool { return func(e entry) bool { return e.level == l } }

func counts(path string) func(entry) bool { return func(e entry) bool { return e.path == path } }

func last(list []entry) entry { return list[len(list)-1] }

func newWatcher(t *testing.T, root string, o Options) (*Watcher, journal) {
	t.Helper()
	j := make(journal, 1<<16)
	o.Log = event.New(j)
	w, err := New(t.Context(), root, o)
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

// A step runs a script, and then writes a file in root. Events keep their order, so when that file has
// counted, the events of the script have come.
type step struct {
	do   string
	want []string // paths below root that must count; if empty, no path may count
	not  []string // paths that must not count
}

// kubelet returns the way in which Kubernetes publishes revision n of a volume.
func kubelet(n int) string {
	return fmt.Sprintf(`mkdir root/..%d root/..%[1]d/sub; for f in a b sub/c; do echo %[1]d >root/..%[1]d/$f.yaml; done; chmod 755 root/..%[1]d
		ln -s ..%[1]d root/..data_tmp; mv -T root/..data_tmp root/..data 2>/dev/null || mv -h root/..data_tmp root/..data`, n)
}

// TestTree checks which events count, without a rescan that could hide a fault. Scripts run in a folder that
// holds the folders root and out.
func TestTree(t *testing.T) {
	tests := []struct {
		name  string
		setup string
		root  string            // "root" unless set
		skip  func(string) bool // nil skips nothing
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
		// As the kubelet writes: the resource file is a link through a link to a hidden folder.
		{name: "configmap, hidden names skipped", setup: kubelet(1) + "; ln -s ..data/a.yaml root/a.yaml; ln -s ..data/sub root/sub", skip: litter, steps: []step{
			{do: kubelet(2) + "; rm -r root/..1", want: []string{"a.yaml"}},
			{do: kubelet(3) + "; ln -s ..data/b.yaml root/b.yaml; rm -r root/..2", want: []string{"a.yaml", "b.yaml"}, not: []string{"..3"}},
			{do: "echo 4 >root/..3/a.yaml; echo 4 >root/..3/sub/c.yaml", want: []string{"a.yaml", "sub/c.yaml"}},
			{do: "echo 1 >root/..3/.other; mkdir root/..4; echo 1 >root/..4/a.yaml; rm -r root/..4"},
		}},
		{name: "configmap, the link as root", root: "root/..data", setup: kubelet(1), steps: []step{
			{do: "touch out/x; " + kubelet(2) + "; rm -r root/..1", want: []string{""}},
		}},
		{name: "configmap, a folder in it as root", root: "root/..data/sub", setup: kubelet(1), steps: []step{
			{do: kubelet(2), want: []string{""}},
		}},
		{name: "file behind links", setup: "mkdir out/x out/y; echo 1 >out/x/a.yaml; echo 1 >out/y/a.yaml; ln -s x out/now; ln -s ../out/now/a.yaml root/a.yaml", steps: []step{
			{do: "echo 2 >out/x/a.yaml", want: []string{"a.yaml"}},
			{do: "echo 2 >out/x/b.yaml; echo 2 >out/y/a.yaml; echo 1 >out/a.yaml; chmod 600 out/x/a.yaml"},
			{do: "ln -s y out/new; mv out/new out/old; rm out/now; mv out/old out/now", want: []string{"a.yaml"}},
			{do: "echo 3 >out/x/a.yaml"},
			{do: "echo 3 >out/y/a.new; mv out/y/a.new out/y/a.yaml", want: []string{"a.yaml"}},
			{do: "rm -r out/y", want: []string{"a.yaml"}},
			{do: "mkdir out/y", want: []string{"a.yaml"}},
			{do: "echo 4 >out/y/a.yaml", want: []string{"a.yaml"}},
		}},
		{name: "dangling link", setup: "ln -s ../out/x/y/a.yaml root/a.yaml", steps: []step{
			{do: "mkdir -p out/x", want: []string{"a.yaml"}},
			{do: "echo 1 >out/y; echo 1 >out/x/z"},
			{do: "mkdir out/x/y", want: []string{"a.yaml"}},
			{do: "echo 1 >out/x/y/a.yaml", want: []string{"a.yaml"}},
		}},
		{name: "link to a folder behind a link", setup: "mkdir -p out/1/x out/2/x; ln -s 1 out/now; ln -s ../out/now/x root/l", steps: []step{
			{do: "ln -s 2 out/new; mv out/new out/old; rm out/now; mv out/old out/now", want: []string{"l"}},
			{do: "echo 1 >out/2/x/a.yaml; echo 1 >out/1/x/b.yaml", want: []string{"l/a.yaml"}, not: []string{"l/b.yaml"}},
		}},
		{name: "link through a loop", setup: "ln -s b root/a; ln -s a root/b; ln -s a/x/a.yaml root/c; ln -s loop out/loop; ln -s ../out/loop/x root/d", steps: []step{
			{do: "rm out/loop; mkdir -p out/loop", want: []string{"d"}},
			{do: "rm root/b; mkdir -p root/b/x; echo 1 >root/b/x/a.yaml", want: []string{"b"}},
		}},
		{name: "skipped names", setup: "mkdir -p root/.x/y; ln -s .x root/l; echo 1 >root/.z.yaml", skip: litter, steps: []step{
			{do: "echo 1 >root/.a.yaml; mkdir root/.w; echo 1 >root/.w/a.yaml; echo 2 >root/.z.yaml; touch root/a.yaml~; mv root/.z.yaml root/.y"},
			{do: "echo 1 >root/.x/y/a.yaml", want: []string{"l/y/a.yaml"}},
			{do: "mv root/.y root/y.yaml", want: []string{"y.yaml"}},
			{do: "mv root/y.yaml root/.y", want: []string{"y.yaml"}},
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
			{do: "mkdir root/y; echo 1 >root/y/a.yaml; echo 1 >root/b.yaml"},
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
			sh.Run(t, dir, "mkdir root out")
			sh.Run(t, dir, tt.setup)
			root := filepath.Join(dir, cmp.Or(tt.root, "root"))
			var ends []string // paths that also count, if the folder has no other
			source := root
			if info, err := os.Stat(root); err != nil {
				t.Fatal(err)
			} else if !info.IsDir() {
				root = filepath.Dir(root)
				for i := range tt.steps {
					ends = append(ends, filepath.Join(root, fmt.Sprint("end.", i)))
				}
			}
			w, log := newWatcher(t, source, Options{
				QuietPeriod: time.Millisecond,
				Rescan:      -1,
				Ignore:      func(path string) bool { return filepath.Base(path) == "ignored" },
				Skip:        tt.skip,
				Files:       ends,
			})
			run(t, w)
			for i, s := range tt.steps {
				sh.Run(t, dir, s.do)
				if i == 0 && s.want != nil {
					if r := waitSignal(t, w); r != Change {
						t.Errorf("%s: signal %q", s.do, r)
					}
				}
				end := filepath.Join(root, fmt.Sprint("end.", i))
				sh.Run(t, dir, ": >"+end)
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

// TestBurst writes 10,000 files. The signals are few, the last signal comes soon after the last file, and the
// memory stays small.
func TestBurst(t *testing.T) {
	const quiet = 50 * time.Millisecond
	files := 10_000
	if testing.Short() {
		files = 1000
	}
	heap := func() int { // the smallest of several, because a running look holds more
		least := math.MaxInt
		for range 10 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			least = min(least, int(m.HeapAlloc))
		}
		return least
	}
	for _, tt := range []struct {
		name string
		poll time.Duration
		most int // the largest number of bytes that stay allocated
	}{
		{"watched", 0, 1 << 20},
		{"polled", time.Millisecond, 1000 * files}, // a stamp and a path for each file
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			sh.Run(t, root, "mkdir -p a/b c")
			w, log := newWatcher(t, root, Options{QuietPeriod: quiet, Rescan: -1, Poll: tt.poll})
			run(t, w)
			before, start := heap(), time.Now()
			wrote := make(chan error, 1)
			go func() {
				for i := range files {
					if err := os.WriteFile(filepath.Join(root, []string{"a/b", "c"}[i%2], fmt.Sprint(i, ".yaml")), []byte("x"), 0o644); err != nil {
						wrote <- err
						return
					}
				}
				wrote <- os.WriteFile(filepath.Join(root, "last"), []byte("x"), 0o644)
			}()
			// The receiver reads the tree at each signal, until all files are there.
			signals := 0
			for complete := false; !complete || wrote != nil; {
				select {
				case err := <-wrote:
					if err != nil {
						t.Fatal(err)
					}
					wrote = nil
				case <-w.Signals():
					signals++
					_, err := os.Stat(filepath.Join(root, "last"))
					complete = err == nil
				case <-time.After(deadline):
					t.Fatal("no signal")
				}
			}
			end := time.Now()
			for len(log) > 0 {
				<-log
			}
			if after := heap(); after-before > tt.most {
				t.Errorf("holds %d bytes more than before the burst", after-before)
			}
			// The time between two signals is at least the quiet period, even on a slow machine.
			if most := 1 + int(time.Since(start)/quiet); signals > most {
				t.Errorf("%d signals, want at most %d", signals, most)
			}
			t.Logf("%d files in %v, %d signals", files, end.Sub(start), signals)
		})
	}
}

// TestLateEvents checks that a burst goes on if events are waiting when it fires.
func TestLateEvents(t *testing.T) {
	root := t.TempDir()
	w, log := newWatcher(t, root, Options{QuietPeriod: time.Hour, MaxDelay: 2 * time.Hour})
	defer run(t, w) // frees what New took
	w.change("")
	if !w.settled(t.Context()) {
		t.Error("it goes on without an event")
	}
	w.burst.at = w.burst.at.Add(-2 * time.Hour)
	if w.settled(t.Context()) {
		t.Error("it ends though it fires late")
	}
	if !w.settled(t.Context()) {
		t.Error("it goes on for that more than once")
	}
	w.burst.after(time.Hour)
	sh.Run(t, root, ": >a.yaml")
	for limit := time.Now().Add(deadline); w.settled(t.Context()); {
		if time.Now().After(limit) {
			t.Fatal("no event comes")
		}
	}
	log.until(t, counts(filepath.Join(root, "a.yaml")))
}

func TestRescan(t *testing.T) {
	w, _ := newWatcher(t, t.TempDir(), Options{QuietPeriod: time.Millisecond, Rescan: 20 * time.Millisecond})
	run(t, w)
	for range 3 {
		if r := waitSignal(t, w); r != Rescan {
			t.Errorf("signal %q in a tree at rest", r)
		}
	}
}

// TestRescanInBurst checks that a rescan during a burst has no signal of its own, and does not delay the signal
// of the burst forever.
func TestRescanInBurst(t *testing.T) {
	w, _ := newWatcher(t, t.TempDir(), Options{QuietPeriod: 50 * time.Millisecond, MaxDelay: 100 * time.Millisecond, Rescan: time.Millisecond})
	w.change("")
	run(t, w)
	if r := waitSignal(t, w); r != Change {
		t.Errorf("signal %q came before the end of the burst", r)
	}
}

// TestRootGone runs without rescans, so the watch on the parent of root must suffice.
func TestRootGone(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "parent")
	root := filepath.Join(dir, "root")
	sh.Run(t, tmp, "mkdir -p parent/root/x")
	w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: -1})
	run(t, w)
	for _, s := range []struct{ gone, back string }{
		{"rm -r root", "mkdir -p root/x"},
		{"mv root away", "mv away root"},
		{"mv root away; echo >root", "rm root; mkdir -p root/x"},
	} {
		sh.Run(t, dir, s.gone)
		waitSignal(t, w)
		log.until(t, level(slog.LevelWarn))
		sh.Run(t, dir, s.back)
		waitSignal(t, w)
		log.until(t, level(slog.LevelInfo))
		// The return of root may make two events. The look after the second drops queued events, for which a
		// signal comes, so one write may have no entry.
		log.again(t, filepath.Join(root, "x/a.yaml"), func(int) { sh.Run(t, dir, "mkdir -p root/x; echo 1 >root/x/a.yaml") })
	}
	sh.Run(t, tmp, "mv parent away")
	log.until(t, level(slog.LevelWarn))
}

// TestRootTurned turns the link that is root, as deployments do.
func TestRootTurned(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir -p 1/x 2/y; ln -s 1 current")
	w, log := newWatcher(t, filepath.Join(dir, "current"), Options{QuietPeriod: time.Millisecond, Rescan: -1})
	run(t, w)
	if err := os.Symlink("2", filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	waitSignal(t, w)
	sh.Run(t, dir, "echo 1 >1/x/a.yaml; echo 1 >2/y/a.yaml")
	for _, e := range log.until(t, func(e entry) bool { return e.path == filepath.Join(dir, "current/y/a.yaml") }) {
		if e.path == filepath.Join(dir, "current/x/a.yaml") {
			t.Error("the old folder still counts")
		}
	}
}

// TestRootGoneWithParent removes all watched folders, so that only a rescan can find root.
func TestRootGoneWithParent(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir -p base/root")
	w, log := newWatcher(t, filepath.Join(dir, "base/root"), Options{QuietPeriod: time.Millisecond, Rescan: 5 * time.Millisecond})
	run(t, w)
	sh.Run(t, dir, "rm -r base")
	first := last(log.until(t, level(slog.LevelWarn)))
	for range 5 {
		waitSignal(t, w)
	}
	sh.Run(t, dir, "mkdir -p base/root")
	for _, e := range log.until(t, level(slog.LevelInfo)) {
		if e.level == slog.LevelWarn {
			t.Errorf("warned again: %s, after %s", e.err, first.err)
		}
	}
}

func TestNew(t *testing.T) {
	dir := t.TempDir()
	_, err := New(t.Context(), filepath.Join(dir, "missing"), Options{})
	if want := "watch: stat " + dir + "/missing: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestNothingLeft(t *testing.T) {
	files := func() int { return openFiles(t) }
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir -p a/b; echo 1 >a/b/a.yaml") // os/exec now has opened the descriptors that it keeps
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
		sh.Run(t, dir, "echo 2 >a/b/a.yaml")
	}
	cancel()
	<-done
	for range w.Signals() { // ends, because Run closes the channel
	}

	// A goroutine at its end may still count.
	for limit := time.Now().Add(deadline); runtime.NumGoroutine() > goroutines || files() > open; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines and %d files, before %d and %d", runtime.NumGoroutine(), files(), goroutines, open)
		}
	}
}

// TestNothingGrows makes, fills, renames and removes folders while the watch runs.
func TestNothingGrows(t *testing.T) {
	for _, poll := range []time.Duration{0, time.Millisecond} {
		t.Run(fmt.Sprint("poll ", poll), func(t *testing.T) {
			dir := t.TempDir()
			sh.Run(t, dir, "mkdir root out; echo 1 >out/a.yaml")
			root := filepath.Join(dir, "root")
			w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: -1, Poll: poll})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { w.Run(ctx) })
			defer running.Wait()
			defer cancel()
			churn := func(n int) (goroutines, files int) {
				at := func(name string) string { return filepath.Join(root, name) }
				for i := range n {
					d, end := workbench{t, root}, fmt.Sprint("end.", n, ".", i)
					d.must(os.MkdirAll(at("x/y"), 0o755))
					d.symlink("../../../out/a.yaml", "x/y/a.yaml")
					d.symlink("../../out", "x/out")
					d.create("x/y/b.yaml")
					d.rename("x", "z")
					switch i % 3 {
					case 0:
						d.must(os.RemoveAll(at("z")))
					case 1:
						d.rename("z", "../out/z")
						d.must(os.RemoveAll(at("../out/z")))
					default: // so that the Watcher also sees a quiet tree
						d.create(end)
						log.until(t, counts(at(end)))
						d.must(os.RemoveAll(at("z")))
						d.remove(end)
					}
				}
				end := fmt.Sprint("end.", n)
				workbench{t, root}.create(end)
				log.until(t, counts(at(end)))
				waitSignal(t, w)
				return runtime.NumGoroutine(), openFiles(t)
			}
			goroutines, files := churn(10)
			g, f := churn(1000)
			// A look may be running, or a goroutine may be at its end.
			for limit := time.Now().Add(deadline); g > goroutines || f > files; g, f = runtime.NumGoroutine(), openFiles(t) {
				if time.Now().After(limit) {
					t.Fatalf("%d goroutines and %d files, before %d and %d", g, f, goroutines, files)
				}
				runtime.Gosched()
			}
			cancel()
			running.Wait()
			if n := len(w.tree.byPath) + len(w.tree.byReal) + len(w.tree.watchpoints) + len(w.tree.watchpointsOf) + len(w.tree.denied) + len(w.tree.stamps); n > 20 {
				t.Errorf("remembers %d paths of a tree of one folder", n)
			}
		})
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return len(entries)
}

// TestMode: a missing root makes a watch partial, until the root is there again; and --poll polls.
func TestMode(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	sh.Run(t, "/", "mkdir "+root)
	w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: 20 * time.Millisecond})
	run(t, w)
	if m := w.Mode(); m != Events {
		t.Errorf("the mode is %s", m)
	}
	sh.Run(t, "/", "rmdir "+root)
	log.until(t, level(slog.LevelWarn))
	if m := w.Mode(); m != Partial {
		t.Errorf("without the root, the mode is %s", m)
	}
	sh.Run(t, "/", "mkdir "+root)
	log.until(t, level(slog.LevelInfo))
	if m := w.Mode(); m != Events {
		t.Errorf("with the root again, the mode is %s", m)
	}
	if polled, _ := newWatcher(t, root, Options{Poll: time.Hour}); polled.Mode() != Polling {
		t.Errorf("with Poll, the mode is %s", polled.Mode())
	} else {
		run(t, polled)
	}
}
