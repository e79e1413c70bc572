package revision

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/sh"
)

// TestBase checks that Write writes the commit's files unchanged, for all names. Links stay links, and
// submodules are omitted.
func TestBase(t *testing.T) {
	dir := newRepository(t)
	sh.Run(t, dir, `printf 'a\r\n\000b' >'envoy/q"uo	te.yaml'; mkdir -p envoy/deep/er; echo deep >envoy/deep/er/é.yaml; ln -s ../../README envoy/deep/link.yaml; ln -s /etc/passwd envoy/out.yaml
		: >envoy/empty.yaml; git init -q envoy/sub; cd envoy/sub; echo a >a; git add a; git `+asMe+` commit -qm one; cd ../..
		git add . 2>&1; git commit -qm two; git tag -a -m note noted; git pack-refs --all; git worktree add -q ../linked; git checkout -q -b other HEAD~1`)
	for _, source := range []string{dir, filepath.Join(dir, "../linked")} {
		top := t.TempDir()
		b, err := OpenBase(t.Context(), filepath.Join(source, "envoy"), "noted")
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := b.Write(t.Context(), filepath.Join(b.Top(), "envoy"), top); err != nil {
			t.Fatal(err)
		}
		if is, want := sh.Run(t, top, "find . -type f -o -type l | LC_ALL=C sort"), "./envoy/:x.yaml\n./envoy/a.yaml\n./envoy/deep/er/é.yaml\n./envoy/deep/link.yaml\n./envoy/empty.yaml\n./envoy/out.yaml\n./envoy/q\"uo\tte.yaml"; is != want {
			t.Errorf("%s, want %s", is, want)
		}
		if text, err := os.ReadFile(filepath.Join(top, "envoy", "q\"uo\tte.yaml")); string(text) != "a\r\n\x00b" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if to, err := os.Readlink(filepath.Join(top, "envoy/out.yaml")); to != "/etc/passwd" || err != nil {
			t.Error(to, err)
		}
		if err := b.Write(t.Context(), filepath.Join(b.Top(), "nowhere"), top); err != nil {
			t.Error(err)
		}
		if err := b.Write(t.Context(), filepath.Join(b.Top(), ".."), top); err == nil {
			t.Error("what is not in the work tree was written")
		}
		whole := t.TempDir()
		if err := b.Write(t.Context(), b.Top(), whole); err != nil || sh.Run(t, whole, "cat README") != "b" {
			t.Error(err)
		}
	}
	for _, rev := range []string{"", "nowhere", "--help", "HEAD:envoy", "HEAD^{tree}", "../../x", "HEAD~9", "a b"} {
		if _, err := OpenBase(t.Context(), dir, rev); err == nil {
			t.Errorf("there is a revision %q", rev)
		}
	}
}

// TestBaseFetched checks that a commit that a shallow clone has fetched without a name is FETCH_HEAD, even in a
// linked work tree.
func TestBaseFetched(t *testing.T) {
	dir := newRepository(t)
	sh.Run(t, dir, `git commit -q --allow-empty -m two; git clone -q --depth 1 "file://$PWD" ../shallow 2>&1; cd ../shallow; git worktree add -q --detach ../beside`)
	want := sh.Run(t, dir, "git rev-parse HEAD~1")
	for _, clone := range []string{"shallow", "beside"} {
		clone = filepath.Join(dir, "..", clone)
		if _, err := OpenBase(t.Context(), clone, "FETCH_HEAD"); err == nil {
			t.Error("nothing was fetched, and there is a FETCH_HEAD")
		}
		sh.Run(t, clone, "git fetch -q --depth 1 origin "+want)
		b, err := OpenBase(t.Context(), clone, "FETCH_HEAD")
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if b.commit != want {
			t.Errorf("FETCH_HEAD is %s, want %s", b.commit, want)
		}
	}
}

// TestBaseLacking checks that, if a partial clone lacks the content of a commit, the error says how to fetch
// it, and that the remedy works.
func TestBaseLacking(t *testing.T) {
	dir := newRepository(t)
	sh.Run(t, dir, `git config uploadpack.allowFilter true; echo y >envoy/a.yaml; git commit -qam two; git clone -q --filter=blob:none "file://$PWD" ../partial`)
	partial := filepath.Join(dir, "../partial")
	b, err := OpenBase(t.Context(), partial, "HEAD~1")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	err = b.Write(t.Context(), b.Top(), t.TempDir())
	if err == nil {
		t.Fatal("the content of all files is there")
	}
	_, remedy, _ := strings.Cut(err.Error(), "lacks the content of envoy/a.yaml in commit "+b.commit+": run ")
	remedy, _, _ = strings.Cut(remedy, " in a partial clone")
	sh.Run(t, partial, remedy)
	if err := b.Write(t.Context(), b.Top(), t.TempDir()); err != nil {
		t.Errorf("after %q: %v", remedy, err)
	}
}

// TestHad distinguishes a removed file from a file that never existed.
func TestHad(t *testing.T) {
	dir := newRepository(t)
	sh.Run(t, dir, `git mv envoy/a.yaml envoy/b.yaml; git commit -qm two; git rm -q README; mkdir new; echo n >new/n.yaml`)
	for path, want := range map[string]bool{
		"envoy/a.yaml": true, "envoy/b.yaml": true, "README": true, "new/n.yaml": false, "envoy/c.yaml": false, "../b.yaml": false, "none/b.yaml": false, "envoy/:x.yaml": true, "envoy/*.yaml": false,
	} {
		if got := Had(t.Context(), filepath.Join(dir, path)); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
