// Package scope finds the source trees to which paths belong, and the findings about a tree that concern these paths.
// So a pull request gets the findings about the files that it changes, although each check reads all files of the tree
// and follows their references.
//
//	for _, tree := range scope.Trees([]string{"config/clusters/api.yaml"}, isBootstrap) {
//		result, err := check.Once(ctx, check.Options{Path: tree.Path})
//		concerns := scope.About(tree.Named)
//	}
package scope

import (
	"os"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/gitdir"
	"xdspub/source/load"
	"xdspub/source/settingsfile"
)

// Tree is a source tree, or a file that is judged alone.
type Tree struct {
	Path string
	// Named are the named files of the tree; empty if the tree itself was named.
	Named []string
}

// Trees returns the trees of some paths, in order and each once. A folder is a tree. A file belongs to the
// tree of a named folder around the file. Without such a folder, the root is the nearest folder above the file
// whose settings file has more than "when", or the outermost folder with a settings file, or the top of the
// git work tree. A file without a root, a hidden file, a missing file, and a file that alone selects are
// judged alone. A tree ignores files such as README.md, although git diff names them.
//
// A settings file stands for its whole tree. A settings file with nothing but "when" belongs to the tree
// around its folder, if such a tree has a settings file.
func Trees(paths []string, alone func(path string) bool) (trees []Tree) {
	var folders []string
	for _, path := range paths {
		if isFolder(path) {
			folders = append(folders, path)
		}
	}
	for _, path := range paths {
		if isSettings(path) {
			path = treeOf(path, folders)
		}
		root := path
		if path != "-" && fspath.IsFile(path) && !hidden(path) && !alone(path) {
			root = rootOf(path, folders)
		}
		named := Tree{Path: root}
		if root != path {
			named.Named = []string{path}
		}
		trees = merge(trees, named)
	}
	return trees
}

// hidden reports whether a source tree leaves out a file because of its name, although the file has a format that
// xdspub reads.
func hidden(path string) bool { return load.Hidden(filepath.Base(path)) && load.HasFormat(path) }

// isSettings reports whether a path is a settings file, which affects every file of its tree.
func isSettings(path string) bool {
	return path != "-" && filepath.Clean(path) == settingsfile.PathIn(filepath.Dir(path)) && fspath.IsFile(path)
}

// treeOf returns the root of the source tree to which a settings file belongs.
func treeOf(settings string, folders []string) string {
	if load.OnlyWhen(settings) {
		return rootOf(settings, folders)
	}
	return filepath.Dir(settings)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// merge adds t to trees. If trees has the same tree, merge adds only the named files.
func merge(trees []Tree, t Tree) []Tree {
	real := fspath.Resolve(t.Path)
	i := slices.IndexFunc(trees, func(known Tree) bool { return known.Path == t.Path || fspath.Resolve(known.Path) == real })
	switch {
	case i < 0:
		return append(trees, t)
	case len(t.Named) == 0 || len(trees[i].Named) == 0:
		trees[i].Named = nil // the whole tree is named
	default:
		trees[i].Named = append(trees[i].Named, t.Named...)
	}
	return trees
}

// rootOf returns the root of the source tree that a file belongs to, or the file if there is no such tree.
func rootOf(file string, folders []string) string {
	for _, folder := range folders {
		if fspath.Within(fspath.Resolve(file), fspath.Resolve(folder)) {
			return folder
		}
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	outermost := "" // outermost folder whose settings file has only "when"
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if settings := settingsfile.PathIn(dir); load.OnlyWhen(settings) {
			outermost = dir
		} else if fspath.IsFile(settings) {
			return shown(dir, file)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if outermost != "" {
		return shown(outermost, file)
	}
	if list := gitdir.Enclosing(filepath.Dir(abs)); len(list) > 0 {
		return shown(filepath.Dir(list[0]), file)
	}
	return file
}

// shown returns the path of a folder in the form in which the user wrote the path of the file: absolute, or
// relative to the current folder.
func shown(dir, file string) string {
	if filepath.IsAbs(file) {
		return dir
	}
	return fromHere(dir)
}

// fromHere returns a path relative to the current folder.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	abs := path
	if !filepath.IsAbs(path) {
		abs = filepath.Join(here, path)
	}
	relative, err := filepath.Rel(here, abs)
	if err != nil {
		return path
	}
	return relative
}

// Shorten returns the path of a file relative to the current folder. So it removes needless dots, such as in
// ../tree/file in the folder tree. An absolute path stays.
func Shorten(file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return fromHere(file)
}

// Concerns reports whether a finding concerns the paths or the change that a user has named.
type Concerns func(diag.Diagnostic) bool

// About returns the Concerns for some files and folders: findings with a position or a related position in them,
// and findings without a file. About returns nil, which means all findings, if no path is given.
func About(paths []string) Concerns {
	if len(paths) == 0 {
		return nil
	}
	var named []string
	for _, path := range paths {
		named = append(named, fspath.Resolve(path))
	}
	return inFiles(func(file string) bool {
		real := fspath.Resolve(file)
		return slices.ContainsFunc(named, func(path string) bool { return fspath.Within(real, path) })
	})
}

// inFiles returns the Concerns for the files for which concerns returns true. It calls concerns once for each file.
func inFiles(concerns func(file string) bool) Concerns {
	known := make(map[string]bool)
	in := func(p diag.Position) bool {
		is, asked := known[p.File]
		if !asked {
			is = p.File == "" || concerns(p.File)
			known[p.File] = is
		}
		return is
	}
	return func(d diag.Diagnostic) bool {
		return in(d.Position) || slices.ContainsFunc(d.Related, func(r diag.Related) bool { return r.File != "" && in(r.Position) })
	}
}
