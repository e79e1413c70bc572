package pipeline

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// revisionTimeout is for all questions to git: a change waits for them.
const revisionTimeout = 3 * time.Second

// revision is the commit of the git work tree that a source is in, with "+dirty"
// where the source is not as in that commit. It is empty where there is none to
// tell: no git, no work tree, a source that the commit does not hold, a git that
// refuses (safe.directory) or takes too long.
func revision(ctx context.Context, source string) string {
	dir, name := source, "" // "" is all of dir
	if info, err := os.Stat(source); err == nil && !info.IsDir() {
		dir, name = filepath.Split(resolved(source)) // git follows no link
	}
	ctx, cancel := context.WithTimeout(ctx, revisionTimeout)
	defer cancel()
	commit, err := git(ctx, dir, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return ""
	}
	if _, err := git(ctx, dir, "rev-parse", "--verify", "HEAD:./"+name); err != nil {
		return "" // ignored by git, or not added yet
	}
	changes, err := git(ctx, dir, "status", "--porcelain", "--", cmp.Or(name, "."))
	switch {
	case err != nil:
		return ""
	case changes != "":
		return commit + "+dirty"
	}
	return commit
}

// git is what a git command says, without the line break.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // what it starts may hold on to its output
	// A hook gives its git's variables to whoever it starts.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return slices.ContainsFunc([]string{"GIT_DIR=", "GIT_WORK_TREE=", "GIT_INDEX_FILE=", "GIT_COMMON_DIR=", "GIT_OBJECT_DIRECTORY=", "GIT_ALTERNATE_OBJECT_DIRECTORIES=", "GIT_PREFIX="},
			func(name string) bool { return strings.HasPrefix(v, name) })
	})
	// status would write the index anew, under a lock: that is for who works there.
	cmd.Env = append(cmd.Env, "GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1")
	out, err := cmd.Output()
	return strings.TrimRight(string(out), "\n"), err
}
