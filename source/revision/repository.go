package revision

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"xdspub/internal/safefile"
	"xdspub/source/gitdir"
)

// repository is a git repository with a work tree, as far as its files say without
// git: which commit is checked out, and where the objects and the index are.
type repository struct {
	top    string // the folder that holds .git
	gitDir string // holds HEAD and the index
	common string // holds objects and refs; another than gitDir in a linked work tree
	commit string // in hexadecimal
}

const (
	// maxGitFile bounds the small files of a repository, each of one line.
	maxGitFile = 64 << 10
	// maxPackedRefs bounds the list of references: some 500,000.
	maxPackedRefs = 64 << 20
	// maxSymbolicRefs is how many references lead from one to the next.
	maxSymbolicRefs = 5
)

// enclosingRepository returns the one whose work tree holds dir. Only a .git makes one:
// git takes any folder for a repository that has a HEAD, objects and refs, and
// somebody can commit one of these, with settings that start programs.
func enclosingRepository(dir string) (repository, bool) {
	if list := gitdir.Enclosing(dir); len(list) > 0 {
		return repositoryAt(filepath.Dir(list[0]), dir)
	}
	return repository{}, false
}

// repositoryAt returns the one whose .git is in the folder top. Where a folder in its
// work tree is given, the .git must belong to the owner of that folder, to us or to
// root: in a folder like /tmp, anyone can put one above it.
func repositoryAt(top, dir string) (repository, bool) {
	r := repository{top: top}
	dotGit := filepath.Join(top, gitdir.Name)
	info, err := os.Stat(dotGit)
	if err != nil || dir != "" && !mayBeTrusted(info, dir) {
		return r, false
	}
	ok := false
	if r.gitDir, ok = gitdir.Of(dotGit); !ok {
		return r, false
	}
	r.common = r.gitDir
	if to := firstLine(filepath.Join(r.gitDir, "commondir")); to != "" {
		if r.common = to; !filepath.IsAbs(to) {
			r.common = filepath.Join(r.gitDir, to)
		}
	}
	r.commit = r.resolve("HEAD", maxSymbolicRefs)
	return r, r.commit != ""
}

// mayBeTrusted reports whether a file belongs to somebody who may say which commit
// the folder dir is of.
func mayBeTrusted(file os.FileInfo, dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	theirs, ok := file.Sys().(*syscall.Stat_t)
	of, also := info.Sys().(*syscall.Stat_t)
	return ok && also && (theirs.Uid == of.Uid || theirs.Uid == 0 || int(theirs.Uid) == os.Geteuid())
}

// firstLine is that of a small file, empty where it can't be read.
func firstLine(path string) string {
	data, err := safefile.Read(path, maxGitFile)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimRight(line, "\r ")
}

// resolve returns the commit that a reference leads to, empty where it leads to none. It
// does not know reftable, whose HEAD leads to nothing.
func (r repository) resolve(name string, steps int) string {
	if steps == 0 || name != "HEAD" && !strings.HasPrefix(name, "refs/") || !filepath.IsLocal(name) {
		return ""
	}
	for _, dir := range []string{r.gitDir, r.common} {
		line := firstLine(filepath.Join(dir, filepath.FromSlash(name)))
		if to, ok := strings.CutPrefix(line, "ref: "); ok {
			return r.resolve(strings.TrimSpace(to), steps-1)
		}
		if isCommit(line) {
			return line
		}
	}
	packed, err := safefile.Read(filepath.Join(r.common, "packed-refs"), maxPackedRefs)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(packed)) {
		if commit, of, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " "); of == name && isCommit(commit) {
			return commit
		}
	}
	return ""
}

// isCommit reports whether a text is the name of an object, by SHA-1 or SHA-256.
func isCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
