package initial

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// tree returns the content of a directory: of each file its text, of each link its target, and the folders.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case e.IsDir():
			found[name] = "a folder"
		case e.Type() == fs.ModeSymlink:
			found[name], err = os.Readlink(path)
		default:
			var data []byte
			data, err = os.ReadFile(path)
			found[name] = string(data)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

// TestWrite: Write writes all files or none, and changes no existing file.
func TestWrite(t *testing.T) {
	files := []File{{Path: "a/b/one", Data: []byte("1")}, {Path: "a/two", Data: []byte("2")}, {Path: "three", Data: []byte("3")}}
	written := map[string]string{"a": "a folder", "a/b": "a folder", "a/b/one": "1", "a/two": "2", "three": "3"}
	for name, tt := range map[string]struct {
		had   string            // the existing files, as txtar
		links map[string]string // the existing links
		add   []File
		want  string // the expected error
	}{
		"a new directory":               {},
		"other files":                   {had: "-- README --\nmine\n-- a/mine --\nmine\n"},
		"a file":                        {had: "-- three --\nmine\n", want: "nothing was written, since there is already: DIR/three"},
		"files":                         {had: "-- a/b/one --\nmine\n-- three --\nmine\n", want: "nothing was written, since there is already: DIR/a/b/one, DIR/three"},
		"a folder":                      {had: "-- three/mine --\nmine\n", want: "nothing was written, since there is already: DIR/three"},
		"a file instead of a folder":    {had: "-- a --\nmine\n", want: "a/b/one: not a directory"},
		"a link to nothing":             {links: map[string]string{"three": "nowhere"}, want: "nothing was written, since there is already: DIR/three"},
		"a folder that is elsewhere":    {links: map[string]string{"a": os.TempDir()}, want: "a/b/one: path escapes from parent"},
		"a file that comes meanwhile":   {add: []File{{Path: "a/b/c/four"}, {Path: "three"}}, want: "three: file exists"},
		"and in a directory with files": {had: "-- a/mine --\nmine\n", add: []File{{Path: "three"}}, want: "three: file exists"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			for _, f := range txtar.Parse([]byte(tt.had)).Files {
				path := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, f.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for from, to := range tt.links {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
					t.Fatal(err)
				}
			}
			want := tree(t, dir)
			_, missing := os.Stat(dir)
			got := ""
			err := Write(dir, append(files[:3:3], tt.add...))
			if err == nil {
				for path, data := range written {
					want[path] = data
				}
			} else {
				got = strings.ReplaceAll(err.Error(), dir, "DIR")
			}
			if (got == "") != (tt.want == "") || !strings.HasSuffix(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, now := os.Stat(dir); err != nil && (now == nil) != (missing == nil) {
				t.Errorf("the directory: %v, was %v", now, missing)
			}
			if _, is := errors.AsType[*ExistsError](err); is != strings.HasPrefix(tt.want, "nothing was written") {
				t.Errorf("%T", err)
			}
		})
	}
}

// TestWriteNowhere: Write creates a directory, but not its parent.
func TestWriteNowhere(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if err := Write(filepath.Join(none, "dir"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a folder that is not there: %v", err)
	}
	if err := os.WriteFile(none, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(none, nil); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("into a file: %v", err)
	}
}
