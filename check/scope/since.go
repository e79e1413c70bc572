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
	"xdspub/xds"
)

// Since returns the Concerns of the findings that a change of the source tree has caused. The change is the
// difference from the revision rev, such as origin/main. The change has caused a finding if the finding is in a
// file that differs from the revision, or if the tree did not have the finding at the revision. Since compares the
// bytes of files. It uses the present options and settings for both trees.
//
// Since returns an error if the tree is in no git work tree, if the revision does not exist, or if files of the
// revision could not be read.
func Since(ctx context.Context, o check.Options, rev string, findings diag.List) (Concerns, error) {
	p, err := openPast(ctx, o, rev)
	if err != nil {
		return nil, err
	}
	defer p.close()
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

// At checks the source tree at the revision rev. The Snapshot of the Result is empty if the source tree did not exist.
// Places of findings are in a copy of the tree that is gone. At returns the errors of Since.
func At(ctx context.Context, o check.Options, rev string) (*check.Result, error) {
	p, err := openPast(ctx, o, rev)
	if err != nil {
		return nil, err
	}
	defer p.close()
	checked, err := p.check(ctx, o)
	if err == nil && checked == nil {
		checked = &check.Result{Snapshot: xds.NewSnapshot(nil)}
	}
	return checked, err
}

// openPast writes the files of the source tree at a revision into a folder. The caller must close the past.
func openPast(ctx context.Context, o check.Options, rev string) (p past, err error) {
	base, err := revision.OpenBase(ctx, o.Path, rev)
	if err != nil {
		return past{}, err
	}
	defer base.Close()
	then, err := os.MkdirTemp("", "xdspub-since-")
	if err != nil {
		return past{}, err
	}
	p = past{now: base.Top(), then: then}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if err := base.Write(ctx, o.Path, then); err != nil {
		return p, err
	}
	for _, path := range append(slices.Clone(o.Allow), o.Bootstrap) {
		if _, inside := p.of(path); inside {
			if err := base.Write(ctx, path, then); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// past is a git work tree, and a folder with a copy of its files at a commit.
type past struct {
	now, then string // folders
}

// close removes the copy.
func (p past) close() { _ = os.RemoveAll(p.then) }

// of returns the path in the copy of a path in the work tree. ok is false if the path is not in the work tree.
func (p past) of(path string) (then string, ok bool) {
	below, err := filepath.Rel(p.now, fspath.Resolve(path))
	if path == "" || err != nil || !filepath.IsLocal(below) {
		return path, false
	}
	return filepath.Join(p.then, below), true
}

// differs reports whether a file differs from the commit. It returns false for a file outside the work tree.
func (p past) differs(file string) bool {
	then, inside := p.of(file)
	if !inside {
		return false
	}
	is, err := safefile.Read(file, syntax.MaxBytes)
	was, before := safefile.Read(then, syntax.MaxBytes)
	return err != nil || before != nil || !bytes.Equal(is, was)
}

// check checks the source tree at the commit. It returns nil if the source tree did not exist.
func (p past) check(ctx context.Context, o check.Options) (*check.Result, error) {
	was := o
	was.Overlay, was.Timings = nil, false
	was.Path, _ = p.of(o.Path)
	if _, err := os.Lstat(was.Path); os.IsNotExist(err) {
		return nil, nil
	}
	was.Allow = nil
	for _, path := range o.Allow {
		path, _ = p.of(path)
		was.Allow = append(was.Allow, path)
	}
	was.Bootstrap, _ = p.of(o.Bootstrap)
	return check.Once(ctx, was)
}

// findings returns the fingerprints of the findings about the source tree at the commit. It returns none if the
// source tree did not exist.
func (p past) findings(ctx context.Context, o check.Options) (map[string]bool, error) {
	had := make(map[string]bool)
	checked, err := p.check(ctx, o)
	if err != nil || checked == nil {
		return had, err
	}
	path, _ := p.of(o.Path)
	root, err := report.NewRoot(p.then)
	if err != nil {
		return nil, err
	}
	for _, d := range checked.Diagnostics {
		d.Message = strings.ReplaceAll(d.Message, path, o.Path)
		had[report.Fingerprint(d, root)] = true
	}
	return had, nil
}
