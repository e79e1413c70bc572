package load_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/xds"
)

// TestMistakes has a mistake that people make in each testdata/mistakes/*.txtar, which is called
// by it, in the formats that it can be made in, and what is said of it: where the person must
// change something, in one sentence, and in the help what to write. In an archive stand
//
//   - tree/: files of a source tree
//   - boot/: bootstraps, each judged by itself
//   - envoy/: files that an Envoy subscribes to for clusters
//   - want: the findings, as they are printed
func TestMistakes(t *testing.T) {
	archives, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(archives) < 100 {
		t.Fatalf("%d mistakes: %v", len(archives), err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { testMistake(t, path) })
	}
}

func testMistake(t *testing.T, path string) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var results []*load.Result
	add := func(result *load.Result, err error) {
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
	}
	files := archive.Files[:0:0]
	for _, f := range archive.Files {
		if f.Name != "want" {
			files = append(files, f)
			writeFile(t, dir, f)
		}
	}
	for _, f := range files {
		at := filepath.Join(dir, f.Name)
		switch kind, _, _ := strings.Cut(f.Name, "/"); kind {
		case "boot":
			_, result, err := load.BootstrapResources(at, nil, nil)
			add(result, err)
		case "envoy":
			add(load.Subscribed(at, xds.Cluster, nil, nil))
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tree")); err == nil {
		add(load.New(load.Options{}).Load(t.Context(), filepath.Join(dir, "tree")))
	}
	var want bytes.Buffer
	reported := make(map[string]bool)
	for _, result := range results {
		inside(t, result)
		if err := diag.WriteText(&want, result.Diagnostics, diag.TextOptions{Line: result.Line}); err != nil {
			t.Fatal(err)
		}
		for _, f := range result.Diagnostics {
			reported[f.File] = true
			if f.Help == "" {
				t.Errorf("%v\nhas no help", f)
			}
			if word := jargon.FindString(f.Message + " " + f.Help); word != "" {
				t.Errorf("%v\nhelp: %s\nspeaks of a %q, which is a word of those who write parsers", f, f.Help, word)
			}
		}
	}
	for _, f := range files {
		if !reported[filepath.Join(dir, f.Name)] {
			t.Errorf("nothing is said of %s", f.Name)
		}
	}
	archive.Files = append(files, txtar.File{Name: "want", Data: bytes.ReplaceAll(want.Bytes(), []byte(dir+"/"), nil)})
	got := txtar.Format(archive)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, old) {
		t.Errorf("%s (-want +got):\n%s", path, cmp.Diff(string(old), string(got)))
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// jargon matches words of parsers and of the implementation of protobuf, which no message may have.
var jargon = regexp.MustCompile(`(?i)\b(?:token|scalar|node|EOF|flow|did not find|indicator|uint32|int64|protojson|unmarshal|oneof)\b`)
