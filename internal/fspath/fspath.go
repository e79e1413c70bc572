// Package fspath compares paths of the file system, and says where they lead.
package fspath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Within reports whether a clean path is dir or below it.
func Within(path, dir string) bool {
	const separator = string(filepath.Separator)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, separator)+separator)
}

// Resolve returns a path as absolute and without symbolic links, as far as it exists.
func Resolve(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			return abs
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// IsFile reports whether a path leads to a regular file, as opposed to a folder, a pipe or nothing.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Reason returns what an error of the file system says, without the path.
func Reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
