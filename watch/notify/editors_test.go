package notify

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// litter reports whether a name is hidden, or is a file that editors leave beside a file.
func litter(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".vsctmp") || name == "4913"
}

// workbench is a folder that an editor works in, call by call.
type workbench struct {
	t   *testing.T
	dir string
}

func (d workbench) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d workbench) path(name string) string { return filepath.Join(d.dir, name) }

func (d workbench) write(name string, flags int, texts ...string) {
	d.t.Helper()
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|flags, 0o644)
	d.must(err)
	for _, text := range texts {
		_, err := f.WriteString(text)
		d.must(err)
	}
	d.must(f.Close())
}

func (d workbench) create(name string)          { d.write(name, os.O_CREATE|os.O_EXCL, "litter") }
func (d workbench) rename(from, to string)      { d.must(os.Rename(d.path(from), d.path(to))) }
func (d workbench) remove(name string)          { d.must(os.Remove(d.path(name))) }
func (d workbench) symlink(target, name string) { d.must(os.Symlink(target, d.path(name))) }
func (d workbench) chmod(name string)           { d.must(os.Chmod(d.path(name), 0o644)) }
func (d workbench) truncate(name string)        { d.must(os.Truncate(d.path(name), 0)) }

func (d workbench) run(name string, args ...string) {
	d.t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		d.t.Skip("NOT TESTED, not installed: ", name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = d.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// TestEditors replays the system calls of editors, as recorded by strace. Each session gives one signal, at
// the end of the save. Opening and closing a file gives no signal.
func TestEditors(t *testing.T) {
	const trunc, creat, excl = os.O_TRUNC, os.O_CREATE, os.O_EXCL
	none := func(workbench) {}
	vimOpens := func(d workbench) {
		d.create(".a.yaml.swp")
		d.create(".a.yaml.swx")
		d.remove(".a.yaml.swx")
		d.remove(".a.yaml.swp")
		d.create(".a.yaml.swp")
		d.chmod(".a.yaml.swp")
		d.write(".a.yaml.swp", 0, "typed")
	}
	vimCloses := func(d workbench) { d.remove(".a.yaml.swp") }
	emacsOpens := func(d workbench) {
		d.symlink("me@host.4711:1700000000", ".#a.yaml")
		d.write("#a.yaml#", creat|trunc, "typed")
	}
	emacsCloses := func(d workbench) { d.remove(".#a.yaml"); d.remove("#a.yaml#") }
	vim := func(options string) func(workbench) {
		return func(d workbench) {
			d.run("vim", "-Nu", "NONE", "-i", "NONE", "-es", "-c", "set swapfile directory=. backupskip= "+options, "-c", "%s/.*/saved/", "-c", "wq", "a.yaml")
		}
	}
	tests := []struct {
		name                string
		opens, save, closes func(workbench)
	}{
		{"vim", vimOpens, func(d workbench) {
			d.create("4913")
			d.remove("4913")
			d.rename("a.yaml", "a.yaml~")
			d.write("a.yaml", creat, "saved\n")
			d.chmod("a.yaml")
			d.remove("a.yaml~")
		}, vimCloses},
		{"vim, set backup", vimOpens, func(d workbench) {
			d.rename("a.yaml", "a.yaml~")
			d.write("a.yaml", creat, "saved\n")
		}, vimCloses},
		{"vim, set backupcopy=yes", vimOpens, func(d workbench) {
			d.write("a.yaml~", creat|excl, "old\n")
			d.write("a.yaml", creat|trunc, "saved\n")
			d.remove("a.yaml~")
		}, vimCloses},
		{"emacs, first save", emacsOpens, func(d workbench) {
			d.rename("a.yaml", "a.yaml~")
			d.write("a.yaml", creat|trunc, "saved\n")
			d.chmod("a.yaml")
		}, emacsCloses},
		{"emacs, later saves", emacsOpens, func(d workbench) {
			d.write("a.yaml", creat|trunc, "saved\n")
		}, emacsCloses},
		{"nano", func(d workbench) { d.create(".a.yaml.swp") }, func(d workbench) {
			d.write("a.yaml", creat|trunc, "saved\n")
		}, func(d workbench) { d.remove(".a.yaml.swp") }},
		{"nano, set backup", none, func(d workbench) {
			d.write("a.yaml~", creat|excl, "old\n")
			d.write("a.yaml", creat|trunc, "saved\n")
		}, none},
		{"VS Code", none, func(d workbench) {
			d.truncate("a.yaml")
			d.write("a.yaml", 0, "sav", "ed\n")
		}, none},
		{"VS Code, atomic", none, func(d workbench) {
			d.write("a.yaml.vsctmp", creat|trunc, "saved\n")
			d.rename("a.yaml.vsctmp", "a.yaml")
		}, none},
		{"real vim", none, vim("backup backupcopy=no"), none},
		{"real vim, writebackup", none, vim("nobackup writebackup backupcopy=auto"), none},
		{"real vim, backupcopy=yes", none, vim("backupcopy=yes"), none},
		{"real emacs", none, func(d workbench) {
			d.run("emacs", "-Q", "--batch", "--eval", `(progn (setq create-lockfiles t make-backup-files t backup-enable-predicate (lambda (_) t))
				(find-file "a.yaml") (auto-save-mode 1) (erase-buffer) (insert "saved\n") (do-auto-save) (save-buffer))`)
		}, none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // the tests mostly wait
			d := workbench{t, t.TempDir()}
			d.write("a.yaml", creat, "old\n")
			w, log := newWatcher(t, d.dir, Options{QuietPeriod: 300 * time.Millisecond, Rescan: -1, Skip: litter})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { w.Run(ctx) })
			defer running.Wait()
			defer cancel()

			tt.opens(d)
			tt.save(d)
			waitSignal(t, w)
			if text, err := os.ReadFile(d.path("a.yaml")); string(text) != "saved\n" {
				t.Errorf("at the signal the file holds %q, %v", text, err)
			}
			tt.closes(d)
			// The test waits for the signal of another file, to see that no signal came before.
			d.write("b.yaml", creat, "new\n")
			var counted []string
			for _, e := range log.until(t, counts(d.path("b.yaml"))) {
				counted = append(counted, filepath.Base(e.path))
			}
			if counted = slices.Compact(counted); !slices.Equal(counted, []string{"a.yaml", "b.yaml"}) {
				t.Errorf("counted: %q", counted)
			}
			waitSignal(t, w)
			cancel()
			for r := range w.Signals() {
				t.Errorf("a needless signal: %s", r)
			}
		})
	}
}
