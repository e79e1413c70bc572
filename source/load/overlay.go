package load

import (
	"os"
	"path/filepath"
	"slices"

	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
	"xdspub/source/syntax"
)

// overlay are texts that are read instead of files, by absolute paths without links.
type overlay map[string][]byte

func newOverlay(texts map[string][]byte) overlay {
	o := make(overlay, len(texts))
	for path, text := range texts {
		o[fspath.Resolve(path)] = text
	}
	return o
}

// text returns the overlay's text for a path, and the path without links.
func (o overlay) text(path string) (text []byte, real string, ok bool) {
	if len(o) == 0 {
		return nil, "", false
	}
	real = fspath.Resolve(path)
	text, ok = o[real]
	return text, real, ok
}

// unsaved returns the overlay's text for a file of the tree, so far as the tree may read it. Its stamp marks a
// file that has to be read again. ok is false if the overlay has no text, and the disk decides.
func (t *tree) unsaved(path string, limit int64) (read bytesOf, err error, ok bool) {
	text, real, ok := t.overlay.text(path)
	if !ok {
		return bytesOf{}, nil, false
	}
	if _, inside := t.folderOf(real); !inside {
		return bytesOf{}, &OutsideError{real}, true
	}
	if int64(len(text)) > limit {
		return bytesOf{}, &safefile.TooLargeError{Size: int64(len(text)), Limit: limit}, true
	}
	return bytesOf{data: text}, nil, true
}

// folderOf is the folder that a path without links is in.
func (t *tree) folderOf(real string) (in folder, inside bool) {
	i := slices.IndexFunc(t.folders, func(f folder) bool { return fspath.Within(real, f.real) })
	if i < 0 {
		return folder{}, false
	}
	return t.folders[i], true
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

// Contains reports whether a source tree may be read from a path: from the root itself or below
// it, or below a folder that is allowed. There need not be such a file.
func Contains(root string, allow []string, path string) bool {
	real := fspath.Resolve(path)
	return slices.ContainsFunc(append([]string{root}, allow...), func(dir string) bool { return fspath.Within(real, fspath.Resolve(dir)) })
}

// isDir asks the overlay, then the file system whether a root is a folder.
func (o overlay) isDir(root string) (bool, error) {
	if _, _, ok := o.text(root); ok {
		return false, nil
	}
	return isDir(root)
}
