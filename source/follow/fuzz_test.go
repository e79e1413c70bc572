package follow_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/diag"
	"xdspub/source/follow"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// FuzzFollow follows the boot.yaml of a directory with any files, and judges the result. This must end soon,
// with the same sorted findings each time, and with all places inside the files.
func FuzzFollow(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(txtar.Format(archive))
	}
	f.Add([]byte("-- boot.yaml --\ndynamic_resources: {cds_config: {path_config_source: {path: ./boot.yaml}}}\n"))
	f.Add([]byte("-- boot.yaml --\ndynamic_resources: {lds_config: {path_config_source: {path: ., watched_directory: {path: boot.yaml}}}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		lines := writeAll(t, dir, text)
		var (
			found [2]diag.List
			took  [2]time.Duration
		)
		for i := range found {
			start := time.Now()
			result, err := follow.Bootstrap(t.Context(), filepath.Join(dir, "boot.yaml"), follow.Options{Root: dir})
			if err != nil {
				return // there is no boot.yaml
			}
			found[i] = append(result.Diagnostics, validate.Run(t.Context(), result.Snapshot, rules.All, validate.Options{
				BootstrapFacts: result.BootstrapFacts, Bootstrap: result.Bootstrap, Incomplete: result.Incomplete,
			})...).Sort()
			took[i] = time.Since(start)
		}
		if slices.Min(took[:]) > 20*time.Second { // far more than a busy machine needs
			t.Errorf("%d bytes take %v", len(text), took)
		}
		if diff := cmp.Diff(found[0], found[1]); diff != "" {
			t.Errorf("the findings differ:\n%s", diff)
		}
		inside := func(p diag.Position) bool {
			if p.Line == 0 && p.Column == 0 {
				return p.File != "" // a finding about the whole file, or about a binary file
			}
			of, ok := lines[p.File]
			return !ok || p.Line >= 1 && p.Line <= len(of) && p.Column >= 1 && p.Column <= utf8.RuneCount(of[p.Line-1])+1
		}
		for _, d := range found[0] {
			if !inside(d.Position) || slices.ContainsFunc(d.Related, func(r diag.Related) bool { return !inside(r.Position) }) {
				t.Errorf("outside of the files: %s %v", d, d.Related)
			}
			if strings.ContainsAny(d.Message+d.Help, "\n\r") || !utf8.ValidString(d.Message+d.Help) {
				t.Errorf("no line of text: %q, %q", d.Message, d.Help)
			}
		}
	})
}

// writeAll writes the files of an archive below a directory, except those whose names can't be written, and
// returns the lines of each file.
func writeAll(t *testing.T, dir string, archive []byte) map[string][][]byte {
	t.Helper()
	lines := make(map[string][][]byte)
	for _, file := range txtar.Parse(archive).Files {
		path := filepath.Join(dir, file.Name)
		if !filepath.IsLocal(file.Name) || os.MkdirAll(filepath.Dir(path), 0o755) != nil || os.WriteFile(path, file.Data, 0o644) != nil {
			continue // an empty name, or the name of a folder
		}
		lines[path] = bytes.Split(file.Data, []byte("\n"))
	}
	return lines
}
