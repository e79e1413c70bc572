package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/check"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
	"xdspub/xds"
)

// TestUpdate: Update reads a changed file even if the call before did not read the source tree.
func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "link")
	s := fixture.New(t, func(o *pipeline.Options) { o.Out = filepath.Join(out, "out") })
	s.Tree(`
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
	update := func(changed ...string) *check.Result {
		t.Helper()
		checked, err := s.Checked.Update(t.Context(), changed)
		if err != nil {
			t.Fatal(err)
		}
		return checked
	}
	names := func(c *check.Result) (names []string) {
		for _, r := range c.Snapshot.Of(xds.Cluster) {
			names = append(names, r.Name)
		}
		return names
	}
	path := filepath.Join(s.Src, "a.yaml")
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
	turn(s.Src)
	if c := update(path); c.Accepted() {
		t.Error("the output directory lies in the source tree")
	}
	turn(dir)
	if got := names(update()); len(got) != 1 || got[0] != "c" {
		t.Errorf("after an edit that was not read: %q", got)
	}
}

func TestRefused(t *testing.T) {
	s := fixture.New(t, nil)
	for _, test := range []struct {
		name, out, want string
		allowEmpty      bool
	}{
		{name: "an empty tree", out: "out", want: "empty-tree"},
		{name: "an empty tree that is meant", out: "out", allowEmpty: true},
		{name: "output inside", out: "src/out", want: "output-in-source"},
		{name: "source inside", out: ".", want: "output-in-source"},
		{name: "output is the source", out: "src", want: "output-in-source"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.Tree("-- README.md --\nno resource\n")
			o := s.Options.Source
			o.AllowEmpty = test.allowEmpty
			tree := check.New(o)
			tree.KeepApart(filepath.Join(filepath.Dir(s.Src), test.out))
			checked, err := tree.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(checked.Diagnostics) > 0 {
				got = checked.Diagnostics[0].Code
			}
			if got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// TestOnce: Once finds the same as the first Check of a Tree, which also records lookups.
func TestOnce(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(`
-- a.yaml --
{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
-- b.yaml --
{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: b}
`)
	o := check.Options{Path: s.Src}
	want, err := check.New(o).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := check.Once(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Diagnostics) == 0 {
		t.Error("nothing was found")
	}
	if diff := cmp.Diff(want.Diagnostics, got.Diagnostics); diff != "" {
		t.Errorf("Once, after Check:\n%s", diff)
	}
	if got.Summary != want.Summary {
		t.Errorf("the summary is %v, want %v", got.Summary, want.Summary)
	}
}
