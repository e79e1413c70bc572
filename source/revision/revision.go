// Package revision tells the git commit of a source tree. It runs git, and obeys no settings
// that came with the tree.
//
//	commit := revision.Of(ctx, "/srv/config/envoy") // "" where there is none
package revision

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"xdspub/internal/fspath"
)

// timeout is for all questions about the commit: a change waits for them.
const timeout = 3 * time.Second

// maxSubmodules is how deep submodules are looked into.
const maxSubmodules = 8

// Of returns the commit of the git work tree that a source is in, with "+dirty"
// where the source is not as in that commit. It is empty where there is none to
// tell: no git, no work tree, a source that the commit does not hold, a repository
// of somebody else, or one that takes too long.
func Of(ctx context.Context, source string) string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return of(ctx, source)
}

// Ask is Of that does not wait: answer does.
func Ask(ctx context.Context, source string) (answer func() string) {
	answer = sync.OnceValue(func() string { return Of(ctx, source) })
	go answer()
	return answer
}

// of is Of that takes as long as ctx lets it.
func of(ctx context.Context, source string) string {
	source = fspath.Resolve(source)
	dir := source
	if info, err := os.Stat(source); err == nil && !info.IsDir() {
		dir = filepath.Dir(source)
	}
	r, ok := enclosingRepository(dir)
	if !ok {
		return ""
	}
	below, err := filepath.Rel(r.top, source)
	if err != nil {
		return ""
	}
	if below = filepath.ToSlash(below); below == "." {
		below = ""
	}
	dirty, err := r.differs(ctx, below, 0)
	switch {
	case err != nil:
		return ""
	case dirty:
		return r.commit + "+dirty"
	}
	return r.commit
}

// differs reports whether what the work tree holds below a path, submodules among it,
// is not what the commit holds. It is an error that the commit has nothing there.
func (r repository) differs(ctx context.Context, below string, depth int) (bool, error) {
	git, err := newGit(r)
	if err != nil {
		return false, err
	}
	defer git.close()
	if _, err := git.run(ctx, "rev-parse", "--verify", "--quiet", r.commit+":"+below); err != nil {
		return false, err // ignored by git, or not added yet
	}
	path := cmp.Or(below, ".")
	// git would start another one in each submodule, which obeys the settings there.
	changes, err := git.run(ctx, "status", "--porcelain", "--ignore-submodules=all", "--", path)
	if err != nil || changes != "" {
		return true, err
	}
	if _, err := os.Lstat(filepath.Join(r.top, ".gitmodules")); err != nil || depth == maxSubmodules {
		return false, nil
	}
	staged, err := git.run(ctx, "ls-files", "--stage", "-z", "--", path)
	if err != nil {
		return false, err
	}
	for entry := range strings.SplitSeq(staged, "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		if commit, ok := strings.CutPrefix(about, "160000 "); ok {
			if dirty, err := r.submoduleDiffers(ctx, name, strings.Fields(commit)[0], depth); dirty || err != nil {
				return dirty, err
			}
		}
	}
	return false, nil
}

// submoduleDiffers is differs for the submodule in a folder of r. One that is not
// checked out does not differ.
func (r repository) submoduleDiffers(ctx context.Context, name, commit string, depth int) (bool, error) {
	sub, ok := repositoryAt(filepath.Join(r.top, filepath.FromSlash(name)), "")
	switch {
	case !ok:
		return false, nil
	case sub.commit != commit:
		return true, nil
	}
	return sub.differs(ctx, "", depth+1)
}
