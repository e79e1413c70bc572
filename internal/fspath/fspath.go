// Package fspath compares paths of the file system, and says where they lead.
package fspath

import (
	"errors"
	"io/fs"
	"os"
	"path"
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

// Matches reports whether a glob pattern matches a local path, or that of a folder that it is in. A
// pattern without a slash is compared with names, one with a slash with whole paths.
func Matches(pattern, local string) bool {
	for at := filepath.ToSlash(local); at != "." && at != "/" && at != ""; at = path.Dir(at) {
		if MatchesItself(pattern, at) {
			return true
		}
	}
	return false
}

// MatchesItself is Matches for the path alone.
func MatchesItself(pattern, local string) bool {
	name := filepath.ToSlash(local)
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, _ := path.Match(strings.Trim(pattern, "/"), name)
	return ok
}
