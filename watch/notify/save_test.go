package notify

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"xdspub/tools/sh"
)

// TestSaves checks that a complete change of one file gives a signal without a quiet period, and other
// changes after one. The durations are safe on a slow machine.
func TestSaves(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED, needs Linux: no other system tells when a file is whole")
	}
	const trunc, creat = os.O_TRUNC, os.O_CREATE
	for _, tt := range []struct {
		name   string
		save   func(workbench)
		atOnce bool
	}{
		{"renamed over", func(d workbench) { d.write(".new", creat, "saved\n"); d.rename(".new", "a.yaml") }, true},
		{"renamed in", func(d workbench) { d.write("../new", creat, "saved\n"); d.rename("../new", "b.yaml") }, true},
		{"renamed inside", func(d workbench) { d.rename("a.yaml", "z.yaml") }, false},
		{"written in pieces", func(d workbench) { d.write("a.yaml", trunc, "sa", "v", "ed\n") }, true},
		{"appended to", func(d workbench) { d.write("a.yaml", os.O_APPEND, "more\n") }, true},
		{"new", func(d workbench) { d.write("b.yaml", creat, "saved\n") }, true},
		{"truncated, then written", func(d workbench) { d.truncate("a.yaml"); d.write("a.yaml", 0, "saved\n") }, true},
		{"removed, then written", func(d workbench) { d.remove("a.yaml"); d.write("a.yaml", creat, "saved\n") }, true},
		{"moved away, then written", func(d workbench) { d.rename("a.yaml", "a.yaml~"); d.write("a.yaml", creat, "saved\n") }, true},
		{"backup, then written", func(d workbench) { d.write("a.yaml~", creat, "old\n"); d.write("a.yaml", trunc, "saved\n") }, true},
		{"linked again", func(d workbench) { d.symlink("target", ".new"); d.rename(".new", "a.yaml") }, false},
		{"removed", func(d workbench) { d.remove("a.yaml") }, false},
		{"truncated", func(d workbench) { d.truncate("a.yaml") }, false},
		{"emptied", func(d workbench) { d.write("a.yaml", trunc) }, false},
		{"new and empty", func(d workbench) { d.write("b.yaml", creat) }, false},
		{"a new folder", func(d workbench) { d.must(os.Mkdir(d.path("folder"), 0o755)) }, false},
		{"a folder renamed in", func(d workbench) {
			d.must(os.Mkdir(d.path("../folder"), 0o755))
			d.write("../folder/a.yaml", creat, "saved\n")
			d.rename("../folder", "folder")
		}, false},
		{"still open", func(d workbench) {
			f, err := os.OpenFile(d.path("a.yaml"), os.O_WRONLY|trunc, 0)
			d.must(err)
			_, err = f.WriteString("sav")
			d.must(err)
			d.t.Cleanup(func() { f.Close() })
		}, false},
		{"two files", func(d workbench) {
			f, err := os.OpenFile(d.path("a.yaml"), os.O_WRONLY|trunc, 0)
			d.must(err)
			d.write("b.yaml", creat, "saved\n")
			_, err = f.WriteString("saved\n")
			d.must(err)
			d.must(f.Close())
		}, false},
		{"a volume of Kubernetes", func(d workbench) {
			sh.Run(d.t, d.path(".."), kubelet(2))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // each waits more than it works
			quiet := 300 * time.Millisecond
			if tt.atOnce {
				quiet = time.Hour
			}
			top := t.TempDir()
			sh.Run(t, top, "mkdir root; echo old >root/a.yaml; ln -s ..data/a.yaml root/volume.yaml; "+kubelet(1))
			d := workbench{t, filepath.Join(top, "root")}
			w, _ := newWatcher(t, d.dir, Options{QuietPeriod: quiet, MaxDelay: time.Hour, Rescan: -1, Skip: litter})
			run(t, w)
			start := time.Now()
			tt.save(d)
			waitSignal(t, w)
			if took := time.Since(start); !tt.atOnce && took < quiet {
				t.Errorf("signalled after %v, before the quiet time", took)
			}
		})
	}
}
