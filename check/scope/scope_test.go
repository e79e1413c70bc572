package scope_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/check"
	"xdspub/check/scope"
	"xdspub/diag"
	"xdspub/tools/sh"
)

func never(string) bool { return false }

// write writes files into a new folder, makes it the current folder, and returns it.
func write(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

func TestTrees(t *testing.T) {
	dir := write(t, "set/xdspub.yaml", "set/a.yaml", "set/in/b.yaml", "set/in/README.md", "set/.hidden.yaml", "set/.gitignore", "bare/a.yaml", "bare/b.yaml", "bare/notes.txt", "whens/in/a.yaml")
	for _, name := range []string{"set/in/xdspub.yaml", "whens/xdspub.yaml", "whens/in/xdspub.yaml"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("when: {env: prod}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("set", "link"); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ paths, want string }{
		"a folder":                     {"set", "set[]"},
		"a folder twice":               {"set ./set/ link", "set[]"},
		"a folder below settings":      {"set/in", "set/in[]"},
		"a file below settings":        {"set/in/b.yaml", "set[set/in/b.yaml]"},
		"two files":                    {"set/a.yaml set/in/b.yaml", "set[set/a.yaml set/in/b.yaml]"},
		"a folder and its file":        {"set set/a.yaml", "set[]"},
		"a file and its folder":        {"bare/a.yaml bare", "bare[]"},
		"files without settings":       {"bare/a.yaml bare/b.yaml bare/a.yaml", "bare/a.yaml[] bare/b.yaml[]"},
		"no resources by its name":     {"set/in/README.md set/.gitignore", "set[set/in/README.md set/.gitignore]"},
		"a hidden file":                {"set/.hidden.yaml", "set/.hidden.yaml[]"},
		"the settings":                 {"set/xdspub.yaml", "set[]"},
		"a file and the settings":      {"set/in/b.yaml ./set/xdspub.yaml", "set[]"},
		"what its folder is for":       {"set/in/xdspub.yaml", "set[]"},
		"what folders are for":         {"whens/in/xdspub.yaml whens/xdspub.yaml", "whens[]"},
		"a file below what it is for":  {"whens/in/a.yaml", "whens[whens/in/a.yaml]"},
		"no settings there":            {"bare/xdspub.yaml", "bare/xdspub.yaml[]"},
		"no format, in no tree":        {"bare/notes.txt", "bare/notes.txt[]"},
		"nothing there":                {"set/none.yaml", "set/none.yaml[]"},
		"standard input":               {"- set/a.yaml", "-[] set[set/a.yaml]"},
		"an absolute path":             {dir + "/set/in/b.yaml", dir + "/set[" + dir + "/set/in/b.yaml]"},
		"an absolute and another path": {"set/a.yaml " + dir + "/set/in/b.yaml", "set[set/a.yaml " + dir + "/set/in/b.yaml]"},
	} {
		t.Run(name, func(t *testing.T) {
			var is []string
			for _, tree := range scope.Trees(strings.Fields(tt.paths), never) {
				is = append(is, fmt.Sprintf("%s%v", tree.Path, tree.Named))
			}
			if got := strings.Join(is, " "); got != tt.want {
				t.Errorf("the trees are %s, want %s", got, tt.want)
			}
		})
	}
	if trees := scope.Trees([]string{"set/a.yaml"}, func(path string) bool { return path == "set/a.yaml" }); len(trees) != 1 || trees[0].Path != "set/a.yaml" {
		t.Errorf("alone: %v", trees)
	}
	t.Chdir("set/in")
	trees := scope.Trees([]string{"b.yaml"}, never)
	if len(trees) != 1 || trees[0].Path != ".." || scope.Shorten("../in/b.yaml") != "b.yaml" || scope.Shorten("../a.yaml") != "../a.yaml" {
		t.Errorf("from below: %v", trees)
	}
}

func TestAbout(t *testing.T) {
	write(t, "tree/a.yaml", "tree/in/b.yaml")
	if scope.About(nil) != nil {
		t.Error("without paths, something concerns nobody")
	}
	at := func(file string) diag.Position { return diag.Position{File: file, Line: 1} }
	concerns := scope.About([]string{"tree/a.yaml", "tree/in"})
	for want, list := range map[bool]diag.List{
		true: {
			{Position: at("tree/a.yaml")}, {Position: at("./tree/../tree/a.yaml")}, {Position: at("tree/in/b.yaml")}, {},
			{Position: at("tree/c.yaml"), Related: []diag.Related{{Position: at("tree/c.yaml")}, {Position: at("tree/in/b.yaml")}}},
		},
		false: {{Position: at("tree/a.yaml.yaml")}, {Position: at("tree/c.yaml")}, {Position: at("tree/c.yaml"), Related: []diag.Related{{Message: "no place"}}}},
	} {
		for _, d := range list {
			if concerns(d) != want {
				t.Errorf("%v: %v", d, !want)
			}
		}
	}
}

const cluster = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
`

const routes = `"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: %s
virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web}}]}]
`

// TestSince: a change has caused the findings in the files that it changes, and new findings in other files. It has
// not caused findings that the tree had before. At returns the resources of a commit.
func TestSince(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), "repository")
	sh.Git(t)
	sh.Run(t, ".", "git init -q "+dir)
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("tree/cluster.yaml", cluster)
	put("tree/routes.yaml", fmt.Sprintf(routes, "first"))
	put("tree/old.yaml", "kind: Deployment\napiVersion: v1\n")
	put("tree/linked/to.json", "{}")
	sh.Run(t, dir, `git config user.name me; git config user.email me@example.com; ln -s routes.yaml tree/link.md; git add .; git commit -qm one; git branch base`)
	concerned := func(rev string) (list []string, hidden int) {
		t.Helper()
		o := check.Options{Path: filepath.Join(dir, "tree")}
		checked, err := check.Once(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		concerns, err := scope.Since(t.Context(), o, rev, checked.Diagnostics)
		if err != nil {
			t.Fatal(err)
		}
		checked.Only(concerns)
		for _, d := range checked.Diagnostics {
			below, _ := filepath.Rel(dir, d.File)
			list = append(list, below+" "+d.Code)
		}
		return list, checked.Summary.Hidden.Errors
	}
	if list, hidden := concerned("base"); len(list) > 0 || hidden != 2 {
		t.Errorf("no change: %v, %d hidden", list, hidden)
	}
	put("tree/old.yaml", "# moved\n\nkind: Deployment\napiVersion: v1\n")
	if list, _ := concerned("base"); !slices.Equal(list, []string{"tree/old.yaml unknown-document"}) {
		t.Errorf("the file of an old finding is edited: %v", list)
	}
	sh.Run(t, dir, "git checkout -q .; git rm -q tree/cluster.yaml")
	if list, _ := concerned("base"); !slices.Equal(list, []string{"tree/routes.yaml unresolved-reference/cluster"}) {
		t.Errorf("a file is removed that another needs: %v", list)
	}
	sh.Run(t, dir, "git commit -qm two; git rm -qr --cached tree; git commit -qm three")
	if list, hidden := concerned("HEAD"); len(list) != 3 || hidden > 0 {
		t.Errorf("a tree that the commit has not: %v, %d hidden", list, hidden)
	}
	for _, rev := range []string{"HEAD~1", "HEAD^{/two}", "HEAD@{1}", sh.Run(t, dir, "git rev-parse --short HEAD~1")} {
		if list, hidden := concerned(rev); len(list) > 0 || hidden != 3 {
			t.Errorf("%s: %v, %d hidden", rev, list, hidden)
		}
	}
	for rev, want := range map[string]int{"base": 2, "HEAD~1": 1, "HEAD": 0} {
		then, err := scope.At(t.Context(), check.Options{Path: filepath.Join(dir, "tree")}, rev)
		if err != nil || then.Snapshot.Len() != want {
			t.Errorf("%s has %v resources, want %d: %v", rev, then, want, err)
		}
	}
	if then, err := scope.At(t.Context(), check.Options{Path: filepath.Join(dir, "tree")}, "nowhere"); err == nil || then != nil {
		t.Errorf("a revision that does not exist has %v", then)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := scope.Since(ended, check.Options{Path: filepath.Join(dir, "tree")}, "base", nil); err != context.Canceled {
		t.Errorf("ended: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "xdspub-since-*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}
