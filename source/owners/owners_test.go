package owners_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"xdspub/source/owners"
)

// Example finds the owners of files.
func Example() {
	folders := owners.New("config", []string{"teams/*"})
	fmt.Println(folders.Of("config/teams/a/clusters/web.yaml"))
	fmt.Printf("%q\n", folders.Of("config/edge.yaml"))
	// Output:
	// teams/a
	// ""
}

// TestOf: the outermost folder that matches owns a file. A file beside the folders, or outside of the tree, is shared.
func TestOf(t *testing.T) {
	for _, tt := range []struct{ root, pattern, file, want string }{
		{"tree", "teams/*", "tree/teams/a/x.yaml", "teams/a"},
		{"tree", "teams/*", "tree/teams/a/b/x.yaml", "teams/a"},
		{"tree", "teams/*", "tree/teams/x.yaml", ""},
		{"tree", "teams/*", "tree/x.yaml", ""},
		{"tree", "teams/*", "other/teams/a/x.yaml", ""},
		{"tree/", "teams/*", "tree/teams/a/x.yaml", "teams/a"},
		{".", "teams/*", "teams/a/x.yaml", "teams/a"},
		{"/", "teams/*", "/teams/a/x.yaml", "teams/a"},
		{"tree", "*", "tree/a/b/x.yaml", "a"},
		{"tree", "a/b", "tree/a/b/x.yaml", "a/b"},
		{"tree", "teams/*", "", ""},
	} {
		if got := owners.New(tt.root, []string{tt.pattern}).Of(tt.file); got != tt.want {
			t.Errorf("%s in %s, of %s: %q, want %q", tt.file, tt.root, tt.pattern, got, tt.want)
		}
	}
	if got := (owners.Folders{}).Of("a/b.yaml"); got != "" {
		t.Errorf("without patterns: %q", got)
	}
}

// TestUnmatched: a pattern that matches no folder is found, also if the pattern matches a file.
func TestUnmatched(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "teams", "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(owners.New(dir, []string{"teams/*", "team/*", "file"}).Unmatched()); got != "[team/* file]" {
		t.Errorf("unmatched: %s", got)
	}
}

// TestWrong: a pattern is a path below the source tree.
func TestWrong(t *testing.T) {
	for pattern, want := range map[string]bool{
		"teams/*": false, "a": false, "a/[bc]": false, "": true, ".": true, "/teams": true, "teams/": true, "../a": true, "a//b": true, "teams/**": true, "[": true,
	} {
		if got := owners.Wrong(pattern); (got != "") != want {
			t.Errorf("%q: %q", pattern, got)
		}
	}
}
