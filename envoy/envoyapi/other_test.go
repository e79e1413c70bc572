package envoyapi_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/follow"
	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// TestOther: only the folder decides what a version accepts. For each example of testdata/other.txtar, a version
// with one other file accepts what the latest refuses, or refuses what the latest accepts.
func TestOther(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/other.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for len(archive.Files) > 0 {
		change, example := archive.Files[0], archive.Files[1]
		archive.Files = archive.Files[2:]
		t.Run(change.Name+"/"+firstLine(change), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), example.Name)
			if err := os.WriteFile(file, example.Data, 0o644); err != nil {
				t.Fatal(err)
			}
			latest, other := judge(t, file, envoyapi.Latest), judge(t, file, changed(t, change))
			wantLatest, wantOther := wants(t, example, "latest"), wants(t, example, "other")
			if !holds(latest, wantLatest) {
				t.Errorf("Envoy %s: got %q, want %q", envoyapi.Latest.Name, latest, wantLatest)
			}
			if !holds(other, wantOther) {
				t.Errorf("the other Envoy: got %q, want %q", other, wantOther)
			}
		})
	}
}

func firstLine(f txtar.File) string {
	line, _, _ := strings.Cut(string(f.Data), "\n")
	return line
}

// changed returns the latest version with changes of one file: a line after + is added, and a line after - is
// removed.
func changed(t *testing.T, change txtar.File) *envoyapi.Version {
	t.Helper()
	folder := make(fstest.MapFS)
	latest := os.DirFS("v" + envoyapi.Latest.Name)
	names, err := fs.Glob(latest, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(latest, name)
		if err != nil {
			t.Fatal(err)
		}
		folder[name] = &fstest.MapFile{Data: data}
	}
	text := folder[change.Name]
	for line := range strings.Lines(string(change.Data)) {
		switch {
		case strings.HasPrefix(line, "+"):
			text.Data = append(text.Data, line[1:]...)
		case strings.Contains(string(text.Data), "\n"+line[1:]):
			text.Data = []byte(strings.Replace(string(text.Data), "\n"+line[1:], "\n", 1))
		default:
			t.Fatalf("%s has no line %q", change.Name, line[1:])
		}
	}
	return envoyapi.New("9.9.9", folder)
}

// judge returns the findings of a file of resources or of a bootstrap for a version, one on each line.
func judge(t *testing.T, file string, v *envoyapi.Version) (lines []string) {
	t.Helper()
	var list diag.List
	o := validate.Options{Envoy: v}
	if filepath.Base(file) == "boot.yaml" {
		followed, err := follow.Bootstrap(context.Background(), file, follow.Options{Envoy: v})
		if err != nil {
			t.Fatal(err)
		}
		o.BootstrapFacts, o.Bootstrap = followed.BootstrapFacts, followed.Bootstrap
		list = append(followed.Diagnostics, validate.Run(context.Background(), followed.Snapshot, rules.All, o)...)
	} else {
		loaded, err := load.New(load.Options{Envoy: v}).Load(context.Background(), filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		list = append(loaded.Diagnostics, validate.Run(context.Background(), loaded.Snapshot(), rules.All, o)...)
	}
	for _, d := range list {
		lines = append(lines, d.Severity.String()+" "+diag.CodeOf(d.Code)+": "+d.Message+"; "+d.Help)
	}
	return lines
}

// wants returns the expected findings in the comments of an example that begin with who.
func wants(t *testing.T, example txtar.File, who string) (list []string) {
	t.Helper()
	for line := range strings.Lines(string(example.Data)) {
		if want, ok := strings.CutPrefix(line, "# "+who+": "); ok {
			list = append(list, strings.TrimSpace(want))
		}
	}
	return list
}

// holds reports whether each line contains the wanted text of the same index.
func holds(lines, wanted []string) bool {
	return slices.EqualFunc(lines, wanted, strings.Contains)
}
