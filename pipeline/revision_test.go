package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/publish"
)

// sh runs a script in a folder.
func sh(t *testing.T, dir, script string) (output string) {
	t.Helper()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository is a git work tree with a source tree in its folder envoy.
func repository(t *testing.T) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED, needs git: ", err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir = filepath.Join(t.TempDir(), "repository")
	sh(t, ".", "git init -q "+dir)
	sh(t, dir, `git config user.name me; git config user.email me@example.com
		mkdir envoy ignored; echo a >envoy/a.yaml; echo b >README; echo c >ignored/c.yaml; echo ignored >.gitignore; echo x >'envoy/:x.yaml'
		git add .; git commit -qm one`)
	return dir
}

func TestRevision(t *testing.T) {
	dir := repository(t)
	// Two commits, so that the one of a linked work tree can be told apart.
	sh(t, dir, "git worktree add -q ../linked; git commit -q --allow-empty -m two; ln -s repository/envoy ../link; ln -s repository/envoy/a.yaml ../link.yaml; mkdir ../bare; git init -q --bare ../bare; git init -q ../unborn")
	one, two := sh(t, dir, "git rev-parse HEAD^"), sh(t, dir, "git rev-parse HEAD")
	index := filepath.Join(dir, ".git/index")
	for _, tt := range []struct{ name, setup, source, want string }{
		{"work tree", "", ".", two},
		{"folder in it", "", "envoy", two},
		{"one file", "", "envoy/a.yaml", two},
		{"name that is a pattern", "", "envoy/:x.yaml", two},
		{"link to the folder", "", "../link", two},
		{"link to the file", "", "../link.yaml", two},
		{"linked work tree", "", "../linked/envoy", one},
		{"change beside it", "echo y >README; echo y >new", "envoy", two},
		{"change of all of it", "", ".", two + "+dirty"},
		{"only the time is new", "touch envoy/a.yaml", "envoy", two},
		{"edited", "echo y >envoy/a.yaml", "envoy", two + "+dirty"},
		{"the edited file", "", "envoy/a.yaml", two + "+dirty"},
		{"the file beside it", "", "envoy/:x.yaml", two},
		{"staged", "git add envoy", "envoy", two + "+dirty"},
		{"new file", "git reset -q --hard; echo y >envoy/new.yaml", "envoy", two + "+dirty"},
		{"removed file", "rm envoy/*.yaml", "envoy", two + "+dirty"},
		{"ignored folder", "git reset -q --hard", "ignored", ""},
		{"new folder", "mkdir added; echo y >added/y.yaml; git add added", "added", ""},
		{"no commit yet", "", "../unborn", ""},
		{"bare repository", "", "../bare", ""},
		{"no work tree", "", "..", ""},
		{"no such folder", "", "nowhere", ""},
		{"format that git does not know", "git config core.repositoryformatversion 99", "envoy", ""},
	} {
		sh(t, dir, tt.setup)
		before, err := os.Stat(index)
		if err != nil {
			t.Fatal(err)
		}
		if got := revision(t.Context(), filepath.Join(dir, tt.source)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if after, err := os.Stat(index); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: the index was written anew: %v", tt.name, err)
		}
	}
}

// TestRevisionInHook: a git that runs a hook tells it its repository, which is not
// that of the source.
func TestRevisionInHook(t *testing.T) {
	dir := repository(t)
	t.Setenv("GIT_DIR", t.TempDir())
	t.Setenv("GIT_INDEX_FILE", filepath.Join(t.TempDir(), "index"))
	if got := revision(t.Context(), dir); len(got) != 40 {
		t.Errorf("%q", got)
	}
}

// TestRevisionOfSomebodyElse: git refuses a work tree that another user owns, and
// nothing talks it out of that.
func TestRevisionOfSomebodyElse(t *testing.T) {
	dir := repository(t)
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED, needs root")
	}
	sh(t, dir, "chown -R 12345 .")
	if got := revision(t.Context(), dir); got != "" {
		t.Errorf("%q", got)
	}
}

// TestRevisionWithoutGit: nothing fails where there is no git.
func TestRevisionWithoutGit(t *testing.T) {
	dir := repository(t)
	t.Setenv("PATH", t.TempDir())
	if got := revision(t.Context(), dir); got != "" {
		t.Errorf("%q", got)
	}
}

// TestPublishedRevision: the record has the commit that brought what is out, and
// keeps it for later commits that change nothing of it.
func TestPublishedRevision(t *testing.T) {
	dir := repository(t)
	s := newSite(t, func(o *Options) { o.Source = filepath.Join(dir, "tree") })
	recorded := func() string {
		t.Helper()
		m, err := publish.ReadManifest(s.p.options.Out)
		if err != nil {
			t.Fatal(err)
		}
		return m.Revision
	}
	commit := func(cluster string) string {
		t.Helper()
		s.tree("-- c.yaml --\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: " + cluster + "\n")
		return sh(t, dir, "git add tree; git commit -q --allow-empty -m more; git rev-parse HEAD")
	}
	first := commit("one")
	s.publish()
	if got := recorded(); got != first {
		t.Errorf("%q, want %q", got, first)
	}
	commit("one")
	s.publish()
	if got := recorded(); got != first {
		t.Errorf("after a commit that changes nothing: %q, want %q", got, first)
	}
	if err := os.Remove(filepath.Join(s.p.options.Out, "cds/cds.json")); err != nil {
		t.Fatal(err)
	}
	s.publish()
	if got := recorded(); got != first {
		t.Errorf("after the file was put back: %q, want %q", got, first)
	}
	third := commit("two")
	s.tree("-- c.yaml --\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: three\n")
	s.publish()
	if got := recorded(); got != third+"+dirty" {
		t.Errorf("%q, want %q", got, third+"+dirty")
	}
}
