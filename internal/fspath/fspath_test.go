package fspath

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"/a/b", "/a", true},
		{"/a", "/a", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
		{"/a/b", "/a/", true},
	} {
		if got := Within(tt.path, tt.dir); got != tt.want {
			t.Errorf("Within(%q, %q) = %v", tt.path, tt.dir, got)
		}
	}
}

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("real"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "real", "dangling": "nowhere"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"link":             "real",
		"link/missing/too": "real/missing/too",
		"link/../real":     "real",
		"dangling/below":   "dangling/below",
	} {
		if got := Resolve(at(path)); got != at(want) {
			t.Errorf("Resolve(%q) = %q, want %q", path, got, at(want))
		}
	}
}

func TestIsFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"file": true, "link": true, "": false, "missing": false} {
		if got := IsFile(filepath.Join(dir, name)); got != want {
			t.Errorf("IsFile(%q) = %v", name, got)
		}
	}
}

func TestReason(t *testing.T) {
	_, err := os.Stat(filepath.Join(t.TempDir(), "missing"))
	if got := Reason(fmt.Errorf("look: %w", err)); got != syscall.ENOENT {
		t.Errorf("of a path: %v", got)
	}
	if got := Reason(io.EOF); got != io.EOF {
		t.Errorf("of nothing that has a path: %v", got)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, local string
		want           bool
	}{
		{"legacy", "a/legacy/b.yaml", true}, {"legacy/*", "legacy/b/c.yaml", true}, {"legacy/*", "a/legacy/b.yaml", false}, {"/legacy/", "legacy/a.yaml", true},
		{"*.yaml", "a/b.yaml", true}, {"*.yaml", "a.json", false}, {"a/*.yaml", "a/b/c.yaml", false}, {"[", "[", false}, {"*", ".", false},
	} {
		if got := Matches(c.pattern, filepath.FromSlash(c.local)); got != c.want {
			t.Errorf("Matches(%q, %q) is %v", c.pattern, c.local, got)
		}
	}
}
