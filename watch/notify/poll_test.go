package notify

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xdspub/tools/sh"
)

// TestPoll checks which changes polling finds, and that nothing else gives a signal.
func TestPoll(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	sh.Run(t, filepath.Dir(root), `mkdir -p root/x/y root/.h out/z; echo 1 >root/x/a.yaml; echo 1 >out/f.yaml; echo 1 >out/z/f.yaml
		ln -s ../out/f.yaml root/f.yaml; ln -s ../out/z root/z; ln -s nowhere root/dangling; ln -s .. root/up; ln -s loop root/loop; `+kubelet(1)+"; ln -s ..data/a.yaml root/cm.yaml")
	w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: -1, Poll: time.Millisecond, Skip: litter, Files: []string{filepath.Join(root, "../out/extra")}})
	run(t, w)
	for i, s := range []struct {
		do   string
		want []string
	}{
		{"echo 2 >>root/x/a.yaml", []string{"x/a.yaml"}},
		{"echo 333 >root/x/.a; touch -r root/x/a.yaml root/x/.a; mv root/x/.a root/x/a.yaml", []string{"x/a.yaml"}},
		{"cp -p root/x/a.yaml root/x/.a; mv root/x/.a root/x/a.yaml", []string{"x/a.yaml"}}, // only the inode differs
		{"mkdir root/x/y/z", []string{"x/y/z"}},
		{"echo 1 >root/x/y/z/a.yaml", []string{"x/y/z/a.yaml"}},
		{"mv root/x/y out/", []string{"x/y", "x/y/z", "x/y/z/a.yaml"}},
		{"mv out/y root/x/y", []string{"x/y", "x/y/z", "x/y/z/a.yaml"}},
		{"rm root/x/y/z/a.yaml", []string{"x/y/z/a.yaml"}},
		{"echo 2 >>out/f.yaml", []string{"f.yaml"}},
		{"ln -s ../out/z/f.yaml root/.f; mv root/.f root/f.yaml", []string{"f.yaml"}},
		{"echo 2 >>out/z/f.yaml", []string{"f.yaml", "z/f.yaml"}},
		{"echo 1 >root/nowhere", []string{"dangling", "nowhere"}},
		{kubelet(2) + "; rm -r root/..1", []string{"cm.yaml"}},
		{"echo 1 >out/extra", []string{"../out/extra"}},
		{"rm out/extra", []string{"../out/extra"}},
		{"echo 1 >root/.x.swp; echo 1 >root/x/a.yaml~; mkdir root/.h/x; chmod 640 root/x/a.yaml; touch -a root/x/a.yaml; touch root/x; echo 1 >out/other", nil},
		{"rm -r root/x/y; mkdir root/x/new", []string{"x/new", "x/y", "x/y/z"}},
	} {
		sh.Run(t, filepath.Dir(root), s.do)
		if s.want != nil {
			waitSignal(t, w)
		}
		end := filepath.Join(root, fmt.Sprint("zz.", i)) // sorted last, so that this path ends a look
		sh.Run(t, root, ": >"+end)
		var got []string
		for _, e := range log.until(t, counts(end)) {
			if p, err := filepath.Rel(root, e.path); err != nil || e.level != slog.LevelDebug {
				t.Errorf("%s: logged %+v", s.do, e)
			} else if !strings.HasPrefix(p, "zz.") {
				got = append(got, p)
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, s.want) {
			t.Errorf("%s: counted %q, want %q", s.do, got, s.want)
		}
		waitSignal(t, w)
	}
	// The root is moved away, and comes back.
	sh.Run(t, root, "mv ../root ../away")
	waitSignal(t, w)
	log.until(t, level(slog.LevelWarn))
	sh.Run(t, filepath.Dir(root), "mv away root")
	waitSignal(t, w)
	log.until(t, level(slog.LevelInfo))
}

// TestPollQuiet checks that polling sends no signal before two looks are equal, and none without a change.
func TestPollQuiet(t *testing.T) {
	root := t.TempDir()
	const quiet = 500 * time.Millisecond
	w, _ := newWatcher(t, root, Options{QuietPeriod: quiet, MaxDelay: time.Hour, Rescan: -1, Poll: time.Millisecond})
	run(t, w)
	calm := false // the test waited so long that the burst ended
	for i, at := 0, time.Now(); i < 5000; i, at = i+1, time.Now() {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprint(i%20, ".yaml")), []byte(fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
		calm = calm || time.Since(at) >= quiet
		if len(w.Signals()) > 0 && !calm {
			t.Fatal("a signal before the end of the burst")
		}
	}
	waitSignal(t, w)
}
