package load

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/internal/safefile"
	"xdspub/source/decode"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
)

// entry is a file of the tree that Load looks into.
type entry struct {
	path   string
	format syntax.Format
	// isSettings means that the entry is a folder's settings file, isOutside that the entry is a folder
	// outside of the tree.
	isSettings, isOutside bool
	linked                bool // by a link of its own
	beyond                bool // a link leads here, or to a folder around
	single                bool // somebody named it by itself
	// unreadable is why an entry in the folder of an owner can't be read or listed; nil if no error is known.
	unreadable error
	// clients are the clients of the file; nil for any client, and before the settings files are read.
	clients *settingsfile.Clients
}

// same reports whether two entries have one file, for equal clients.
func (e entry) same(other entry) bool {
	mine, its := e.clients, other.clients
	e.clients, other.clients = nil, nil
	return e == other && mine.Equal(its)
}

// noFormat returns the error for a requested file that is a folder or has an unreadable suffix.
func noFormat(path string) error {
	if dir, err := isDir(path); err != nil {
		return err
	} else if dir {
		return fmt.Errorf("%s is a directory, and one file is needed", path)
	}
	return fmt.Errorf("can't tell the format of %s: its name must end in %s", path, syntax.Suffixes())
}

// finder goes through a tree, or through a folder of it.
type finder struct {
	l       *Loader
	tree    *tree
	folders folders // of the tree, so far
	found   []entry
}

// folders are those of a tree.
type folders struct {
	at map[string]location // by path
	// paths are the other way, by real path: what two links lead to would be read twice,
	// a link that leads back without an end.
	paths map[string]string
	names int // of files and folders in them
}

// location is the place of a folder of the tree.
type location struct {
	real   string
	beyond bool // a link leads here, or to a folder around
	names  int  // of files and folders in it
}

// clone returns a copy of the folders that may be changed.
func (f folders) clone() folders { return folders{maps.Clone(f.at), maps.Clone(f.paths), f.names} }

// drop removes the folder at a path, if present, but not the folders inside.
func (f *folders) drop(path string) {
	if at, ok := f.at[path]; ok {
		delete(f.at, path)
		delete(f.paths, at.real)
		f.names -= at.names
	}
}

// find lists the files of the tree in the order of their paths.
func (l *Loader) find(ctx context.Context, t *tree) ([]entry, folders, error) {
	f := finder{l: l, tree: t, folders: folders{at: make(map[string]location), paths: make(map[string]string)}}
	if err := f.folder(ctx, "", location{real: t.folders[0].real}); err != nil {
		return nil, folders{}, err
	}
	f.unsaved()
	// A folder's files stand behind files beside it: "a.yaml" < "a/b.yaml".
	slices.SortFunc(f.found, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return f.found, f.folders, nil
}

// folder goes through one folder. rel is its path below the root.
func (f *finder) folder(ctx context.Context, rel string, at location) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir := filepath.Join(f.tree.root, rel)
	first, twice := f.folders.paths[at.real]
	switch {
	case twice && strings.HasPrefix(dir, first+string(filepath.Separator)):
		return fmt.Errorf("read %s: the link leads back to %s", dir, at.real)
	case twice:
		return fmt.Errorf("read %s: the link leads to %s, which is read as %s already", dir, at.real, first)
	}
	f.folders.paths[at.real] = dir
	before := f.folders.names
	entries, err := f.list(ctx, dir, rel)
	if err != nil && f.recordUnreadable(dir, err) {
		return nil
	}
	if err != nil {
		return err
	}
	at.names = f.folders.names - before
	f.folders.at[dir] = at
	for _, e := range entries {
		if err := f.entry(ctx, filepath.Join(rel, e.Name()), at, e); err != nil {
			return err
		}
	}
	return nil
}

// list returns the relevant entries of a folder.
func (f *finder) list(ctx context.Context, dir, rel string) ([]fs.DirEntry, error) {
	return safefile.List(ctx, dir, func(names int) error {
		if f.folders.names += names; f.folders.names > f.l.names {
			return fmt.Errorf("read %s: the source tree has more than %d files and folders at this place: keep in it what belongs to Envoy", dir, f.l.names)
		}
		return nil
	}, func(e fs.DirEntry) bool { return !f.l.ignored(filepath.Join(rel, e.Name())) && !Hidden(e.Name()) })
}

// entry records a file or folder. A link out of the tree becomes a finding when it is read.
func (f *finder) entry(ctx context.Context, below string, in location, e fs.DirEntry) error {
	path := filepath.Join(f.tree.root, below)
	isDir, linked := e.IsDir(), e.Type()&fs.ModeSymlink != 0
	to := location{real: filepath.Join(in.real, e.Name()), beyond: in.beyond || linked}
	if linked {
		info, err := os.Stat(path)
		if err != nil && f.recordUnreadable(path, err) {
			return nil
		}
		if err != nil {
			return err
		}
		if isDir = info.IsDir(); isDir {
			in, inside, err := f.tree.locate(path)
			if _, outside := errors.AsType[*decode.OutsideError](err); outside {
				f.found = append(f.found, entry{path: path, isOutside: true, beyond: true})
				return nil
			}
			if err != nil {
				return err
			}
			to.real = filepath.Join(in.real, inside)
		}
	}
	if isDir {
		return f.folder(ctx, below, to)
	}
	if format := syntax.FormatOf(path); format != syntax.Other || mayBeMistaken(path) {
		f.found = append(f.found, entry{path: path, format: format, isSettings: isSettings(path), linked: linked, beyond: to.beyond})
	}
	return nil
}

// recordUnreadable records an error of a path in the folder of an owner, so that the rest of the tree is read.
// recordUnreadable returns false for a path elsewhere, and for an error of the process or the machine.
func (f *finder) recordUnreadable(path string, err error) bool {
	if f.l.ownerOf(f.tree, filepath.Join(path, "any")) == "" || !isOfPlace(err) {
		return false
	}
	f.found = append(f.found, entry{path: path, isSettings: isSettings(path), unreadable: err})
	return true
}

// unsaved adds the overlay's files that the tree's disk lacks.
func (f *finder) unsaved() {
	for real := range f.tree.overlay {
		below, err := filepath.Rel(f.tree.folders[0].real, real)
		if err != nil || !filepath.IsLocal(below) || f.l.leftOut(below) {
			continue
		}
		if _, err := os.Lstat(real); err == nil {
			continue
		}
		path := filepath.Join(f.tree.root, below)
		if format := syntax.FormatOf(path); format != syntax.Other || mayBeMistaken(path) {
			f.found = append(f.found, entry{path: path, format: format, isSettings: isSettings(path)})
		}
	}
}
