// Package fspath compares paths, and resolves symbolic links.
package fspath

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Within reports whether path equals dir or is below dir. Both must be clean.
func Within(path, dir string) bool {
	const separator = string(filepath.Separator)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, separator)+separator)
}

// Resolve returns a path as an absolute path without symbolic links. It resolves the part of the path that exists.
// If a link leads nowhere or can't be read, Resolve returns the absolute path.
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

// IsFile reports whether a path is a regular file or a link to one.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Reason returns an error of the file system without the path that failed.
func Reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Matches reports whether a glob pattern matches a relative path, or a folder that contains the path. A pattern
// without a slash is compared with single names, and a pattern with a slash with whole paths.
func Matches(pattern, local string) bool {
	for at := filepath.ToSlash(local); at != "." && at != "/" && at != ""; at = path.Dir(at) {
		if MatchesItself(pattern, at) {
			return true
		}
	}
	return false
}

// MatchesItself reports whether a glob pattern matches a path. Other than Matches, it ignores the folders that
// contain the path.
func MatchesItself(pattern, local string) bool {
	name := filepath.ToSlash(local)
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, _ := path.Match(strings.Trim(pattern, "/"), name)
	return ok
}
