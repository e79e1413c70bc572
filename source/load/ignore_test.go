package load_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"xdspub/source/load"
)

// TestUnusedPatterns checks that a pattern counts as used if it matched a path in the last look at the whole
// tree, or since.
func TestUnusedPatterns(t *testing.T) {
	dir := t.TempDir()
	l := load.New(load.Options{Ignore: []string{"*.tmp", "old/*.yaml", "old"}})
	want := func(when string, patterns ...string) {
		t.Helper()
		var got []string
		for _, u := range l.UnusedPatterns() {
			got = append(got, u.Pattern)
		}
		if !slices.Equal(got, patterns) {
			t.Errorf("%s: %q, want %q", when, got, patterns)
		}
	}
	look := func(changed ...string) {
		t.Helper()
		var err error
		if changed == nil {
			_, err = l.Load(t.Context(), dir)
		} else {
			_, err = l.Update(t.Context(), dir, changed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	look()
	want("an empty tree", "*.tmp", "old/*.yaml", "old")
	tmp := filepath.Join(dir, "a.tmp")
	if err := os.WriteFile(tmp, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	look(tmp)
	want("after an update", "old/*.yaml", "old")
	if err := os.Remove(tmp); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "old", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	look()
	want("after a load", "*.tmp", "old/*.yaml")
}
