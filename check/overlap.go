package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// KeepApart makes Check report a source tree that overlaps one of the output directories.
func (t *Tree) KeepApart(outs ...string) {
	t.outs = slices.DeleteFunc(slices.Clone(outs), func(out string) bool { return out == "" })
}

// Overlap is the function Overlap for the source tree; nil for a Remote.
func (o Options) Overlap(dir string) *Result {
	if o.Remote != nil {
		return nil
	}
	return Overlap(o.Path, dir)
}

// Overlap returns a Result with an error if the output directory dir is inside the source tree, or the reverse:
// published files would then be read as sources. Otherwise Overlap returns nil. Check calls Overlap first, so
// nobody may write into the output directory before Check.
func Overlap(tree, dir string) *Result {
	source, out := fspath.Resolve(tree), fspath.Resolve(dir)
	for _, c := range []struct{ inner, outer, message string }{
		{out, source, "the output directory %s lies inside the source tree %s"},
		{source, out, "the source tree %[2]s lies inside the output directory %[1]s"},
	} {
		if fspath.Within(c.inner, c.outer) {
			empty := xds.NewSnapshot(nil)
			r := &Result{Snapshot: empty, Variants: variants.Of(empty), Line: func(diag.Position) (string, bool) { return "", false }}
			r.Add(diag.List{{
				Code: codeOutputInSource.Name, Position: diag.Position{File: dir},
				Message: fmt.Sprintf(c.message, dir, tree),
				Help:    "move one of them: side by side, or to different volumes",
			}})
			return r
		}
	}
	return nil
}

// linksToOut reports links of the source tree that lead into an output directory.
func (t *Tree) linksToOut(files []string) diag.List {
	if len(t.outs) == 0 {
		return nil
	}
	var outs []string
	for _, out := range t.outs {
		outs = append(outs, fspath.Resolve(out))
	}
	folders := make(map[string]string)
	var list diag.List
	for _, f := range files {
		dir := filepath.Dir(f)
		if _, ok := folders[dir]; !ok {
			folders[dir] = fspath.Resolve(dir)
		}
		real := filepath.Join(folders[dir], filepath.Base(f))
		if info, err := os.Lstat(f); err == nil && info.Mode()&os.ModeSymlink != 0 {
			real = fspath.Resolve(f)
		}
		if i := slices.IndexFunc(outs, func(out string) bool { return fspath.Within(real, out) }); i >= 0 {
			list = append(list, diag.Diagnostic{
				Code: codeOutputInSource.Name, Position: diag.Position{File: f},
				Message: fmt.Sprintf("a link of the source tree leads to %s, in the output directory %s", real, t.outs[i]),
				Help:    "remove the link, or name it in ignore: of xdspub.yaml",
			})
		}
	}
	return list
}
