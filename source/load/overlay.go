package load

import (
	"errors"
	"io/fs"
	"os"

	"xdspub/internal/fspath"
	"xdspub/source/decode"
	"xdspub/source/syntax"
)

// Overlay has texts that are read instead of files, by absolute paths without links.
type Overlay map[string][]byte

// NewOverlay returns the Overlay of texts, by any paths of their files.
func NewOverlay(texts map[string][]byte) Overlay {
	o := make(Overlay, len(texts))
	for path, text := range texts {
		o[fspath.Resolve(path)] = text
	}
	return o
}

// text returns the overlay's text for a path, and the path without links.
func (o Overlay) text(path string) (text []byte, real string, ok bool) {
	if len(o) == 0 {
		return nil, "", false
	}
	real = fspath.Resolve(path)
	text, ok = o[real]
	return text, real, ok
}

// source reads a file that Envoy itself reads, or takes the Overlay's text for the file.
func (o Overlay) source(path string, of decode.SourceOptions) (*decode.Source, error) {
	format := syntax.EnvoyFormat(path)
	if text, _, ok := o.text(path); ok {
		return decode.NewSource(path, format, text, of), nil
	}
	return decode.ReadSource(path, format, of)
}

// isDir asks the Overlay, then the file system whether a root is a folder.
func (o Overlay) isDir(root string) (bool, error) {
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
