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

	"xdspub/diag"
	"xdspub/internal/crash"
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

// Ask starts Of in the background; answer waits for its result. If Of panics, answer panics.
func Ask(ctx context.Context, source string) (answer func() string) {
	answer = sync.OnceValue(func() string { return Of(ctx, source) })
	go crash.Guard(func() { answer() }, func(*crash.Error) {})() // answer panics again for its caller
	return answer
}

// About returns the author and the subject of a revision that Of has returned for a source: at most 200 characters
// each, and printable. About returns "" if Of would.
func About(ctx context.Context, source, revision string) (author, subject string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	commit, _, _ := strings.Cut(revision, "+")
	r, ok := enclosingRepository(folderOf(fspath.Resolve(source)))
	if !ok || !isCommit(commit) {
		return "", ""
	}
	git, err := newGit(r)
	if err != nil {
		return "", ""
	}
	defer git.close()
	text, err := git.run(ctx, "log", "-1", "--encoding=UTF-8", "--format=%an%x00%s", commit)
	if err != nil {
		return "", ""
	}
	author, subject, _ = strings.Cut(strings.TrimSuffix(text, "\n"), "\x00")
	return short(author), short(subject)
}

// maxAbout is the number of characters of an author or a subject.
const maxAbout = 200

// short returns a text of a commit for a log.
func short(text string) string {
	text = diag.Printable(strings.ToValidUTF8(text, "\uFFFD"))
	if runes := []rune(text); len(runes) > maxAbout {
		text = string(runes[:maxAbout-1]) + "…"
	}
	return text
}

// folderOf returns the folder of a source, which may be a file.
func folderOf(source string) string {
	if info, err := os.Stat(source); err == nil && !info.IsDir() {
		return filepath.Dir(source)
	}
	return source
}

// of is Of without the timeout.
func of(ctx context.Context, source string) string {
	source = fspath.Resolve(source)
	r, ok := enclosingRepository(folderOf(source))
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
