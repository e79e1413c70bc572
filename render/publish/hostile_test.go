package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"xdspub/event"
	"xdspub/tools/memdir"
)

// outside is a folder beside the output directory that must not change.
type outside struct {
	dir    string
	before string
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{dir: filepath.Join(t.TempDir(), "outside")}
	err := errors.Join(os.Mkdir(o.dir, 0o700), os.WriteFile(o.at("eds.json"), []byte("not ours"), 0o600),
		os.Mkdir(o.at("api"), 0o700), os.WriteFile(o.at("lock"), []byte("not ours either"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	o.before = o.listing(t)
	return o
}

func (o *outside) at(name string) string { return filepath.Join(o.dir, name) }

// listing returns the names, modes, times and contents of the files in the folder.
func (o *outside) listing(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(o.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, _ := os.ReadFile(name)
		fmt.Fprintf(&b, "%s %v %v %q\n", name, info.Mode(), info.ModTime(), data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func (o *outside) check(t *testing.T) {
	t.Helper()
	if is := o.listing(t); is != o.before {
		t.Errorf("outside is\n%s\nand was\n%s", is, o.before)
	}
}

// replace replaces the file name in out, which may be missing, by a link to target.
func replace(out, name, target string) error {
	at := filepath.Join(out, name)
	return errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(target, at))
}

// TestLinksInOut puts links into the output directory, which lead out of it or to another place in it. Publish
// follows none of them: its error names the link, and publishing works when the link is removed.
func TestLinksInOut(t *testing.T) {
	for _, name := range []string{"eds", "eds/api", "sds", "lds", private, stagePath, undoPath, lockPath} {
		for _, inside := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inside %t", name, inside), func(t *testing.T) {
				o, out := newOutside(t), filepath.Join(t.TempDir(), "out")
				publishOnce(t, out, oldPlan())
				target := o.dir
				switch {
				case inside && name == lockPath:
					target = "../cds/cds.json"
				case inside:
					target = filepath.Join(out, "cds")
				case name == lockPath:
					target = o.at("lock")
				}
				if err := replace(out, name, target); err != nil {
					t.Fatal(err)
				}
				before := published(t, out)
				d, err := open(out, Options{maxChanged: 1}, &probe{root: out, quick: true})
				if err == nil {
					_, err = d.Publish(t.Context(), newPlan())
					d.Close()
				}
				want := filepath.Join(out, name) + ": a symbolic link"
				if !errors.Is(err, errLink) || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				o.check(t)
				if name != private { // otherwise there is no record
					if after := published(t, out); !slices.Equal(keys(after), keys(before)) {
						t.Errorf("published %v, and before %v", after, before)
					}
				}
				// The remedy of the error works.
				if err := os.Remove(filepath.Join(out, name)); err != nil {
					t.Fatal(err)
				}
				publishOnce(t, out, newPlan())
				checkPublished(t, out, newFiles)
				o.check(t)
			})
		}
	}
}

func keys(m map[string]string) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// TestLinkedFiles replaces a published file and the records by links to a file outside. The published file
// counts as drifted and unreadable, and the next publish replaces the link. A record counts as damaged. Nothing
// outside is read or written.
func TestLinkedFiles(t *testing.T) {
	o, out := newOutside(t), filepath.Join(t.TempDir(), "out")
	publishOnce(t, out, oldPlan())
	if err := replace(out, "eds/web/eds.json", o.at("eds.json")); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	if drift, err := m.Drifted(out); err != nil || !slices.Equal(drift, []string{"eds/web/eds.json"}) {
		t.Errorf("drifted %v, %v", drift, err)
	}
	if _, err := ReadFile(out, "eds/web/eds.json"); !Unreadable(err) {
		t.Errorf("ReadFile: %v", err)
	}
	publishOnce(t, out, oldPlan())
	checkPublished(t, out, oldFiles)
	for _, name := range []string{manifestPath, refusedPath, intentPath} {
		if err := replace(out, name, o.at("eds.json")); err != nil {
			t.Fatal(err)
		}
		_, merr := ReadManifest(out)
		_, rerr := ReadRefused(out)
		_, ierr := ReadIntent(out)
		want := "read " + filepath.Join(out, name) + ": damaged: not a regular file"
		if err := errors.Join(merr, rerr, ierr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	o.check(t)
}

// TestSwapped swaps a folder for a link before each call in turn. No call follows the link, even if an earlier
// call has looked at the folder.
func TestSwapped(t *testing.T) {
	w := scenario{before: []func(string) error{done(oldPlan())}}.found(t)
	for _, name := range []string{"eds", "eds/api", "cds", private, stagePath} {
		for _, inside := range []bool{false, true} {
			o, dir := newOutside(t), memdir.New(t)
			for at, last := 1, false; !last; at++ {
				if testing.Short() && at%5 != 0 {
					last = at > 100
					continue
				}
				out := filepath.Join(dir, fmt.Sprint(strings.ReplaceAll(name, "/", "-"), inside, at))
				w.at(t, out)
				target := o.dir
				if inside {
					target = filepath.Join(out, "lds")
				}
				p := &probe{root: out, quick: true}
				swapped := false
				p.fault = func(n int, _ string) error {
					if folder := filepath.Join(out, name); n == at {
						if _, err := os.Lstat(folder); err == nil {
							swapped = true
							return errors.Join(os.Rename(folder, filepath.Join(out, "away")), os.Symlink(target, folder))
						}
					}
					return nil
				}
				d, err := open(out, Options{maxChanged: 1}, p)
				if err == nil {
					_, err = d.Publish(t.Context(), newPlan())
					d.Close()
				}
				o.check(t)
				if inside {
					for file := range published(t, filepath.Join(out, "lds")) {
						if file != "lds.json" {
							t.Errorf("%s is in another folder", file)
						}
					}
				}
				if t.Failed() {
					t.Fatalf("%s swapped before call %d, %v: %v", name, at, p.calls[len(p.calls)-1], err)
				}
				last = !swapped && len(p.calls) < at
			}
		}
	}
}

// TestNoFiles replaces records, a published file and the lock by huge files, deeply nested JSON, pipes and
// sockets. Reading such a record is an error with a remedy. Publishing replaces such a published file.
func TestNoFiles(t *testing.T) {
	huge := func(name string) error {
		return errors.Join(os.WriteFile(name, []byte(`{"layout": 1, "going": [`), 0o600), os.Truncate(name, 10<<30))
	}
	deep := func(name string) error {
		return os.WriteFile(name, []byte(`{"layout": 1, "x": `+strings.Repeat("[", 10<<20)), 0o600)
	}
	pipe := func(name string) error { return syscall.Mkfifo(name, 0o644) }
	dir := t.TempDir()
	socket := func(name string) error {
		short := filepath.Join(dir, "s") // the path of a socket is limited to about a hundred bytes
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		return errors.Join(l.Close(), os.Rename(short, name))
	}
	for _, tt := range []struct {
		kind string
		make func(name string) error
	}{{"huge", huge}, {"deep", deep}, {"pipe", pipe}, {"socket", socket}} {
		t.Run(tt.kind, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			publishOnce(t, out, oldPlan())
			for _, name := range []string{manifestPath, intentPath, refusedPath} {
				at := filepath.Join(out, name)
				was, _ := os.ReadFile(at)
				if err := instead(tt.make)(at); err != nil {
					t.Fatal(err)
				}
				_, merr := ReadManifest(out)
				_, rerr := ReadRefused(out)
				_, ierr := ReadIntent(out)
				want := "read " + at + ": damaged: "
				if err := errors.Join(merr, rerr, ierr); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "(remove the file") {
					t.Errorf("%s: %v", name, err)
				}
				if err := os.Remove(at); err != nil {
					t.Fatal(err)
				}
				if was != nil {
					if err := os.WriteFile(at, was, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			m, err := ReadManifest(out)
			if err != nil {
				t.Fatal(err)
			}
			if err := instead(tt.make)(filepath.Join(out, "cds/cds.json")); err != nil {
				t.Fatal(err)
			}
			if drift, err := m.Drifted(out); err != nil || !slices.Equal(drift, []string{"cds/cds.json"}) {
				t.Errorf("drifted %v, %v", drift, err)
			}
			publishOnce(t, out, newPlan())
			checkPublished(t, out, newFiles)
			lock := filepath.Join(out, lockPath)
			if err := instead(tt.make)(lock); err != nil {
				t.Fatal(err)
			}
			d, err := Open(out, Options{})
			if err == nil {
				d.Close() // a lock file may hold anything
			} else if !strings.Contains(err.Error(), lock) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// TestHardLinkedLock makes the lock file a hard link to another file. The lock works, and nothing is written
// into the file.
func TestHardLinkedLock(t *testing.T) {
	o, out := newOutside(t), filepath.Join(t.TempDir(), "out")
	publishOnce(t, out, oldPlan())
	lock := filepath.Join(out, lockPath)
	if err := errors.Join(os.Remove(lock), os.Link(o.at("lock"), lock)); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, out, osDisk{})
	if _, err := Open(out, Options{}); err == nil {
		t.Error("locked twice")
	}
	mustPublish(t, d, newPlan())
	o.check(t)
	checkPublished(t, out, newFiles)
}

// TestRecordsLeadNowhere checks that a record is damaged if it names a file where xdspub publishes none, such
// as a file outside of the output directory.
func TestRecordsLeadNowhere(t *testing.T) {
	for _, name := range []string{"../outside/eds.json", "/etc/passwd", ".xdspub/lock", "eds/../../x", "eds//x", "x"} {
		for file, record := range map[string]string{
			manifestPath: `{"layout": 1, "files": {%q: {"sum": "x"}}}`,
			intentPath:   `{"layout": 1, "direction": "back", "steps": [{"files": [{"path": %q}]}]}`,
		} {
			out := t.TempDir()
			if err := errors.Join(os.Mkdir(filepath.Join(out, private), 0o700), os.WriteFile(filepath.Join(out, file), fmt.Appendf(nil, record, name), 0o600)); err != nil {
				t.Fatal(err)
			}
			_, merr := ReadManifest(out)
			_, ierr := ReadIntent(out)
			if err := errors.Join(merr, ierr); err == nil || !strings.Contains(err.Error(), file+": damaged: ") {
				t.Errorf("%s names %s: %v", file, name, err)
			}
			if _, err := ReadFile(out, name); err == nil {
				t.Errorf("%s was read", name)
			}
			going := Manifest{Retired: []Retired{{File: name}}}
			if going.check() == nil {
				t.Errorf("%s may go", name)
			}
		}
	}
}

// TestLeavings puts foreign files and folders into .xdspub.
func TestLeavings(t *testing.T) {
	o, out := newOutside(t), filepath.Join(t.TempDir(), "out")
	publishOnce(t, out, oldPlan())
	var log strings.Builder
	for _, folder := range []string{stagePath, undoPath} {
		at := func(name string) string { return filepath.Join(out, folder, name) }
		if err := errors.Join(
			os.MkdirAll(at("0001/a/b"), 0o700), os.WriteFile(at("0001/a/b/c"), nil, 0o600), os.WriteFile(at("0001/d"), nil, 0o600),
			os.Symlink(o.dir, at("0001/a/link")), os.Symlink(o.dir, at("0002")), syscall.Mkfifo(at("0003"), 0o600),
			os.Link(o.at("eds.json"), at("0004")), os.Mkdir(at("record"), 0o700), os.WriteFile(at("record/x"), nil, 0o600),
		); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(out, Options{Log: event.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range []string{stagePath + "/0001", stagePath + "/record", undoPath + "/0001"} {
		if !strings.Contains(log.String(), filepath.Join(out, name)) {
			t.Errorf("the log does not tell of %s:\n%s", name, log.String())
		}
	}
	mustPublish(t, d, newPlan())
	checkPublished(t, out, newFiles)
	checkPrivate(t, out)
	for _, name := range []string{"eds.json", "lock", "api"} {
		if _, err := os.Lstat(o.at(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestStuck puts folders into .xdspub that can't be removed, because they are too deep or the system refuses.
// Publish uses other names, and logs each folder once.
func TestStuck(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	publishOnce(t, out, oldPlan())
	deep := strings.Repeat("d/", maxDepth+2)
	for _, name := range []string{"0001", "0003", "record"} {
		if err := os.MkdirAll(filepath.Join(out, stagePath, name, deep), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	p := &probe{root: out, quick: true, fault: func(_ int, call string) error {
		if call == "remove .xdspub/stage/0003" {
			return syscall.EPERM
		}
		return nil
	}}
	d, err := open(out, Options{Log: event.New(slog.NewTextHandler(&log, nil))}, p)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	mustPublish(t, d, newPlan())
	checkPublished(t, out, newFiles)
	if err := d.refused(Refusal{Snapshot: "s3"}, true); err != nil {
		t.Fatal(err)
	}
	if r, err := ReadRefused(out); err != nil || r.Holds("s3", "d3") == nil {
		t.Errorf("refused %+v, %v", r, err)
	}
	if n := strings.Count(log.String(), "event=leftover-stays "); n != 3 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	left, err := os.ReadDir(filepath.Join(out, stagePath))
	if err != nil || len(left) != 3 {
		t.Errorf("the stage holds %v, %v", left, err)
	}
	// Somebody removes the folders.
	for _, e := range left {
		if err := os.RemoveAll(filepath.Join(out, stagePath, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	mustPublish(t, d, oldPlan())
	checkPrivate(t, out)
}
