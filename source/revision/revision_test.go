package revision

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"xdspub/tools/sh"
)

// newRepository returns a git work tree with a source tree in its folder envoy.
func newRepository(t *testing.T) (dir string) {
	t.Helper()
	sh.Git(t)
	dir = filepath.Join(t.TempDir(), "repository")
	sh.Run(t, ".", "git init -q "+dir)
	sh.Run(t, dir, `git config user.name me; git config user.email me@example.com
		mkdir envoy ignored; echo a >envoy/a.yaml; echo b >README; echo c >ignored/c.yaml; echo ignored >.gitignore; echo x >'envoy/:x.yaml'
		git add .; git commit -qm one`)
	return dir
}

func TestRevision(t *testing.T) {
	dir := newRepository(t)
	// Two commits, so that a linked work tree has another commit.
	sh.Run(t, dir, "git worktree add -q ../linked; git commit -q --allow-empty -m two; ln -s repository/envoy ../link; ln -s repository/envoy/a.yaml ../link.yaml; mkdir ../bare; git init -q --bare ../bare; git init -q ../unborn")
	one, two := sh.Run(t, dir, "git rev-parse HEAD^"), sh.Run(t, dir, "git rev-parse HEAD")
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
		{"settings are not read", "git config -f .git/config core.worktree /nowhere; git config -f .git/config core.repositoryformatversion 99", "envoy", two},
		{"reference that leads out", "echo 'ref: refs/../../secret' >.git/HEAD; cat .git/refs/heads/* >secret", "envoy", ""},
		{"reference that leads to itself", "echo 'ref: refs/heads/loop' | tee .git/refs/heads/loop >.git/HEAD", "envoy", ""},
		{"reference that is a pipe", "rm .git/HEAD; mkfifo .git/HEAD", "envoy", ""},
		{".git that is a pipe", "mv .git moved; mkfifo .git", "envoy", ""},
		{".git of other text", "rm .git; echo hello >.git", "envoy", ""},
	} {
		sh.Run(t, dir, tt.setup)
		before, _ := os.Stat(index)
		if got := of(t.Context(), filepath.Join(dir, tt.source)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if after, _ := os.Stat(index); before != nil && (after == nil || !os.SameFile(before, after)) {
			t.Errorf("%s: the index was written again", tt.name)
		}
	}
}

// TestRevisionInHook checks that Of ignores the repository that git passes to its hooks.
// TestAbout: author and subject are printable and short, and come from the commit alone.
func TestAbout(t *testing.T) {
	dir := newRepository(t)
	sh.Run(t, dir, "GIT_AUTHOR_NAME=$(printf 'An\\033[31m\\000a') git commit -q --allow-empty -m \"$(printf 'Add \\033]0;x\\007 '; head -c 500 /dev/zero | tr '\\0' é)\n\nbody\"; echo y >envoy/a.yaml")
	is := of(t.Context(), filepath.Join(dir, "envoy"))
	if !strings.HasSuffix(is, "+dirty") {
		t.Fatal(is)
	}
	author, subject := About(t.Context(), filepath.Join(dir, "envoy/a.yaml"), is)
	if !strings.HasPrefix(author, "An") || !strings.HasPrefix(subject, "Add ") || utf8.RuneCountInString(subject) != maxAbout || strings.ContainsAny(author+subject, "\x1b\x07\x00") {
		t.Errorf("%q, %q", author, subject)
	}
	for _, no := range []string{"", "--output=x", "HEAD", strings.Repeat("0", 40), is[:39]} {
		if author, subject := About(t.Context(), dir, no); author+subject != "" {
			t.Errorf("%q: %q, %q", no, author, subject)
		}
	}
	if author, subject := About(t.Context(), t.TempDir(), is); author+subject != "" {
		t.Errorf("no repository: %q, %q", author, subject)
	}
}

func TestRevisionInHook(t *testing.T) {
	dir := newRepository(t)
	t.Setenv("GIT_DIR", t.TempDir())
	t.Setenv("GIT_INDEX_FILE", filepath.Join(t.TempDir(), "index"))
	if got := of(t.Context(), dir); len(got) != 40 {
		t.Errorf("%q", got)
	}
}

// TestRevisionOfSomebodyElse checks that only a .git of the source's owner counts, not one that another user
// created in a folder above.
func TestRevisionOfSomebodyElse(t *testing.T) {
	dir := newRepository(t)
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED, needs root")
	}
	for _, tt := range []struct {
		name, setup string
		told        bool
	}{
		{"all of it", "chown -R 12345 .", true},
		{"but the source", "chown -R 0 envoy", false},
		{"of root", "chown -R 0 .; chown -R 12345 envoy", true},
	} {
		sh.Run(t, dir, tt.setup)
		if got := of(t.Context(), filepath.Join(dir, "envoy")); (got != "") != tt.told {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// TestRevisionOfSubmodules checks that a submodule counts as a work tree, and as a part of the work tree around
// it.
func TestRevisionOfSubmodules(t *testing.T) {
	dir := newRepository(t)
	sh.Run(t, dir, "git init -q ../other; cd ../other; echo a >a; git add a; git "+asMe+" commit -qm one")
	sh.Run(t, dir, "git -c protocol.file.allow=always submodule --quiet add ../other envoy/sub; git commit -qm two")
	outer, inner := sh.Run(t, dir, "git rev-parse HEAD"), sh.Run(t, dir, "git -C envoy/sub rev-parse HEAD")
	for _, tt := range []struct{ name, setup, source, want string }{
		{"submodule", "", "envoy/sub", inner},
		{"around it", "", "envoy", outer},
		{"edited", "echo b >envoy/sub/a", "envoy/sub", inner + "+dirty"},
		{"around what is edited", "", "envoy", outer + "+dirty"},
		{"beside it", "", "README", outer},
		{"another commit", "cd envoy/sub; git checkout -q .; git " + asMe + " commit -q --allow-empty -m two", "envoy", outer + "+dirty"},
		{"not checked out", "git submodule --quiet deinit -f envoy/sub", "envoy", outer},
	} {
		sh.Run(t, dir, tt.setup)
		if got := of(t.Context(), filepath.Join(dir, tt.source)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

const asMe = "-c user.name=me -c user.email=me@example.com"

// TestRevisionOfSHA256 checks a repository whose commit names are SHA-256 hashes.
func TestRevisionOfSHA256(t *testing.T) {
	newRepository(t) // for its environment
	dir := filepath.Join(t.TempDir(), "repository")
	sh.Run(t, ".", "git init -q --object-format sha256 "+dir)
	sh.Run(t, dir, "echo a >a; git add a; git "+asMe+" commit -qm one; git pack-refs --all; git gc -q")
	if got, want := of(t.Context(), dir), sh.Run(t, dir, "git rev-parse HEAD"); got != want || len(got) != 64 {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRevisionRunsNothing checks that no git setting in the tree starts a program.
func TestRevisionRunsNothing(t *testing.T) {
	for _, tt := range []struct {
		name, setup, source string
		told                bool
	}{
		// A committed folder that git takes for a repository. An ordinary clone has it.
		{"bare repository", `cd envoy; mkdir -p objects/info refs; touch refs/keep; echo ../../.git/objects >objects/info/alternates; git rev-parse HEAD >commit; mv commit HEAD; cp ../.git/index index
			git config -f config core.bare false; git config -f config core.worktree ..; git config -f config core.repositoryformatversion 0; hostile config; cd ..; git add -f .; git commit -qm bare`, "envoy", true},
		// Files that come with an archive, or from somebody with access.
		{"settings", "hostile .git/config; echo '* filter=f diff=f' >.gitattributes; touch envoy/*; echo y >>envoy/a.yaml", "envoy", true},
		{"included settings", "hostile .git/more; git config include.path more", "envoy", true},
		{"settings of a work tree", "git config extensions.worktreeConfig true; hostile .git/config.worktree", "envoy", true},
		{"settings of the user", `hostile "$HOME/.gitconfig"; echo '* filter=f' >envoy/.gitattributes; touch envoy/a.yaml; echo y >>envoy/a.yaml`, "envoy", true},
		{"hooks", `for hook in post-index-change fsmonitor-watchman reference-transaction; do printf '#!/bin/sh\nRAN\n' >.git/hooks/$hook; chmod +x .git/hooks/$hook; done; touch envoy/*`, "envoy", true},
		{"settings of a submodule", "git init -q envoy/sub; cd envoy/sub; echo a >a; git add a; git " + asMe + ` commit -qm one; cd ../..
			printf '[submodule "s"]\npath = envoy/sub\nurl = ./x\n' >.gitmodules; git add . 2>&1; git commit -qm sub; hostile envoy/sub/.git/config; touch envoy/sub/a`, "envoy", true},
		{"another repository", `git init -q --bare ../evil; hostile ../evil/config; mkdir envoy/deep; echo 'gitdir: ../../../evil' >envoy/deep/.git; echo a >envoy/deep/a`, "envoy/deep", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := newRepository(t)
			home := t.TempDir()
			t.Setenv("HOME", home)
			os.Unsetenv("GIT_CONFIG_GLOBAL") // Setenv in newRepository puts it back
			ran := filepath.Join(home, "ran")
			command := filepath.Join(home, "command")
			sh.Program(t, command, "#!/bin/sh\necho \"$@\" >>"+ran+"\n")
			hostile := `hostile() {
				for name in core.fsmonitor core.sshCommand core.pager core.editor core.askPass diff.external filter.f.clean filter.f.smudge filter.f.process diff.f.textconv diff.f.command uploadpack.packObjectsHook alias.status alias.rev-parse; do
					git config -f "$1" $name "` + command + `"
				done
				git config -f "$1" filter.f.required true
				git config -f "$1" core.hooksPath "` + home + `"
			}
			`
			if err := os.Symlink(command, filepath.Join(home, "post-index-change")); err != nil {
				t.Fatal(err)
			}
			sh.Run(t, dir, hostile+strings.ReplaceAll(tt.setup, "RAN", command))
			os.Remove(ran) // the setup itself ran git
			if got := of(t.Context(), filepath.Join(dir, tt.source)); (got != "") != tt.told {
				t.Errorf("%q", got)
			}
			if b, err := OpenBase(t.Context(), filepath.Join(dir, tt.source), "HEAD"); err == nil {
				if err := b.Write(t.Context(), filepath.Join(dir, tt.source), t.TempDir()); err != nil {
					t.Error(err)
				}
				b.Close()
			}
			Had(t.Context(), filepath.Join(dir, tt.source, "gone.yaml"))
			if args, err := os.ReadFile(ran); err == nil {
				t.Errorf("a command ran, with arguments %q", args)
			}
		})
	}
}

// TestRevisionWithoutGit checks that Of works without git.
func TestRevisionWithoutGit(t *testing.T) {
	dir := newRepository(t)
	t.Setenv("PATH", t.TempDir())
	if got := of(t.Context(), dir); got != "" {
		t.Errorf("%q", got)
	}
}
