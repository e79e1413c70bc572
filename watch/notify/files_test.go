package notify

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"xdspub/tools/sh"
)

// TestFiles checks Options.Files beside the tree, watched and polled.
func TestFiles(t *testing.T) {
	for _, poll := range []time.Duration{0, time.Millisecond} {
		t.Run(fmt.Sprint("poll ", poll), func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			sh.Run(t, dir, "mkdir root etc; echo 1 >etc/a; echo 1 >root/.hidden; mkdir -p vol/..1; echo 1 >vol/..1/c; ln -s ..1 vol/..data; ln -s ..data/c vol/c")
			w, log := newWatcher(t, at("root"), Options{QuietPeriod: time.Millisecond, Rescan: -1, Poll: poll, Skip: litter,
				Files: []string{at("etc/a"), at("etc/missing/deep/b"), at("root/.hidden"), at("vol/c")}})
			run(t, w)
			change := func(do, want string) {
				t.Helper()
				sh.Run(t, dir, do)
				log.until(t, counts(at(want)))
				waitSignal(t, w)
			}
			change("echo 2 >>etc/a", "etc/a")
			change("echo 3 >etc/a.new; mv etc/a.new etc/a", "etc/a")
			change("rm etc/a", "etc/a")
			change("echo 4 >etc/a", "etc/a")
			change("mkdir -p etc/missing/deep; echo 1 >etc/missing/deep/b", "etc/missing/deep/b")
			change("echo 2 >>root/.hidden", "root/.hidden")
			change("mkdir vol/..2; echo 2 >vol/..2/c; ln -s ..2 vol/..data_tmp; mv -T vol/..data_tmp vol/..data || mv -h vol/..data_tmp vol/..data; rm -r vol/..1", "vol/c")
			change("echo 3 >>vol/..2/c", "vol/c")

			// Other files in these folders do not count.
			sh.Run(t, dir, "echo 1 >etc/b; echo 1 >vol/d; echo 1 >root/.other; mkdir etc/x")
			sh.Run(t, dir, "echo 1 >root/end.yaml")
			for _, e := range log.until(t, counts(at("root/end.yaml"))) {
				if e.path != at("root/end.yaml") && e.path != at("vol/c") {
					t.Errorf("counted: %+v", e)
				}
			}
			waitSignal(t, w)

			read := func() (all bool) {
				w.Read(t.Context(), func(c Changes) { all = all || c.All })
				return all
			}
			also := func(files ...string) {
				t.Helper()
				if err := w.Also(files...); err != nil {
					t.Fatal(err)
				}
			}
			// After Also, the files of the new list may have changed already. A signal may come from an earlier
			// change, so the test reads until the Watcher uses the list.
			set := func(files ...string) {
				t.Helper()
				for read() {
				}
				for also(files...); !read(); {
					waitSignal(t, w)
				}
			}
			set(at("etc/b"), at("vol/d"))
			change("echo 2 >>etc/b", "etc/b")
			change("echo 2 >>vol/d", "vol/d")
			sh.Run(t, dir, "echo 5 >>etc/a; echo 5 >>vol/..2/c")
			also(at("vol/d"), at("etc/b"), at("etc/b")) // the same list
			for range 5 {
				change("echo 3 >>etc/b", "etc/b")
			}
			if read() {
				t.Error("the same list was taken once more")
			}
			set()
		})
	}
}

// TestFilesWhileRunning calls Also from several goroutines, for the race detector.
func TestFilesWhileRunning(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir root etc")
	w, log := newWatcher(t, filepath.Join(dir, "root"), Options{QuietPeriod: time.Millisecond, Rescan: 50 * time.Millisecond})
	run(t, w)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 25 {
				if err := w.Also(filepath.Join(dir, "etc", fmt.Sprint(i)), filepath.Join(dir, "etc", fmt.Sprint(j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	last := filepath.Join(dir, "etc/last")
	if err := w.Also(last); err != nil {
		t.Fatal(err)
	}
	waitSignal(t, w)
	log.again(t, last, func(int) { sh.Run(t, dir, "echo 1 >>etc/last") })
}
