package fixes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/check"
	"xdspub/diag"
)

// wrong is a cluster with a misspelt field, and right is the cluster without the mistake.
const (
	wrong = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: a\nconect_timeout: 1s # near\n"
	right = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: a\nconnect_timeout: 1s # near\n"
)

// tree is a source tree in a temporary folder.
type tree struct {
	*testing.T
	dir string
	run *Run
}

func newTree(t *testing.T) *tree {
	x := &tree{t, filepath.Join(t.TempDir(), "tree"), New(false)}
	t.Cleanup(x.run.Close)
	if err := os.Mkdir(x.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *tree) path(name string) string { return filepath.Join(x.dir, name) }

func (x *tree) write(name, text string, mode os.FileMode) {
	x.Helper()
	if err := os.MkdirAll(filepath.Dir(x.path(name)), 0o755); err != nil {
		x.Fatal(err)
	}
	if err := os.WriteFile(x.path(name), []byte(text), 0o600); err != nil {
		x.Fatal(err)
	}
	if err := os.Chmod(x.path(name), mode); err != nil {
		x.Fatal(err)
	}
}

func (x *tree) link(to, name string) {
	x.Helper()
	if err := os.Symlink(to, x.path(name)); err != nil {
		x.Fatal(err)
	}
}

// fix makes the fixes in memory.
func (x *tree) fix(allow ...string) *check.Result {
	x.Helper()
	judge := func() (*check.Result, error) {
		return check.Once(context.Background(), check.Options{Path: x.dir, Overlay: x.run.Texts(), Allow: allow})
	}
	found, err := judge()
	if err != nil {
		x.Fatal(err)
	}
	if found, err = x.run.Fix(found, Scope{Root: x.dir}, judge); err != nil {
		x.Fatal(err)
	}
	return found
}

// has reports an error if a file has another text or mode, or if the tree has other files.
func (x *tree) has(name, text string, mode os.FileMode) {
	x.Helper()
	data, err := os.ReadFile(x.path(name))
	if err != nil {
		x.Fatal(err)
	}
	info, err := os.Stat(x.path(name))
	if err != nil {
		x.Fatal(err)
	}
	if string(data) != text || info.Mode().Perm() != mode {
		x.Errorf("%s has mode %v and\n%s\nwant mode %v and\n%s", name, info.Mode().Perm(), data, mode, text)
	}
}

// clean reports an error if a temporary file is left.
func (x *tree) clean() {
	x.Helper()
	err := filepath.WalkDir(x.dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), ".") {
			x.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		x.Error(err)
	}
}

func TestWrite(t *testing.T) {
	x := newTree(t)
	x.write("a.yaml", wrong, 0o640)
	x.write("b/b.yaml", strings.ReplaceAll(wrong, "name: a", "name: b"), 0o600)
	x.write("c.yaml", strings.ReplaceAll(right, "name: a", "name: c"), 0o644)
	before, err := os.Stat(x.path("c.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if list := x.fix().Diagnostics; list.HasErrors() {
		t.Error(list)
	}
	if made, files := x.run.Made(); made != 2 || files != 2 {
		t.Errorf("%d fixes in %d files", made, files)
	}
	x.has("a.yaml", wrong, 0o640) // not yet
	if err := x.run.Write(); err != nil {
		t.Fatal(err)
	}
	x.has("a.yaml", right, 0o640)
	x.has("b/b.yaml", strings.ReplaceAll(right, "name: a", "name: b"), 0o600)
	if after, err := os.Stat(x.path("c.yaml")); err != nil || !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
		t.Errorf("a file without fixes was written: %v", err)
	}
	x.clean()
}

// TestLinks: a link out of the tree is not followed, even if the tree may read its target. A link in the tree stays a
// link, and its target is fixed once.
func TestLinks(t *testing.T) {
	x := newTree(t)
	outside := filepath.Join(filepath.Dir(x.dir), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "o.yaml"), []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	x.link("../outside/o.yaml", "o.yaml")
	x.write("target/.hidden.yaml", strings.ReplaceAll(wrong, "name: a", "name: b"), 0o644)
	x.link("target/.hidden.yaml", "l.yaml")
	if list := x.fix(outside).Diagnostics; list.Count(diag.Error) != 1 {
		t.Error(list)
	}
	if err := x.run.Write(); err != nil {
		t.Fatal(err)
	}
	x.has("o.yaml", wrong, 0o644)
	x.has("target/.hidden.yaml", strings.ReplaceAll(right, "name: a", "name: b"), 0o644)
	if to, err := os.Readlink(x.path("l.yaml")); to != "target/.hidden.yaml" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	list := x.run.Refused()
	if len(list) != 1 || list[0].File != x.path("o.yaml") || !strings.Contains(list[0].Reason, "outside of") {
		t.Errorf("refused: %v", list)
	}
}

// TestTwoNames: a file with two names gets each edit once.
func TestTwoNames(t *testing.T) {
	x := newTree(t)
	x.write("a.yaml", wrong, 0o644)
	x.link("a.yaml", "b.yaml")
	x.fix()
	if err := x.run.Write(); err != nil {
		t.Fatal(err)
	}
	x.has("a.yaml", right, 0o644)
	if made, files := x.run.Made(); made != 1 || files != 1 {
		t.Errorf("%d fixes in %d files", made, files)
	}
}

func TestReadOnly(t *testing.T) {
	x := newTree(t)
	x.write("a.yaml", wrong, 0o444)
	x.write("b.yaml", strings.ReplaceAll(wrong, "name: a", "name: b"), 0o644)
	if list := x.fix().Diagnostics; list.Count(diag.Error) != 1 {
		t.Error(list)
	}
	if err := x.run.Write(); err != nil {
		t.Fatal(err)
	}
	x.has("a.yaml", wrong, 0o444)
	if list := x.run.Refused(); fmt.Sprint(list) != fmt.Sprintf("[{%s the file is read-only}]", x.path("a.yaml")) {
		t.Errorf("refused: %v", list)
	}
}

// TestChanged: Write changes no file if one of them has changed since it was read.
func TestChanged(t *testing.T) {
	for name, change := range map[string]func(*tree){
		"another text": func(x *tree) { x.write("sub/b.yaml", "# new\n", 0o644) },
		"removed":      func(x *tree) { _ = os.Remove(x.path("sub/b.yaml")) },
		"a link": func(x *tree) {
			x.write("c.txt", strings.ReplaceAll(wrong, "name: a", "name: b"), 0o644)
			_ = os.Remove(x.path("sub/b.yaml"))
			x.link("../c.txt", "sub/b.yaml")
		},
		"a link out of the tree": func(x *tree) {
			_ = os.Remove(x.path("sub/b.yaml"))
			x.link("/etc/passwd", "sub/b.yaml")
		},
		"its folder removed": func(x *tree) { _ = os.RemoveAll(x.path("sub")) },
		"a folder": func(x *tree) {
			_ = os.Remove(x.path("sub/b.yaml"))
			_ = os.Mkdir(x.path("sub/b.yaml"), 0o755)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTree(t)
			x.write("a.yaml", wrong, 0o644)
			x.write("sub/b.yaml", strings.ReplaceAll(wrong, "name: a", "name: b"), 0o644)
			x.fix()
			change(x)
			err := x.run.Write()
			if err == nil || !strings.Contains(err.Error(), "b.yaml: ") || !strings.Contains(err.Error(), "no file is changed") {
				t.Errorf("Write: %v", err)
			}
			x.has("a.yaml", wrong, 0o644)
			x.clean()
		})
	}
}

// TestChangedMeanwhile: the places of the edits are those of the text that is edited, even if the file changes after
// the first look at it.
func TestChangedMeanwhile(t *testing.T) {
	x := newTree(t)
	x.write("a.yaml", wrong, 0o644)
	judge := func() (*check.Result, error) {
		return check.Once(context.Background(), check.Options{Path: x.dir, Overlay: x.run.Texts()})
	}
	found, err := judge()
	if err != nil {
		t.Fatal(err)
	}
	x.write("a.yaml", "# a comment above\n"+wrong, 0o644)
	if _, err := x.run.Fix(found, Scope{Root: x.dir}, judge); err != nil {
		t.Fatal(err)
	}
	if err := x.run.Write(); err != nil {
		t.Fatal(err)
	}
	x.has("a.yaml", "# a comment above\n"+right, 0o644)
}

// TestMay: only the files of the Scope change.
func TestMay(t *testing.T) {
	x := newTree(t)
	x.write("a.yaml", wrong, 0o644)
	x.write("b.yaml", strings.ReplaceAll(wrong, "name: a", "name: b"), 0o644)
	judge := func() (*check.Result, error) {
		return check.Once(context.Background(), check.Options{Path: x.dir, Overlay: x.run.Texts()})
	}
	found, err := judge()
	if err != nil {
		t.Fatal(err)
	}
	in := Scope{Root: x.dir, May: func(file string) bool { return filepath.Base(file) == "a.yaml" }}
	if _, err := x.run.Fix(found, in, judge); err != nil {
		t.Fatal(err)
	}
	if err := x.run.Write(); err != nil {
		t.Fatal(err)
	}
	x.has("a.yaml", right, 0o644)
	x.has("b.yaml", strings.ReplaceAll(wrong, "name: a", "name: b"), 0o644)
}

// TestManyRounds: fixes that uncover further fixes end at the limit, and the Run says so.
func TestManyRounds(t *testing.T) {
	run := New(false)
	run.Add(diag.StandardInput, []byte("a"))
	rounds := 0
	judge := func() (*check.Result, error) {
		rounds++
		return &check.Result{Diagnostics: diag.List{{Fixes: []diag.Fix{{Safe: true, Edits: []diag.Edit{
			{Range: diag.PointAt(diag.Position{File: diag.StandardInput, Line: 1, Column: 1}), Text: "a"},
		}}}}}}, nil
	}
	found, _ := judge()
	if _, err := run.Fix(found, Scope{}, judge); err != nil {
		t.Fatal(err)
	}
	if !run.Unfinished() || rounds != maxRounds+1 || len(run.Text(diag.StandardInput)) != maxRounds+1 {
		t.Errorf("unfinished %v after %d rounds", run.Unfinished(), rounds)
	}
}
