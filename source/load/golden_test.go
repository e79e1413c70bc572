package load_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/tools/fixing"
	"xdspub/xds"
)

var update = flag.Bool("update", false, "rewrite the wanted output in testdata, and fail")

// TestGolden loads the tree of each testdata/*.txtar and compares what a person
// would see. In an archive stand
//
//   - the files of the tree; one named NAME.quoted is written as NAME, from lines
//     of quoted Go strings: for line breaks and bytes that an editor would change
//   - one named NAME.link is written as NAME, a symbolic link to its line
//   - ignore: patterns for Options.Ignore, one a line; owners: those for Options.Owners
//   - subscribed: says that each file is read as one that Envoy subscribes to
//   - resources: what was found, and where it stands
//   - want: the findings, as they are printed
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	printed := make(map[string]bool)
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			for _, d := range golden(t, path) {
				printed[d.Code] = true
			}
		})
	}
	for _, c := range decode.Codes {
		if !printed[c.Name] && !*update && flag.Lookup("test.run").Value.String() == "" {
			t.Errorf("no case has a finding %s", c.Name)
		}
	}
}

func golden(t *testing.T, path string) diag.List {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	options := load.Options{}
	subscribed := false
	kept := archive.Files[:0:0]
	for _, f := range archive.Files {
		switch f.Name {
		case "resources", "want":
			continue
		case "ignore":
			options.Ignore = strings.Fields(string(f.Data))
		case "owners":
			options.Owners = strings.Fields(string(f.Data))
		case "subscribed":
			subscribed = true
		default:
			writeFile(t, dir, f)
		}
		kept = append(kept, f)
	}
	read := func() (results []*load.Result) {
		if !subscribed {
			result, err := load.New(options).Load(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			return []*load.Result{result}
		}
		for _, f := range kept {
			if f.Name == "subscribed" {
				continue
			}
			result, err := load.Subscribed(filepath.Join(dir, strings.TrimSuffix(f.Name, ".quoted")), xds.Cluster, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, result)
		}
		return results
	}
	results := read()
	var resources, findings string
	var all diag.List
	for _, result := range results {
		inside(t, result)
		resources += describe(result)
		findings += text(t, result)
		all = append(all, result.Diagnostics...)
	}
	fixing.Try(t, all, func(d diag.Diagnostic) bool { return d.Line == 0 || besideMeant[filepath.Base(d.File)] }, func() (after diag.List) {
		for _, result := range read() {
			after = append(after, result.Diagnostics...)
		}
		return after
	})
	archive.Files = append(kept,
		txtar.File{Name: "resources", Data: []byte(strings.ReplaceAll(resources, dir+"/", ""))},
		txtar.File{Name: "want", Data: []byte(strings.ReplaceAll(findings, dir+"/", ""))})
	got := txtar.Format(archive)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return all
	}
	t.Errorf("%s (-want +got):\n%s", path, cmp.Diff(string(want), string(got)))
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// writeFile writes a file of an archive below dir.
func writeFile(t *testing.T, dir string, f txtar.File) {
	t.Helper()
	name, quoted := strings.CutSuffix(f.Name, ".quoted")
	data := f.Data
	if quoted {
		data = nil
		for line := range strings.Lines(string(f.Data)) {
			text, err := strconv.Unquote(strings.TrimSpace(line))
			if err != nil {
				t.Fatalf("%s: %s: %v", f.Name, line, err)
			}
			data = append(data, text...)
		}
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if link, is := strings.CutSuffix(path, ".link"); is {
		err = os.Symlink(strings.TrimSpace(string(data)), link)
	} else {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// describe returns the resources of a result with their places, as text.
func describe(r *load.Result) string {
	var b strings.Builder
	for _, one := range r.Resources() {
		fmt.Fprintf(&b, "%s: %s", one.Origin.Range("").Position, one.Key)
		if !one.For.None() {
			fmt.Fprintf(&b, " for %s, by %s", one.For, one.ConstraintsAt().Position)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// text returns the findings of a result as a command prints them.
func text(t testing.TB, r *load.Result) string {
	t.Helper()
	var b strings.Builder
	if err := diag.WriteText(&b, r.Diagnostics, diag.TextOptions{Line: r.Line}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// besideMeant are the files with a misspelled field beside the right one. They have no correction, because it
// would double the field.
var besideMeant = map[string]bool{"crlf.txtpb": true, "ünïcode.pb_text": true, "unknown.yaml": true}

// inside checks that every range of a result is in its file: its lines exist, and its columns are at most one
// after the end of a line.
func inside(t testing.TB, r *load.Result) {
	t.Helper()
	check := func(p diag.Position) {
		if p.Line == 0 && p.Column == 0 {
			return
		}
		data, err := os.ReadFile(p.File)
		if err != nil {
			t.Error(err)
			return
		}
		lines := strings.Split(string(data), "\n")
		if p.Line < 1 || p.Line > len(lines) {
			t.Errorf("%s: the file has %d lines", p, len(lines))
			return
		}
		if n := len([]rune(lines[p.Line-1])); p.Column < 1 || p.Column > n+1 {
			t.Errorf("%s: the line has %d characters", p, n)
		}
	}
	for _, d := range r.Diagnostics {
		check(d.Position)
		if end := (diag.Position{File: d.File, Line: d.EndLine, Column: d.EndColumn}); end.Line > 0 {
			if check(end); end.Compare(d.Position) < 0 {
				t.Errorf("%s ends at %s", d.Position, end)
			}
		}
		for _, related := range d.Related {
			check(related.Position)
		}
	}
	for _, one := range r.Resources() {
		check(one.Origin.Range("").Position)
		check(one.ConstraintsAt().Position)
		packed(t, one)
	}
	if !slices.IsSorted(r.Files()) {
		t.Errorf("files are not sorted: %q", r.Files())
	}
}

// packed checks that a resource that counts as packed has the canonical form, which Marshal makes.
func packed(t testing.TB, r *xds.Resource) {
	t.Helper()
	got, err := r.Canonical()
	want, marshalErr := xds.Marshal(r.Message())
	if !r.Packed || !bytes.Equal(got, want) || (err == nil) != (marshalErr == nil) {
		t.Errorf("%s: packed %v; Canonical gives %q, %v; Marshal gives %q, %v", r.Key, r.Packed, got, err, want, marshalErr)
	}
}
