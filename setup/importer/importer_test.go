package importer

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"xdspub/source/load"
)

var update = flag.Bool("update", false, "rewrite the results in testdata, and fail")

// TestImport imports the first file of each case in testdata. The other files of the case are the expected result.
func TestImport(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(name), "testdata/"), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			in := archive.Files[0]
			format := strings.TrimPrefix(filepath.Ext(in.Name), ".")
			imported := Import(load.Input{Name: in.Name, Format: format, Data: in.Data}, Options{Root: "/etc/envoy"})
			got := *archive
			got.Files = append([]txtar.File{in}, shown(imported)...)
			sameArchive(t, name, archive, &got)
			if format == "yaml" && !imported.Diagnostics.HasErrors() {
				keepsComments(t, in.Data, imported)
			}
		})
	}
}

// shown returns the files and the findings of an import as files.
func shown(imported *Imported) (files []txtar.File) {
	var findings strings.Builder
	for _, d := range imported.Diagnostics {
		fmt.Fprintln(&findings, d)
	}
	files = append(files, txtar.File{Name: "findings", Data: []byte(findings.String())})
	for _, f := range imported.Files {
		files = append(files, txtar.File(f))
	}
	return files
}

func sameArchive(t *testing.T, name string, want, got *txtar.Archive) {
	t.Helper()
	text := txtar.Format(got)
	if diff := cmp.Diff(string(txtar.Format(want)), string(text)); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, diff)
		if *update {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

var comment = regexp.MustCompile(`(?m)(?:^|\s)(#.*)$`)

// keepsComments checks that each comment is in some file, unless a finding reports lost comments.
func keepsComments(t *testing.T, source []byte, imported *Imported) {
	t.Helper()
	var all strings.Builder
	for _, d := range imported.Diagnostics {
		if strings.Contains(d.Message, "comments") {
			return
		}
	}
	for _, f := range imported.Files {
		all.Write(f.Data)
	}
	for _, c := range comment.FindAllStringSubmatch(string(source), -1) {
		if !strings.Contains(all.String(), c[1]) {
			t.Errorf("the comment %q is lost", c[1])
		}
	}
}

// TestLostComments: the comments of a YAML file are kept up to a size of the file, and of the file with expanded
// aliases.
func TestLostComments(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 6 {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	for want, text := range map[string]string{
		"its aliases expand to too much":  laughs,
		"it is too large to keep them":    "a: 1" + strings.Repeat(" ", maxCommented),
		"it is no mapping":                "- 1",
		"yaml: line 1: did not find expe": "{",
	} {
		if _, err := newDocument([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
