package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/source/load"
)

// TestWhenRefused checks that when must be in one document, and the limits of when in a file and in a tree.
func TestWhenRefused(t *testing.T) {
	many := func(n int, of string) (text string) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, of, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"two documents": {[]string{"in/xdspub.yaml", "when: {k: v}\n---\nwhen: {k: w}\n"}, "unknown-document a settings file has one document, and here a second one begins"},
		"a long key":    {[]string{"xdspub.yaml", "when:\n  ? " + strings.Repeat("k", 1_000_000) + "\n  : v"}, "invalid-when a key has at most 1024 bytes, and this one 1000000"},
		"a long value":  {[]string{"xdspub.yaml", "when: {k: [" + strings.Repeat("v", 1_000_000) + "]}"}, "invalid-when a value has at most 1024 bytes, and this one 1000000"},
		"a large file":  {[]string{"in/xdspub.yaml", "when: {k: v} # " + strings.Repeat("v", 1<<20)}, "too-large the file has 1048591 bytes, the limit is 1048576"},
		"many values":   {[]string{"xdspub.yaml", "when: {k: [" + many(10_001, "v%d,") + "]}"}, "invalid-when the constraints have more than 10000 parts"},
		"deep":          {[]string{"xdspub.yaml", "when: {k: " + strings.Repeat("{not: ", 1000) + "v" + strings.Repeat("}", 1000) + "}"}, `invalid-when a value of "k" is an object`},
		"many values together": {
			[]string{"xdspub.yaml", "when: {k: [" + many(6_000, "v%d,") + "]}", "in/xdspub.yaml", "when: {j: [" + many(6_000, "v%d,") + "]}", "in/a.yaml", cluster("a")},
			"invalid-when the constraints have more than 10000 parts, with those of the folders around it",
		},
		"many patterns together": {
			[]string{"xdspub.yaml", "when:\n" + many(60, "- {files: a.yaml, params: {k%d: v}}\n"), "in/xdspub.yaml", "when:\n" + many(60, "- {files: a.yaml, params: {j%d: v}}\n"), "in/a.yaml", cluster("a")},
			"invalid-when there are more than 100 patterns of files, with those of the folders around it",
		},
	} {
		dir := t.TempDir()
		write(t, dir, append(c.files, "b.yaml", cluster("b"))...)
		r := mustLoad(t, load.New(load.Options{}), dir)
		if got := said(r); !strings.Contains(got, c.want) || len(r.ClientsUnknownIn) == 0 {
			t.Errorf("%s: %s (unknown: %v), want %s", name, got[:min(len(got), 300)], r.ClientsUnknownIn, c.want)
		}
	}
}

// TestWhenHalfWritten checks that a broken or empty settings file does not make the files around it be for
// every client. At the root, a comment is enough for a settings file without settings.
func TestWhenHalfWritten(t *testing.T) {
	for text, want := range map[string]struct{ below, root string }{
		"%%%\n":               {"in/xdspub.yaml:1:1 invalid-syntax", "xdspub.yaml:1:1 invalid-syntax"},
		"# later\n%YAML 1.2":  {"in/xdspub.yaml:2:1 invalid-syntax", "xdspub.yaml:2:1 invalid-syntax"},
		"\twhen: {env: prod}": {"in/xdspub.yaml:1:1 invalid-syntax", "xdspub.yaml:1:1 invalid-syntax"},
		"when: {env: prod":    {"in/xdspub.yaml:1:7 invalid-syntax", "xdspub.yaml:1:7 invalid-syntax"},
		"when:":               {"in/xdspub.yaml:1:1 invalid-when", "xdspub.yaml:1:1 invalid-when"},
		"":                    {"in/xdspub.yaml:1:1 invalid-when", "xdspub.yaml:1:1 invalid-value"},
		" \n\n":               {"in/xdspub.yaml:1:1 invalid-when", "xdspub.yaml:1:1 invalid-value"},
		"# later":             {"in/xdspub.yaml:1:1 invalid-when", ""},
		"--- # later":         {"in/xdspub.yaml:1:1 invalid-when", ""},
		"\ufeff":              {"in/xdspub.yaml:1:1 invalid-when", "xdspub.yaml:1:1 invalid-value"},
		"---\n":               {"in/xdspub.yaml:1:1 invalid-when", "xdspub.yaml:1:1 invalid-value"},
		"{}":                  {"in/xdspub.yaml:1:1 invalid-when", "xdspub.yaml:1:1 invalid-value"},
		"null":                {"in/xdspub.yaml:1:1 invalid-when", "xdspub.yaml:1:1 invalid-value"},
	} {
		for _, folder := range []string{"in", "."} {
			dir := t.TempDir()
			write(t, dir, filepath.Join(folder, "xdspub.yaml"), text, "in/a.yaml", cluster("a"))
			r := mustLoad(t, load.New(load.Options{}), dir)
			got, wanted := "", map[string]string{"in": want.below, ".": want.root}[folder]
			for _, d := range r.Diagnostics {
				below, _ := filepath.Rel(dir, d.File)
				got += fmt.Sprintf("%s:%d:%d %s", filepath.ToSlash(below), d.Line, d.Column, d.Code)
			}
			if got != wanted || (len(r.ClientsUnknownIn) > 0) != (wanted != "") {
				t.Errorf("%q in %s: %q (unknown: %v), want %q", text, folder, got, r.ClientsUnknownIn, wanted)
			}
		}
	}
}

// TestWhenJoins checks the limit for constraints that nested folders join.
func TestWhenJoins(t *testing.T) {
	dir := t.TempDir()
	var values strings.Builder
	for i := range 900 {
		fmt.Fprintf(&values, "%s%d,", strings.Repeat("v", 900), i)
	}
	files := []string{"xdspub.yaml", "when: {k: [" + values.String() + "]}"}
	for i := range 100 {
		files = append(files, fmt.Sprintf("%d/xdspub.yaml", i), fmt.Sprintf("when: {j: '%d'}", i))
	}
	write(t, dir, files...)
	if got := said(mustLoad(t, load.New(load.Options{}), dir)); !strings.Contains(got, "invalid-when the constraints of the folders of the source tree have more than 67108864 bytes together") {
		t.Error(got[:min(len(got), 300)])
	}
}

// TestWhenLinks checks that the settings file of a folder may be a link in the tree, a link out of the tree, or
// unsaved text, as other files.
func TestWhenLinks(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	write(t, dir, "tree/in/a.yaml", cluster("a"), "tree/.when", "when: {env: prod}\n", "outside", "when: {env: outside}\n")
	settings := filepath.Join(tree, "in", "xdspub.yaml")
	check := func(what string, o load.Options, constraints, findings string) {
		t.Helper()
		r, err := load.New(o).Load(t.Context(), tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Resources()[0].For.String(); got != constraints || !strings.Contains(said(r), findings) || findings == "" && said(r) != "" {
			t.Errorf("%s: for %s, %s", what, got, said(r))
		}
	}
	link := func(to string) {
		t.Helper()
		_ = os.Remove(settings)
		if err := os.Symlink(to, settings); err != nil {
			t.Fatal(err)
		}
	}
	check("none", load.Options{}, "any client", "")
	check("of an editor, new", load.Options{Overlay: map[string][]byte{settings: []byte("when: {env: edited}")}}, "env=edited", "")
	link("../.when")
	check("a link", load.Options{}, "env=prod", "")
	check("of an editor", load.Options{Overlay: map[string][]byte{filepath.Join(tree, ".when"): []byte("when: {env: edited}")}}, "env=edited", "")
	link("../../outside")
	check("out of the tree", load.Options{}, "any client", "outside-tree")
	check("allowed", load.Options{Allow: []string{dir}}, "env=outside", "")
	check("ignored", load.Options{Ignore: []string{"xdspub.yaml"}}, "any client", "")
}
