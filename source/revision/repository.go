package revision

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"xdspub/internal/safefile"
	"xdspub/source/gitdir"
)

// repository is a git repository with a work tree, read from its files without git.
type repository struct {
	top    string // the folder that holds .git
	gitDir string // holds HEAD and the index
	common string // holds objects and refs; differs from gitDir in a linked work tree
	commit string // in hexadecimal
}

const (
	// maxGitFile is the largest size in bytes of the repository's one-line files.
	maxGitFile = 64 << 10
	// maxPackedRefs is the largest size of packed-refs in bytes, enough for 500,000 references.
	maxPackedRefs = 64 << 20
	// maxSymbolicRefs is the longest chain of symbolic references.
	maxSymbolicRefs = 5
)

// enclosingRepository returns the repository whose work tree holds dir. Only a .git counts. git itself also
// accepts any folder with HEAD, objects and refs, which a commit can contain together with settings that
// start programs.
func enclosingRepository(dir string) (repository, bool) {
	if list := gitdir.Enclosing(dir); len(list) > 0 {
		return repositoryAt(filepath.Dir(list[0]), dir)
	}
	return repository{}, false
}

// repositoryAt returns the repository whose .git is in the folder top. If dir is not empty, the .git must
// belong to the owner of dir, to the current user or to root, because anyone can create a .git in a folder
// like /tmp.
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

// mayBeTrusted reports whether a file belongs to the owner of dir, to the current user or to root.
func mayBeTrusted(file os.FileInfo, dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	theirs, ok := file.Sys().(*syscall.Stat_t)
	of, also := info.Sys().(*syscall.Stat_t)
	return ok && also && (theirs.Uid == of.Uid || theirs.Uid == 0 || int(theirs.Uid) == os.Geteuid())
}

// firstLine returns the first line of a small file; empty if the file can't be read.
func firstLine(path string) string {
	data, err := safefile.Read(path, maxGitFile)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimRight(line, "\r ")
}

// resolve returns the commit of a reference; empty if the reference leads to no commit. resolve doesn't
// support reftable, whose HEAD leads to no reference file.
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

// isCommit reports whether a text is a SHA-1 or SHA-256 object name.
func isCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
