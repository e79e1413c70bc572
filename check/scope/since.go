package scope

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
	"xdspub/report"
	"xdspub/source/revision"
	"xdspub/source/syntax"
)

// Since returns the Concerns of those findings about the source tree of o that a change is to blame
// for: findings in files that are not as they were at a revision, such as origin/main, and findings that
// the tree did not have then, wherever they stand. Files are compared byte by byte with those of the
// commit; options and settings are those of now.
//
// An error says that the tree is in no git work tree, that there is no such revision, or that its files
// could not be read.
func Since(ctx context.Context, o check.Options, rev string, findings diag.List) (Concerns, error) {
	base, err := revision.OpenBase(ctx, o.Path, rev)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	then, err := os.MkdirTemp("", "xdspub-since-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(then)
	p := past{now: base.Top(), then: then}
	if err := base.Write(ctx, o.Path, then); err != nil {
		return nil, err
	}
	for _, path := range append(slices.Clone(o.Allow), o.Bootstrap) {
		if _, inside := p.of(path); inside {
			if err := base.Write(ctx, path, then); err != nil {
				return nil, err
			}
		}
	}
	had, err := p.findings(ctx, o)
	if err != nil {
		return nil, err
	}
	root, err := report.NewRoot(p.now)
	if err != nil {
		return nil, err
	}
	concerned := make(map[string]bool)
	in := inFiles(p.differs)
	for _, d := range findings {
		f := report.Fingerprint(d, root)
		concerned[f] = concerned[f] || !had[f] || in(d)
	}
	return func(d diag.Diagnostic) bool { return concerned[report.Fingerprint(d, root)] }, nil
}

// past is a work tree, and what of it was at a commit.
type past struct {
	now, then string // folders
}

// of returns where the commit's version of a path is. It is not ok for what is not in the work tree.
func (p past) of(path string) (then string, ok bool) {
	below, err := filepath.Rel(p.now, fspath.Resolve(path))
	if path == "" || err != nil || !filepath.IsLocal(below) {
		return path, false
	}
	return filepath.Join(p.then, below), true
}

// differs reports whether a file is not as it was. What is not in the work tree has no history.
func (p past) differs(file string) bool {
	then, inside := p.of(file)
	if !inside {
		return false
	}
	is, err := safefile.Read(file, syntax.MaxBytes)
	was, before := safefile.Read(then, syntax.MaxBytes)
	return err != nil || before != nil || !bytes.Equal(is, was)
}

// findings returns the fingerprints of the findings about the tree as it was. A tree that was not
// there has none.
func (p past) findings(ctx context.Context, o check.Options) (map[string]bool, error) {
	had := make(map[string]bool)
	was := o
	was.Overlay, was.Timings = nil, false
	was.Path, _ = p.of(o.Path)
	if _, err := os.Lstat(was.Path); os.IsNotExist(err) {
		return had, nil
	}
	was.Allow = nil
	for _, path := range o.Allow {
		path, _ = p.of(path)
		was.Allow = append(was.Allow, path)
	}
	was.Bootstrap, _ = p.of(o.Bootstrap)
	checked, err := check.Once(ctx, was)
	if err != nil {
		return nil, err
	}
	root, err := report.NewRoot(p.then)
	if err != nil {
		return nil, err
	}
	for _, d := range checked.Diagnostics {
		d.Message = strings.ReplaceAll(d.Message, was.Path, o.Path)
		had[report.Fingerprint(d, root)] = true
	}
	return had, nil
}
