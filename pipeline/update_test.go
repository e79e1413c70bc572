package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"xdspub/xds"
)

// TestUpdate: a file that Update is told of is read, also where the call before did not come
// to the source tree.
func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "link")
	s := newFixture(t, func(o *Options) { o.Out = filepath.Join(out, "out") })
	s.tree(`
-- a.yaml --
{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a}
`)
	turn := func(to string) {
		t.Helper()
		_ = os.Remove(out)
		if err := os.Symlink(to, out); err != nil {
			t.Fatal(err)
		}
	}
	update := func(changed ...string) *Checked {
		t.Helper()
		checked, err := s.p.Update(t.Context(), changed)
		if err != nil {
			t.Fatal(err)
		}
		return checked
	}
	names := func(c *Checked) (names []string) {
		for _, r := range c.Snapshot.Of(xds.Cluster) {
			names = append(names, r.Name)
		}
		return names
	}
	path := filepath.Join(s.src, "a.yaml")
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: `+name+`}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	turn(dir)
	if got := names(update()); len(got) != 1 || got[0] != "a" {
		t.Fatal(got)
	}
	write("b")
	if got := names(update(path)); len(got) != 1 || got[0] != "b" {
		t.Errorf("after the edit: %q", got)
	}
	write("c")
	turn(s.src)
	if c := update(path); c.Accepted() {
		t.Error("the output directory lies in the source tree")
	}
	turn(dir)
	if got := names(update()); len(got) != 1 || got[0] != "c" {
		t.Errorf("after an edit that was not read: %q", got)
	}
}
