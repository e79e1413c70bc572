package importer

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"xdspub/source/load"
	"xdspub/tools/memdir"
	"xdspub/xds"
)

// TestCases imports the cases of package agreement, each as a bootstrap with static resources. The source tree must
// have the same resources.
func TestCases(t *testing.T) {
	names, err := filepath.Glob("../../tools/agreement/testdata/cases/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	seen := make(map[string]bool)
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for side, text := range asStatic(archive) {
			if !seen[string(text)] {
				seen[string(text)] = true
				t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar")+"/"+side, func(t *testing.T) { importsWhole(t, text) })
			}
		}
	}
	if len(seen) < 200 {
		t.Errorf("only %d bootstraps", len(seen))
	}
}

// asStatic returns the clusters and listeners of each tree of a case as a bootstrap. It leaves out files that are
// not YAML.
func asStatic(archive *txtar.Archive) map[string][]byte {
	sides := make(map[string]map[string][]any)
	for _, f := range archive.Files {
		side, file, _ := strings.Cut(f.Name, "/")
		list := map[string]string{"cds.yaml": "clusters", "lds.yaml": "listeners"}[file]
		var response struct{ Resources []map[string]any }
		if list == "" || yaml.Unmarshal(f.Data, &response) != nil {
			continue
		}
		if sides[side] == nil {
			sides[side] = make(map[string][]any)
		}
		for _, r := range response.Resources {
			delete(r, "@type")
			sides[side][list] = append(sides[side][list], r)
		}
	}
	texts := make(map[string][]byte)
	for side, lists := range sides {
		if text, err := yaml.Marshal(map[string]any{"node": map[string]any{"id": "n", "cluster": "c"}, "static_resources": lists}); err == nil {
			texts[side] = text
		}
	}
	return texts
}

// importsWhole imports a bootstrap, and compares it with the source tree and the bootstrap that the import makes.
func importsWhole(t *testing.T, text []byte) {
	in := load.Input{Name: "envoy.yaml", Format: "yaml", Data: text}
	before, read := load.ParseBootstrap(in)
	imported := Static(in, Options{Root: "/srv"})
	wellNamed(t, imported)
	if before == nil || read.Diagnostics.HasErrors() {
		return
	}
	if imported.Diagnostics.HasErrors() {
		t.Fatalf("%v\n%s", imported.Diagnostics, text)
	}
	dir := filepath.Join(memdir.New(t), "import")
	if err := Write(dir, imported.Files, 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := load.New(load.Options{}).Load(t.Context(), filepath.Join(dir, Tree))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, err := load.BootstrapResources(filepath.Join(dir, imported.Bootstrap), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, want := canonical(t, append(tree.Resources(), rest.Resources()...)), canonical(t, read.Resources())
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Fatalf("imported %v of %v\n%v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), imported.Diagnostics)
	}
	for key := range want {
		if !bytes.Equal(got[key], want[key]) && !changed(imported) {
			t.Errorf("%s is another one\n%s", key, text)
		}
	}
}

// changed reports whether a finding reports a difference from the configuration.
func changed(imported *Imported) bool {
	for _, d := range imported.Diagnostics {
		if d.Code == codeChange.Name {
			return true
		}
	}
	return false
}

// canonical returns the canonical forms of resources, by their keys.
func canonical(t *testing.T, resources []*xds.Resource) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, r := range resources {
		text, err := r.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		key := r.Key.String()
		if r.Name == "" && r.Type == xds.Listener {
			key = `listener "listener_0"`
		}
		all[key] = text
	}
	return all
}
