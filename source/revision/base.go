package revision

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"xdspub/internal/bounded"
	"xdspub/internal/fspath"
)

// maxBase is the largest total size of the files that Base.Write writes, in bytes.
const maxBase = 1 << 30

// patience is the timeout for a question about a commit: files of a repository can block git forever.
const patience = time.Minute

// patiently returns a context that ends after patience.
func patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("git has not answered within %s", patience))
}

// maxComplaint is the largest error output of git that is kept, in bytes.
const maxComplaint = 64 << 10

// Base is a commit to compare a work tree with.
type Base struct {
	repository repository
	git        *git
	commit     string
}

// OpenBase opens the commit that a revision names, such as origin/main or HEAD~1, in the repository whose
// work tree holds path. The caller must close the Base.
func OpenBase(ctx context.Context, path, rev string) (*Base, error) {
	dir := fspath.Resolve(path)
	if fspath.IsFile(dir) {
		dir = filepath.Dir(dir)
	}
	r, ok := enclosingRepository(dir)
	if !ok {
		return nil, fmt.Errorf("%s is not in a git work tree with a commit, or in one of somebody else", path)
	}
	g, err := newGit(r)
	if err != nil {
		return nil, err
	}
	if err := g.knowNames(r); err != nil {
		g.close()
		return nil, err
	}
	ctx, cancel := patiently(ctx)
	defer cancel()
	said, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	commit := strings.TrimSpace(said)
	switch {
	case ctx.Err() != nil:
		g.close()
		return nil, context.Cause(ctx)
	case err != nil || !isCommit(commit):
		g.close()
		return nil, fmt.Errorf("%s has no commit %q: name it by a branch, a tag or its hash, or as one before these, such as HEAD~1; "+
			"in a shallow clone, fetch it first", r.top, rev)
	}
	return &Base{repository: r, git: g, commit: commit}, nil
}

// knowNames lets git resolve the names of commits: branches, tags, reflog entries and FETCH_HEAD.
func (g *git) knowNames(r repository) error {
	if err := os.Remove(filepath.Join(g.dir, "refs")); err != nil {
		return err
	}
	for _, name := range []string{"refs", "packed-refs", "logs", "shallow"} {
		if err := os.Symlink(filepath.Join(r.common, name), filepath.Join(g.dir, name)); err != nil {
			return err
		}
	}
	return os.Symlink(filepath.Join(r.gitDir, "FETCH_HEAD"), filepath.Join(g.dir, "FETCH_HEAD"))
}

// Close removes the temporary files of the Base.
func (b *Base) Close() { b.git.close() }

// Top returns the top folder of the work tree.
func (b *Base) Top() string { return b.repository.top }

// Write copies the commit's version of path, a file or a folder in the work tree, below top, which stands for
// the top of the work tree. Write runs no filters, writes links as links, and omits submodules. If the commit
// has no such path, Write writes nothing and returns nil.
func (b *Base) Write(ctx context.Context, path, top string) error {
	below, err := filepath.Rel(b.repository.top, fspath.Resolve(path))
	if err != nil || !filepath.IsLocal(below) {
		return fmt.Errorf("%s is not in the work tree %s", path, b.repository.top)
	}
	ctx, cancel := patiently(ctx)
	defer cancel()
	list, err := b.git.run(ctx, "ls-tree", "-r", "-l", "-z", "--full-tree", b.commit, "--", filepath.ToSlash(below))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("list the files of commit %s: %w", b.commit, err)
	}
	files, err := parseFiles(list)
	if lacks, ok := errors.AsType[lacksError](err); ok {
		return fmt.Errorf("the repository of %s lacks the content of %s in commit %s: run git diff %s > /dev/null in a partial clone "+
			"to fetch the content, else git fsck",
			b.repository.top, lacks.path, b.commit, b.commit)
	}
	if err != nil || len(files) == 0 {
		return err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	err = b.git.contents(ctx, files, func(f treeFile, content io.Reader) error { return f.write(root, content) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// treeFile is a file of a commit.
type treeFile struct {
	mode, object, path string
	size               int64
}

// lacksError means that the repository lacks the content of a file in a commit.
type lacksError struct{ path string }

func (e lacksError) Error() string { return e.path + " has no content" }

// parseFiles parses the output of `git ls-tree -r -l -z`. The output has "BAD" as the size of a file whose
// content is missing from the repository.
func parseFiles(list string) (files []treeFile, err error) {
	left := int64(maxBase)
	for entry := range strings.SplitSeq(strings.TrimRight(list, "\x00"), "\x00") {
		about, path, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(about)
		if len(fields) != 4 || fields[1] != "blob" {
			continue // a submodule, or an empty line
		}
		f := treeFile{mode: fields[0], object: fields[2], path: filepath.FromSlash(path)}
		if f.size, err = strconv.ParseInt(fields[3], 10, 64); err != nil {
			return nil, lacksError{f.path}
		}
		if left -= f.size; left < 0 {
			return nil, fmt.Errorf("the commit has more than %d bytes there", maxBase)
		}
		files = append(files, f)
	}
	return files, nil
}

// write writes the file below a folder.
func (f treeFile) write(root *os.Root, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	if f.mode == "120000" {
		target, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return root.Symlink(string(target), f.path)
	}
	out, err := root.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// contents calls take with each file and its content, all from one git process.
func (g *git) contents(ctx context.Context, files []treeFile, take func(treeFile, io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends git if take fails
	cmd := g.command(ctx, "cat-file", "--batch")
	complaint := bounded.Buffer{Max: maxComplaint}
	cmd.Stderr = &complaint
	var asked strings.Builder
	for _, f := range files {
		asked.WriteString(f.object + "\n")
	}
	cmd.Stdin = strings.NewReader(asked.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	read := bufio.NewReader(out)
	for _, f := range files {
		if err = f.next(read, take); err != nil {
			cancel()
			break
		}
	}
	if werr := cmd.Wait(); err == nil && werr != nil {
		err = fmt.Errorf("git cat-file: %w; %s", werr, complaint.String())
	}
	return err
}

// next reads one object of `git cat-file --batch`: a line with name, type and size, the content, and a line
// feed.
func (f treeFile) next(read *bufio.Reader, take func(treeFile, io.Reader) error) error {
	head, err := read.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read %s of the commit: %w", f.path, err)
	}
	if want := []string{f.object, "blob", strconv.FormatInt(f.size, 10)}; !slices.Equal(strings.Fields(head), want) {
		return fmt.Errorf("read %s of the commit: git says %q", f.path, head)
	}
	content := io.LimitReader(read, f.size)
	if err := take(f, content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	_, err = read.Discard(1)
	return err
}

// Had reports whether HEAD or an earlier commit has a file at a path of a work tree.
func Had(ctx context.Context, path string) bool {
	b, err := OpenBase(ctx, filepath.Dir(path), "HEAD")
	if err != nil {
		return false
	}
	defer b.Close()
	below, err := filepath.Rel(b.Top(), filepath.Join(fspath.Resolve(filepath.Dir(path)), filepath.Base(path)))
	if err != nil || !filepath.IsLocal(below) {
		return false
	}
	ctx, cancel := patiently(ctx)
	defer cancel()
	last, err := b.git.run(ctx, "log", "-1", "--format=%H", b.commit, "--", filepath.ToSlash(below))
	return err == nil && last != ""
}
