package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"xdspub/check"
	"xdspub/check/fixes"
	"xdspub/check/scope"
	"xdspub/diag"
	"xdspub/internal/fspath"
)

// fixing reports whether validate makes fixes.
func fixing(c *call) bool { return c.Fix.Value || c.FixUnsafe.Value }

// fixesToOutput reports whether the fixes go to standard output: as a diff, or as the fixed text of standard input.
func fixesToOutput(c *call) bool {
	return fixing(c) && (c.Diff.Value || c.StdinFilename.Given() || slices.Contains(c.Args().Slice(), "-"))
}

// reportWriter returns the writer for findings without a file of their own: standard output, or standard error if the
// fixes go to standard output.
func reportWriter(c *call) io.Writer {
	if fixesToOutput(c) {
		return c.App.ErrWriter
	}
	return c.App.Writer
}

// checkFixOptions returns an error for options that --fix can't be combined with.
func checkFixOptions(c *call, reports []output) error {
	switch {
	case c.Diff.Value && !fixing(c):
		return usagef("--diff shows what --fix or --fix-unsafe would write: give one of them, too")
	case fixing(c) && c.WriteBaseline.Given():
		return usagef("--write-baseline accepts all findings, and --fix ends some of them: run --fix first, then --write-baseline alone")
	case !fixesToOutput(c):
		return nil
	}
	for _, o := range reports {
		if o.file == "-" && o.format != "text" {
			return usagef("--format %s would go to standard output, as do the fixes: write an --output FILE behind it", o.format)
		}
	}
	return nil
}

// fix makes the fixes of the findings about a tree or a bootstrap in memory, and returns the last Result.
func (v *validation) fix(found *check.Result, o check.Options, tree scope.Tree) (*check.Result, error) {
	in := fixes.Scope{Root: tree.Path, May: v.mayFix(tree), Envoy: o.Envoy}
	if fspath.IsFile(tree.Path) {
		in.Root = filepath.Dir(tree.Path)
	}
	checked, err := v.fixes.Fix(found, in, func() (*check.Result, error) { return v.narrowed(o, tree) })
	if err != nil {
		return nil, err
	}
	if v.fixes.Unfinished() {
		fmt.Fprintf(v.App.ErrWriter, "xdspub: some fixes in %s are not made yet: run the command again\n", tree.Path)
	}
	v.unsafe += v.fixes.Unsafe(checked.Diagnostics, in)
	return checked, nil
}

// mayFix returns which files of a tree may change: those that the user has named.
func (v *validation) mayFix(tree scope.Tree) func(file string) bool {
	concerns := []scope.Concerns{scope.About(tree.Named), scope.About(v.Only.Value)}
	if v.unsaved.path != "" {
		concerns = append(concerns, scope.About([]string{v.unsaved.path}))
	}
	return func(file string) bool {
		return !slices.ContainsFunc(concerns, func(about scope.Concerns) bool {
			return about != nil && !about(diag.Diagnostic{Position: diag.Position{File: file}})
		})
	}
}

// deliver writes the fixed files, the diff, or the fixed text of standard input, and says what is fixed.
func (v *validation) deliver() error {
	if v.fixes == nil {
		return nil
	}
	made, files := v.fixes.Made()
	v.all.Summary.Fixed = made
	if v.Diff.Value {
		return v.deliverDiff(made, files)
	}
	if err := v.fixes.Write(); err != nil {
		return err
	}
	if name := v.stdinName(); name != "" {
		if _, err := v.App.Writer.Write(v.fixes.Text(name)); err != nil {
			return err
		}
	}
	if made > 0 && !v.Quiet.Value {
		fmt.Fprintf(v.App.ErrWriter, "xdspub: fixed %s in %s\n", diag.Count(made, "finding"), diag.Count(files, "file"))
	}
	v.sayUnfixed()
	return nil
}

// stdinName returns the name of standard input in findings; empty if validate does not read standard input.
func (v *validation) stdinName() string {
	if slices.Contains(v.Args().Slice(), "-") {
		return diag.StandardInput
	}
	return v.unsaved.path
}

// deliverDiff prints the fixes as a diff.
func (v *validation) deliverDiff(made, files int) error {
	hidden, err := v.fixes.Diff(v.App.Writer)
	if err != nil {
		return err
	}
	if hidden {
		fmt.Fprintln(v.App.ErrWriter, "xdspub: … in the diff replaces lines that may hold a secret: the diff can't be applied; use --fix without --diff")
	}
	if !v.Quiet.Value {
		fmt.Fprintf(v.App.ErrWriter, "xdspub: the diff fixes %s in %s: no file is written\n", diag.Count(made, "finding"), diag.Count(files, "file"))
	}
	v.sayUnfixed()
	return nil
}

// sayUnfixed prints why fixes are not made.
func (v *validation) sayUnfixed() {
	for _, f := range v.fixes.Refused() {
		fmt.Fprintf(v.App.ErrWriter, "xdspub: %s is not fixed: %s\n", f.File, f.Reason)
	}
	if v.unsafe > 0 && !v.Quiet.Value {
		fmt.Fprintf(v.App.ErrWriter, "xdspub: %s with unsafe fixes, which are not made: --fix-unsafe --diff shows them\n",
			diag.Count(v.unsafe, "finding"))
	}
}
