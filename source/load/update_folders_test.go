package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpdateOfFolders checks that, after a folder is added, removed or renamed, Update reads the files in the
// folder and no others.
func TestUpdateOfFolders(t *testing.T) {
	cluster := func(name string) string {
		return "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: " + name + "\n"
	}
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o644))
	}
	write("a.yaml", cluster("a"))
	l := New(Options{})
	if _, err := l.Load(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	write("a.yaml", cluster("unseen")) // Update does not get its path
	for _, step := range []struct {
		name    string
		edit    func()
		changed []string
		want    string
	}{
		{"a folder", func() { write("b/b.yaml", cluster("b")) }, []string{"b"}, "a b"},
		{"a folder and its file", func() { write("c/c.yaml", cluster("c")) }, []string{"c", "c/c.yaml"}, "a b c"},
		{"an empty folder", func() { must(t, os.Mkdir(filepath.Join(root, "d"), 0o755)) }, []string{"d"}, "a b c"},
		{"a file in it", func() { write("d/d.yaml", cluster("d")) }, []string{"d/d.yaml"}, "a b c d"},
		{"folders in folders", func() { write("d/e/f/e.yaml", cluster("e")) }, []string{"d/e"}, "a b c d e"},
		{"another name", func() { must(t, os.Rename(filepath.Join(root, "d"), filepath.Join(root, "g"))) }, []string{"d", "g"}, "a b c d e"},
		{"into a folder", func() { must(t, os.Rename(filepath.Join(root, "g/e"), filepath.Join(root, "b/e"))) }, []string{"b/e", "g/e"}, "a b c d e"},
		{"it goes", func() { must(t, os.RemoveAll(filepath.Join(root, "b"))) }, []string{"b"}, "a c d"},
		{"its files and it go", func() { must(t, os.RemoveAll(filepath.Join(root, "c"))) }, []string{"c", "c/c.yaml"}, "a d"},
		{"out of the tree", func() { must(t, os.Rename(filepath.Join(root, "g"), filepath.Join(t.TempDir(), "g"))) }, []string{"g"}, "a"},
		{"a file in its place", func() { write("g.yaml", cluster("g")) }, []string{"g", "g.yaml"}, "a g"},
	} {
		step.edit()
		var changed []string
		for _, name := range step.changed {
			changed = append(changed, filepath.Join(root, name))
		}
		r, err := l.Update(t.Context(), root, changed)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, res := range r.Snapshot().All() {
			names = append(names, res.Name)
		}
		if got := strings.Join(names, " "); got != step.want {
			t.Errorf("%s: there are %s, want %s", step.name, got, step.want)
		}
	}
}
