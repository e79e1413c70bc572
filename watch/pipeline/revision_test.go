package pipeline_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"xdspub/render/publish"
	"xdspub/tools/fixture"
	"xdspub/tools/sh"
	"xdspub/watch/pipeline"
)

// TestPublishedRevision checks that the record has the commit of the published files, and keeps it for later
// commits without changes of these files.
func TestPublishedRevision(t *testing.T) {
	sh.Git(t)
	dir := t.TempDir()
	sh.Run(t, dir, "git init -q; git config user.name me; git config user.email me@example.com")
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
		return sh.Run(t, dir, "git add tree; git commit -q --allow-empty -m more; git rev-parse HEAD")
	}
	first := commit("one")
	s.Publish()
	if got := recorded(); got != first {
		t.Errorf("%q, want %q", got, first)
	}
	second := commit("one")
	s.Publish()
	if got := recorded(); got != second {
		t.Errorf("after a commit that changes nothing: %q, want %q", got, second)
	}
	if err := os.Remove(filepath.Join(s.Options.Out, "cds/cds.json")); err != nil {
		t.Fatal(err)
	}
	s.Publish()
	if got := recorded(); got != second {
		t.Errorf("after the file was put back: %q, want %q", got, second)
	}
	third := commit("two")
	s.Tree("-- c.yaml --\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: three\n")
	s.Publish()
	if got := recorded(); got != third+"+dirty" {
		t.Errorf("%q, want %q", got, third+"+dirty")
	}
}

// TestGitIsSlow checks that no file waits for git, which here answers after all files are published. The record
// then gets the answer.
func TestGitIsSlow(t *testing.T) {
	sh.Git(t)
	dir, bin := t.TempDir(), t.TempDir()
	sh.Run(t, dir, "git init -q; git config user.name me; git config user.email me@example.com")
	s := fixture.New(t, func(o *pipeline.Options) { o.Source.Path = filepath.Join(dir, "tree") })
	s.Tree("-- c.yaml --\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: a\n")
	commit := sh.Run(t, dir, "git add tree; git commit -qm one; git rev-parse HEAD")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	slow := fmt.Sprintf("#!/bin/sh\nuntil [ -e %s ]; do sleep 0.01; done\nexec %s \"$@\"\n", filepath.Join(s.Options.Out, "cds/cds.json"), git)
	sh.Program(t, filepath.Join(bin, "git"), slow)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.Publish()
	if m, err := publish.ReadManifest(s.Options.Out); err != nil || m.Revision != commit {
		t.Errorf("%v: %q, want %q", err, m.Revision, commit)
	}
}

// TestRevisionLater checks that a commit that was unknown at a publish is recorded by the next reconcile.
func TestRevisionLater(t *testing.T) {
	sh.Git(t)
	dir := t.TempDir()
	s := fixture.New(t, func(o *pipeline.Options) { o.Source.Path = filepath.Join(dir, "tree") })
	s.Tree("-- c.yaml --\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: a\n")
	s.Publish()
	commit := sh.Run(t, dir, "git init -q; git config user.name me; git config user.email me@example.com; git add tree; git commit -qm one; git rev-parse HEAD")
	s.Publish()
	if m, err := publish.ReadManifest(s.Options.Out); err != nil || m.Revision != commit {
		t.Errorf("%v: %q, want %q", err, m.Revision, commit)
	}
}
