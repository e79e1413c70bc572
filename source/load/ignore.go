package load

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/internal/fspath"
)

// ignored reports whether a pattern of Options.Ignore matches the path of a file or a folder
// below the root, or it is one of Options.Beside.
func (l *Loader) ignored(below string) (is bool) {
	is = slices.Contains(l.options.Beside, below)
	for _, pattern := range l.options.Ignore {
		if fspath.MatchesItself(pattern, below) {
			is, l.matched[pattern] = true, true
		}
	}
	return is
}

// leftOut reports whether a path below the root is left out of the tree, or a folder that it
// is in.
func (l *Loader) leftOut(below string) bool {
	for at := below; at != "."; at = filepath.Dir(at) {
		if l.ignored(at) || Hidden(filepath.Base(at)) {
			return true
		}
	}
	return false
}

// LeftOut reports whether a path is below the root of a source tree and yet no part of the tree,
// since it, or a folder around it, is hidden or matches a pattern of Options.Ignore. There need
// not be such a file.
func LeftOut(root string, ignore []string, path string) bool {
	below, err := filepath.Rel(fspath.Resolve(root), fspath.Resolve(path))
	return err == nil && filepath.IsLocal(below) && New(Options{Ignore: ignore}).leftOut(below)
}

// UnusedPattern is a pattern of Options.Ignore that leaves nothing out of a tree.
type UnusedPattern struct {
	Pattern string
	// Meant is the name, or the path below the root, of a file or a folder of the tree that may
	// have been meant. Empty for none.
	Meant string
}

// UnusedPatterns returns the patterns of Options.Ignore without a match since the last Load of a tree began,
// in the order of Options. For a tree of one file, it returns none.
func (l *Loader) UnusedPatterns() []UnusedPattern {
	return slices.DeleteFunc(slices.Clone(l.unused), func(u UnusedPattern) bool { return l.matched[u.Pattern] })
}

// unusedIn returns the patterns that match nothing in a tree of some files and folders.
func (l *Loader) unusedIn(root string, found []entry, in folders) (list []UnusedPattern) {
	var near *diag.Candidates
	for _, pattern := range l.options.Ignore {
		if l.matched[pattern] {
			continue
		}
		if near == nil {
			near = namesIn(root, found, in)
		}
		list = append(list, UnusedPattern{pattern, near.Nearest(strings.Trim(pattern, "/"))})
	}
	return list
}

// namesIn are the names of files and folders, and their paths below the root.
func namesIn(root string, found []entry, in folders) *diag.Candidates {
	names := make(map[string]bool)
	add := func(path string) {
		if below, err := filepath.Rel(root, path); err == nil && below != "." {
			names[filepath.ToSlash(below)], names[filepath.Base(below)] = true, true
		}
	}
	for _, e := range found {
		add(e.path)
	}
	for dir := range in.at {
		add(dir)
	}
	return diag.NewCandidates(slices.Sorted(maps.Keys(names)))
}
