package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"xdspub/check"
	"xdspub/check/scope"
	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/setup/grpcboot"
	"xdspub/source/load"
	"xdspub/source/revision"
)

// withoutRemoved returns the named paths without files that git knows and that no longer exist, because git
// diff also names the files that a commit has removed.
func withoutRemoved(c *call) (paths []string, err error) {
	ctx, stop := interruptible(c) // so that a signal leaves no temporary files behind
	defer stop()
	for _, path := range c.Args().Slice() {
		_, err := os.Lstat(path)
		if path == "-" || !errors.Is(err, fs.ErrNotExist) || !revision.Had(ctx, path) {
			paths = append(paths, path)
			continue
		}
		fmt.Fprintf(c.App.ErrWriter, "xdspub: %s no longer exists, and is not checked\n", path)
	}
	return paths, ctx.Err()
}

// withoutOthers drops files outside of trees that are not resource files by their name, such as a README.md
// that a shell found for sec/*, and prints a note about each. If the arguments name nothing else, withoutOthers
// keeps the files. Checking them then returns an error.
func withoutOthers(c *call, trees []scope.Tree) (rest []scope.Tree) {
	var others []string
	for _, tree := range trees {
		if tree.Path != "-" && len(tree.Named) == 0 && fspath.IsFile(tree.Path) && !load.HasFormat(tree.Path) &&
			!isBootstrap(c, tree.Path) && !grpcboot.Holds(tree.Path) {
			others = append(others, tree.Path)
		} else {
			rest = append(rest, tree)
		}
	}
	if len(rest) == 0 {
		return trees
	}
	for _, path := range others {
		sayNotChecked(c, path)
	}
	return rest
}

// sayNotChecked prints that validate does not check a file because of its name.
func sayNotChecked(c *call, path string) {
	fmt.Fprintf(c.App.ErrWriter, "xdspub: %s is not checked: its name has no suffix of a resource file, such as .yaml\n", path)
}

// narrow removes the findings that --only, --changed-since and the named files of the tree exclude, and prints
// which named files the tree does not read.
func narrow(c *call, checked *check.Result, o check.Options, tree scope.Tree) error {
	for _, about := range []scope.Concerns{scope.About(tree.Named), scope.About(c.Only.Value)} {
		if about != nil {
			checked.Only(about)
		}
	}
	if rev := c.ChangedSince.Value; rev != "" {
		if err := since(c, checked, o, rev); err != nil {
			return fmt.Errorf("--changed-since %s: %w", rev, err)
		}
	}
	for _, path := range tree.Named {
		if !load.HasFormat(path) {
			sayNotChecked(c, path)
		}
	}
	if len(tree.Named) > 0 {
		checked.Rename(scope.Shorten)
	}
	return nil
}

// since removes the findings that no change since a git revision has caused.
func since(c *call, checked *check.Result, o check.Options, rev string) error {
	ctx, stop := interruptible(c) // so that a signal leaves no temporary files behind
	defer stop()
	concerns, err := scope.Since(ctx, o, rev, checked.Diagnostics)
	if err != nil {
		return err
	}
	checked.Only(concerns)
	return nil
}

// onlyInTrees returns an error if a path of --only is in no tree, or never existed. Otherwise a typing error
// would hide all findings.
func onlyInTrees(c *call, trees []scope.Tree) error {
	ctx, stop := interruptible(c)
	defer stop()
	for _, path := range c.Only.Value {
		_, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) && path != c.StdinFilename.Value && !revision.Had(ctx, path) {
			return usagef("--only %s does not exist", path)
		}
		if !slices.ContainsFunc(trees, func(t scope.Tree) bool { return load.Contains(t.Path, nil, path) }) {
			return usagef("--only %s is in no source tree that is checked: %s", path, strings.Join(c.Args().Slice(), ", "))
		}
	}
	return nil
}

// hasNoHistory returns an error if --changed-since is given. path is not a source tree.
func hasNoHistory(c *call, path string) error {
	if rev := c.ChangedSince.Value; rev != "" {
		return usagef("--changed-since %s is for source trees: leave %s out", rev, path)
	}
	return nil
}

// writeSummary prints the counts of resources and findings, and of findings that are not shown.
func writeSummary(w io.Writer, s diag.Summary) error {
	_, err := fmt.Fprintln(w, s)
	if err == nil && s.Hidden != (diag.Hidden{}) {
		_, err = fmt.Fprintf(w, "not shown: %s elsewhere in the tree\n", s.Hidden)
	}
	if err == nil && s.Baseline != (diag.Hidden{}) {
		_, err = fmt.Fprintf(w, "not shown: %s in the baseline\n", s.Baseline)
	}
	return err
}
