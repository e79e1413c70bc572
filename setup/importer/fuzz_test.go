package importer

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"xdspub/source/load"
)

// FuzzImport: an import of any text ends. Its files are below one folder, and their names differ even without
// regard to case.
func FuzzImport(f *testing.F) {
	cases, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data, strings.HasSuffix(archive.Files[0].Name, ".json"))
	}
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		in := load.Input{Name: "envoy.yaml", Format: "yaml", Data: data}
		if isJSON {
			in.Format = "json"
		}
		wellNamed(t, Import(in, Options{}))
		wellNamed(t, Dump(in, Options{}))
	})
}

func wellNamed(t *testing.T, imported *Imported) {
	t.Helper()
	if imported.Diagnostics.HasErrors() != (len(imported.Files) == 0) {
		t.Errorf("%d files with %v", len(imported.Files), imported.Diagnostics)
	}
	seen := make(map[string]bool)
	for _, file := range imported.Files {
		lower := strings.ToLower(file.Name)
		if !filepath.IsLocal(file.Name) || seen[lower] || len(filepath.Base(file.Name)) > 255 || !load.HoldsResources(file.Name) {
			t.Errorf("a file is called %q", file.Name)
		}
		seen[lower] = true
	}
}
