// Package gitdir finds the git repository of a work tree by its files, without git.
//
//	for _, dotGit := range gitdir.Enclosing("/srv/config/envoy") {
//		dir, ok := gitdir.Of(dotGit) // holds HEAD and the index
//	}
package gitdir

import (
	"os"
	"path/filepath"
	"strings"

	"xdspub/internal/safefile"
)

// Name is the name of the file, or folder, that makes the folder around it a work tree.
const Name = ".git"

// maxFile bounds the file that a .git can be, in bytes.
const maxFile = 64 << 10

// Enclosing returns the paths of every .git in dir and in the folders above it, the nearest
// first: a submodule is changed by commands on it and on the repository around it.
func Enclosing(dir string) []string {
	var list []string
	for {
		path := filepath.Join(dir, Name)
		if _, err := os.Lstat(path); err == nil {
			list = append(list, path)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return list
		}
		dir = up
	}
}

// Of returns where the .git at path keeps HEAD and the index. In a linked work tree and in a
// submodule it is a file that says where (gitrepository-layout, "gitdir: <path>").
func Of(path string) (dir string, ok bool) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return path, err == nil
	}
	data, err := safefile.Read(path, maxFile)
	if err != nil {
		return "", false
	}
	dir, ok = strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	return dir, ok
}
