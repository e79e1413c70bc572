//go:build !light

package publish_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	snapshots "xdspub/render/history" // history is a type of these tests
	"xdspub/render/publish"
	"xdspub/tools/memdir"
	"xdspub/xds"
)

// recording is an action on a history. The test makes each of its system calls fail. A process that is killed at a
// call leaves what a process leaves whose calls all fail from there on (TestKill).
type recording struct {
	name    string
	before  []*xds.Snapshot // recorded before
	options snapshots.Options
	next    *xds.Snapshot // recorded under faults; nil for a note about the last entry
}

// sized returns a Snapshot of n clusters whose stat names make it large and different.
func sized(n int, stat string) *xds.Snapshot {
	var list []*xds.Resource
	for i := range n {
		name := fmt.Sprint("c", i)
		list = append(list, xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name}, &clusterv3.Cluster{Name: name, AltStatName: stat}))
	}
	return xds.NewSnapshot(list)
}

// recordings returns the actions: the first entry, an edit, a pruned entry, a sweep with a join, and a note.
func recordings() []recording {
	var swept []*xds.Snapshot
	for i := range 33 {
		swept = append(swept, sized(3, fmt.Sprint(i%9)))
	}
	return []recording{
		{"first", nil, snapshots.Options{Keep: 3}, sized(3, "a")},
		{"edit", []*xds.Snapshot{sized(3, "a"), sized(3, "b")}, snapshots.Options{Keep: 3}, sized(4, "b")},
		{"prune", []*xds.Snapshot{sized(3, "a"), sized(3, "b"), sized(3, "c")}, snapshots.Options{Keep: 3}, sized(4, "c")},
		{"sweep", swept, snapshots.Options{Keep: 2}, sized(5, "x")},
		{"full", []*xds.Snapshot{sized(40, "a"), sized(40, "b"), sized(40, "c")}, snapshots.Options{Keep: 9, Size: 12 << 10}, sized(40, "d")},
		{"note", []*xds.Snapshot{sized(3, "a")}, snapshots.Options{Keep: 3}, nil},
		{"second note", []*xds.Snapshot{sized(3, "a"), sized(3, "b"), sized(3, "a")}, snapshots.Options{Keep: 3}, nil},
	}
}

// found makes the directory that the action finds.
func (r recording) found(t *testing.T) (out string) {
	t.Helper()
	out = memdir.New(t)
	d, err := publish.OpenUnder(out, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o := r.options
	if r.name == "sweep" {
		o.Keep = 33 // so that the action retires many entries
	}
	s := snapshots.Open(d, o)
	for n, of := range r.before {
		if _, err := s.Record(entryAt(n, of), of); err != nil {
			t.Fatal(err)
		}
	}
	if r.name == "second note" {
		if err := s.Note(entries(t, out)[0].ID, snapshots.Acknowledged, ""); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func entryAt(n int, of *xds.Snapshot) snapshots.Entry {
	return snapshots.Entry{Time: time.Date(2026, 3, 4, 12, n, 0, 0, time.UTC), Snapshot: of.ID(), Outcome: snapshots.Unconfirmed}
}

// entries returns the entries of a history, which all have to be whole.
func entries(t *testing.T, out string) []snapshots.Item {
	t.Helper()
	h, err := snapshots.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, err := range h.Faults() {
		t.Error(err)
	}
	for _, i := range h.Items() {
		if _, err := h.Load(i.ID, nil); err != nil {
			t.Error(err)
		}
	}
	return h.Items()
}

// do executes the action.
func (r recording) do(d *publish.Dir, last string) error {
	s := snapshots.Open(d, r.options)
	if r.next == nil {
		return s.Note(last, snapshots.RolledBack, "")
	}
	_, err := s.Record(entryAt(59, r.next), r.next)
	return err
}

// disturbed executes the action with a fault at a call, if at is not 0. It returns the calls.
func (r recording) disturbed(t *testing.T, out string, at int, late, on bool) (calls []string) {
	t.Helper()
	var last string
	if list := entries(t, out); len(list) > 0 {
		last = list[0].ID
	}
	began := 0
	d, err := publish.OpenLate(out, late, func(n int, call string) error {
		if began == 0 {
			return nil
		}
		calls = append(calls, call)
		if n := len(calls); n == at || at > 0 && n > at && on {
			return syscall.ENOSPC
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	began = 1
	err = r.do(d, last)
	began = 0
	if (err != nil) != (at > 0) || err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	list := entries(t, out)
	if r.next != nil && at > 0 && len(list) > 0 && list[0].Snapshot != r.next.ID() && len(r.before) > 0 && list[0].Snapshot != r.before[len(r.before)-1].ID() {
		t.Errorf("the latest entry is %s", list[0].Snapshot)
	}
	if late || on { // as after a kill
		d.Close()
		if d, err = publish.OpenUnder(out, func(string) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	defer d.Close()
	if err := r.do(d, last); err != nil {
		t.Error(err)
	}
	r.checkEnd(t, out)
	return calls
}

// checkEnd checks the history after the action.
func (r recording) checkEnd(t *testing.T, out string) {
	t.Helper()
	list := entries(t, out)
	switch {
	case r.next == nil && list[0].Outcome() != snapshots.RolledBack:
		t.Errorf("outcome %s", list[0].Outcome())
	case r.next != nil && list[0].Snapshot != r.next.ID():
		t.Errorf("the latest entry is %s, want %s", list[0].Snapshot, r.next.ID())
	case len(list) > r.options.Keep:
		t.Errorf("%d entries", len(list))
	}
	left, err := os.ReadDir(filepath.Join(out, ".xdspub/stage"))
	if err != nil || len(left) > 0 {
		t.Errorf("the stage has %v, %v", left, err)
	}
	size := int64(0)
	names, err := os.ReadDir(filepath.Join(out, ".xdspub/history"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		info, err := f.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
		size += info.Size()
	}
	if r.options.Size > 0 && size > r.options.Size {
		t.Errorf("%d bytes", size)
	}
}

// TestRecordFaults makes each system call of each action on a history fail: without effect, after its effect, or with
// all later calls. Entries are whole or absent, and the next process completes the action.
func TestRecordFaults(t *testing.T) {
	for _, r := range recordings() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			found, dir := r.found(t), memdir.New(t)
			turn := 0
			fresh := func() string {
				turn++
				out := filepath.Join(dir, fmt.Sprint(turn))
				copyTree(t, found, out)
				return out
			}
			calls := r.disturbed(t, fresh(), 0, false, false)
			checkOrder(t, calls)
			if len(calls) < 5 || t.Failed() {
				t.Fatalf("calls: %s", strings.Join(calls, "\n"))
			}
			for at := range calls {
				for _, how := range [][2]bool{{false, false}, {true, false}, {false, true}} {
					out := fresh()
					r.disturbed(t, out, at+1, how[0], how[1])
					if t.Failed() {
						t.Fatalf("at call %d, %s; late %t, on %t", at+1, calls[at], how[0], how[1])
					}
					os.RemoveAll(out)
				}
			}
			t.Logf("%d calls", len(calls))
		})
	}
}

// copyTree copies a directory with its modes.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.Chmod(to+strings.TrimPrefix(name, from), info.Mode())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkOrder checks what a power loss may show: a file is flushed before it is renamed into place, and the name of a
// new file before other files are removed.
func checkOrder(t *testing.T, calls []string) {
	t.Helper()
	flushed, named := false, true
	for _, call := range calls {
		switch {
		case strings.HasPrefix(call, "create "):
			flushed = false
		case call == "sync .xdspub/history":
			named = true
		case strings.HasPrefix(call, "sync "):
			flushed = true
		case strings.HasPrefix(call, "rename .xdspub/stage"):
			if !flushed {
				t.Errorf("%s before the file is flushed", call)
			}
			named = !strings.Contains(call, ".objects")
		case strings.HasPrefix(call, "remove .xdspub/history/") && strings.HasSuffix(call, ".objects") && !named:
			t.Errorf("%s before the new file is durable", call)
		}
	}
}

// TestRecords checks names and places that no Record can have.
func TestRecords(t *testing.T) {
	out := t.TempDir()
	d, err := publish.Open(out, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := d.Records("history")
	for _, name := range []string{"", ".", "..", "a/b", "../manifest.json", "/etc/passwd"} {
		if err := errors.Join(r.Write(name, nil), r.Rename(name, "x"), r.Remove(name)); err == nil {
			t.Errorf("%q is written", name)
		}
	}
	if list, err := r.List(); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	// A link at the place of the folder or of a file leads nowhere.
	other := t.TempDir()
	if err := os.Symlink(other, filepath.Join(out, ".xdspub/history")); err != nil {
		t.Fatal(err)
	}
	if err := r.Write("a", []byte("x")); err == nil {
		t.Error("written through a link")
	}
	if list, err := os.ReadDir(other); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if err := os.Remove(filepath.Join(out, ".xdspub/history")); err != nil {
		t.Fatal(err)
	}
	if err := r.Write("a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	read, err := publish.OpenRecords(out, "history")
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if data, err := read.Read("a", 10); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
	if err := errors.Join(read.Write("b", nil)); err == nil {
		t.Error("written without the lock")
	}
	none, err := publish.OpenRecords(filepath.Join(out, "none"), "history")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := none.List(); err != nil || len(list) > 0 || none.Close() != nil {
		t.Errorf("%v, %v", list, err)
	}
	if !slices.Contains([]string{".xdspub/history/a"}, none.Path("a")) {
		t.Error(none.Path("a"))
	}
}
