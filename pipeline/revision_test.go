package pipeline_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/internal/fixture"
	"xdspub/pipeline"
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

// TestPublishedRevision: the record has the commit that brought what is out, and
// keeps it for later commits that change nothing of it.
func TestPublishedRevision(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED, needs git: ", err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir := t.TempDir()
	sh(t, dir, "git init -q; git config user.name me; git config user.email me@example.com")
	s := fixture.New(t, func(o *pipeline.Options) { o.Source.Path = filepath.Join(dir, "tree") })
	recorded := func() string {
		t.Helper()
		m, err := publish.ReadManifest(s.Options.Out)
		if err != nil {
			t.Fatal(err)
		}
		return m.Revision
	}
	commit := func(cluster string) string {
		t.Helper()
		s.Tree("-- c.yaml --\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: " + cluster + "\n")
		return sh(t, dir, "git add tree; git commit -q --allow-empty -m more; git rev-parse HEAD")
	}
	first := commit("one")
	s.Publish()
	if got := recorded(); got != first {
		t.Errorf("%q, want %q", got, first)
	}
	commit("one")
	s.Publish()
	if got := recorded(); got != first {
		t.Errorf("after a commit that changes nothing: %q, want %q", got, first)
	}
	if err := os.Remove(filepath.Join(s.Options.Out, "cds/cds.json")); err != nil {
		t.Fatal(err)
	}
	s.Publish()
	if got := recorded(); got != first {
		t.Errorf("after the file was put back: %q, want %q", got, first)
	}
	third := commit("two")
	s.Tree("-- c.yaml --\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: three\n")
	s.Publish()
	if got := recorded(); got != third+"+dirty" {
		t.Errorf("%q, want %q", got, third+"+dirty")
	}
}
