package load

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/safefile"
)

// entry is a file of the tree that Load looks into.
type entry struct {
	path   string
	format format
	linked bool // by a link of its own
	single bool // somebody named it by itself
}

type format int

const (
	formatOther format = iota // only looked at: does it look like xDS?
	formatYAML
	formatJSON
	formatText
	formatBinary
	formatOutside // a folder that is no part of the tree
)

func formatOf(path string) format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return formatYAML
	case ".json":
		return formatJSON
	case ".pb_text", ".txtpb", ".textproto":
		return formatText
	case ".pb":
		return formatBinary
	default:
		return formatOther
	}
}

// finder goes through a tree.
type finder struct {
	l    *Loader
	tree *tree
	// seen are the folders so far by their real paths: what two links lead to would be
	// read twice, a link that leads back without an end.
	seen  map[string]string
	names int // of files and folders, so far
	found []entry
}

// find lists the files of the tree in the order of their paths.
func (l *Loader) find(ctx context.Context, t *tree) ([]entry, error) {
	f := finder{l: l, tree: t, seen: make(map[string]string)}
	if err := f.folder(ctx, "", t.folders[0].real); err != nil {
		return nil, err
	}
	// A folder's files stand behind files beside it: "a.yaml" < "a/b.yaml".
	slices.SortFunc(f.found, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return f.found, nil
}

// folder goes through one folder. rel is its path below the root.
func (f *finder) folder(ctx context.Context, rel, real string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir := filepath.Join(f.tree.root, rel)
	first, twice := f.seen[real]
	switch {
	case twice && strings.HasPrefix(dir, first+string(filepath.Separator)):
		return fmt.Errorf("read %s: the link leads back to %s", dir, real)
	case twice:
		return fmt.Errorf("read %s: the link leads to %s, which is read as %s already", dir, real, first)
	}
	f.seen[real] = dir
	entries, err := f.list(ctx, dir, rel)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := f.entry(ctx, filepath.Join(rel, e.Name()), real, e); err != nil {
			return err
		}
	}
	return nil
}

// list is what a folder holds and what may matter.
func (f *finder) list(ctx context.Context, dir, rel string) ([]fs.DirEntry, error) {
	return safefile.List(ctx, dir, func(names int) error {
		if f.names += names; f.names > f.l.names {
			return fmt.Errorf("read %s: the source tree has more than %d files and folders at this place: keep in it what belongs to Envoy", dir, f.l.names)
		}
		return nil
	}, func(e fs.DirEntry) bool { return !Hidden(e.Name()) && !f.l.ignored(filepath.Join(rel, e.Name())) })
}

// entry takes one file or folder up. What leads out of the tree is a finding once it
// is read.
func (f *finder) entry(ctx context.Context, below, parent string, e fs.DirEntry) error {
	path := filepath.Join(f.tree.root, below)
	isDir, real := e.IsDir(), filepath.Join(parent, e.Name())
	linked := e.Type()&fs.ModeSymlink != 0
	if linked {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if isDir = info.IsDir(); isDir {
			in, inside, err := f.tree.locate(path)
			if _, outside := errors.AsType[*OutsideError](err); outside {
				f.found = append(f.found, entry{path: path, format: formatOutside})
				return nil
			}
			if err != nil {
				return err
			}
			real = filepath.Join(in.real, inside)
		}
	}
	if isDir {
		return f.folder(ctx, below, real)
	}
	if format := formatOf(path); format != formatOther || mayBeMistaken(path) {
		f.found = append(f.found, entry{path: path, format: format, linked: linked})
	}
	return nil
}

// configName is the project's own file at the root of a tree.
const configName = "xdspub.yaml"

// Hidden tells whether a file or folder of that base name is never a resource:
// hidden ones, editors' leavings, and the project's own file.
func Hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") ||
		strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") ||
		name == "4913" || name == configName
}

func (l *Loader) ignored(below string) bool {
	below = filepath.ToSlash(below)
	for _, pattern := range l.options.Ignore {
		name := below
		if !strings.Contains(pattern, "/") {
			name = filepath.Base(below)
		}
		if ok, _ := filepath.Match(strings.Trim(pattern, "/"), name); ok {
			return true
		}
	}
	return false
}

// mayBeMistaken tells whether a file of another suffix is worth a look: it could
// be a resource file that its author misnamed. Prose quotes resources often.
func mayBeMistaken(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".md", ".rst", ".html", ".go", ".py", ".sh":
		return false
	}
	return true
}
