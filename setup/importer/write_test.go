package importer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	files := []File{{"config/clusters/a.yaml", []byte("a")}, {"bootstrap.yaml", []byte("b")}}
	for name, test := range map[string]struct {
		before func(t *testing.T, dir string)
		used   bool
	}{
		"a new directory": {func(*testing.T, string) {}, false},
		"an empty one":    {func(t *testing.T, dir string) { do(t, os.Mkdir(dir, 0o750)) }, false},
		"a link to one":   {func(t *testing.T, dir string) { do(t, os.Mkdir(dir+"2", 0o750)); do(t, os.Symlink(dir+"2", dir)) }, false},
		"one with a file": {func(t *testing.T, dir string) {
			do(t, os.Mkdir(dir, 0o750))
			do(t, os.WriteFile(filepath.Join(dir, ".hidden"), nil, 0o600))
		}, true},
		"a file":            {func(t *testing.T, dir string) { do(t, os.WriteFile(dir, nil, 0o600)) }, true},
		"a link to nowhere": {func(t *testing.T, dir string) { do(t, os.Symlink(dir+"2", dir)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			dir := filepath.Join(around, "import")
			test.before(t, dir)
			before := listed(t, around)
			err := Write(dir, files, 0o640)
			if used := new(NotEmptyError); errors.As(err, &used) != test.used || err != nil && !test.used {
				t.Fatal(err)
			}
			if test.used {
				if got := listed(t, around); len(got) != len(before) {
					t.Errorf("left behind: %q", got)
				}
				return
			}
			for _, f := range files {
				got, err := os.ReadFile(filepath.Join(dir, f.Name))
				if err != nil || string(got) != string(f.Data) {
					t.Errorf("%s: %q, %v", f.Name, got, err)
				}
			}
			if info, err := os.Stat(filepath.Join(dir, "config", "clusters")); err != nil || info.Mode().Perm() != 0o750 {
				t.Errorf("the mode of a folder: %v, %v", info.Mode(), err)
			}
			if got := listed(t, around); len(got) > len(before)+1 {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

// TestWriteNothing: if one file can't be written, Write writes no file.
func TestWriteNothing(t *testing.T) {
	around := t.TempDir()
	files := []File{{"config/clusters/a.yaml", nil}, {"config/clusters/a.yaml", nil}}
	if err := Write(filepath.Join(around, "import"), files, 0o644); err == nil {
		t.Error("one name was written twice")
	}
	if got := listed(t, around); len(got) > 0 {
		t.Errorf("left behind: %q", got)
	}
}

func listed(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	do(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
