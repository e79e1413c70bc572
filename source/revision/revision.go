// Package revision determines the git commit of a source tree. Package revision runs git, but ignores
// settings that come with the tree.
//
//	commit := revision.Of(ctx, "/srv/config/envoy") // "" without a commit
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

// timeout is the timeout for Of. A change of the source tree waits for Of.
const timeout = 3 * time.Second

// maxSubmodules is the largest depth of submodules that Of compares.
const maxSubmodules = 8

// Of returns the commit of the git work tree that holds a source, with "+dirty" if the source differs from
// the commit. Of returns "" without git or a work tree, for a source outside the commit, for a repository of
// another user, and after a timeout.
func Of(ctx context.Context, source string) string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return of(ctx, source)
}

// Ask starts Of in the background; answer waits for its result.
func Ask(ctx context.Context, source string) (answer func() string) {
	answer = sync.OnceValue(func() string { return Of(ctx, source) })
	go answer()
	return answer
}

// of is Of without the timeout.
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

// differs reports whether the work tree differs from the commit below a path, including submodules. differs
// returns an error if the commit lacks the path.
func (r repository) differs(ctx context.Context, below string, depth int) (bool, error) {
	git, err := newGit(r)
	if err != nil {
		return false, err
	}
	defer git.close()
	if _, err := git.run(ctx, "rev-parse", "--verify", "--quiet", r.commit+":"+below); err != nil {
		return false, err // ignored by git, or not committed yet
	}
	path := cmp.Or(below, ".")
	// Without --ignore-submodules git would start another git in each submodule, with the settings of the
	// submodule.
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

// submoduleDiffers is differs for the submodule in a folder of r. A submodule without a checkout doesn't
// differ.
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
