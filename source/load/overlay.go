package load

import (
	"errors"
	"io/fs"
	"os"

	"xdspub/internal/fspath"
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

// isDir asks the overlay, then the file system whether a root is a folder.
func (o overlay) isDir(root string) (bool, error) {
	if _, _, ok := o.text(root); ok {
		return false, nil
	}
	return isDir(root)
}

// isDir reports whether a path that was asked for leads to a folder.
func isDir(path string) (bool, error) {
	info, err := os.Stat(path)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return false, &fs.PathError{Op: "read", Path: path, Err: failed.Err}
	}
	return err == nil && info.IsDir(), err
}
