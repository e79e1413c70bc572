// Package owners divides a source tree into folders that stand for themselves, such as the folders of teams.
//
//	folders := owners.New("config", []string{"teams/*"})
//	folders.Of("config/teams/a/cluster.yaml") // teams/a
package owners

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
)

// Folders are the folders of owners in a source tree. The zero value has none.
type Folders struct {
	root     string
	patterns []string
}

// New returns the Folders of the source tree at root whose paths below root match one of the patterns (path.Match).
func New(root string, patterns []string) Folders { return Folders{filepath.Clean(root), patterns} }

// Of returns the folder that owns a file of the source tree, as a path below the root; empty for a shared file. The
// outermost folder that matches a pattern owns the file.
func (f Folders) Of(file string) string {
	if len(f.patterns) == 0 {
		return ""
	}
	below, err := filepath.Rel(f.root, file)
	if err != nil || !filepath.IsLocal(below) {
		return ""
	}
	folder := ""
	parts := strings.Split(filepath.ToSlash(below), "/")
	for _, name := range parts[:len(parts)-1] {
		folder = path.Join(folder, name)
		if slices.ContainsFunc(f.patterns, func(p string) bool { is, err := path.Match(p, folder); return is && err == nil }) {
			return folder
		}
	}
	return ""
}

// Unmatched returns the patterns that match no folder of the source tree.
func (f Folders) Unmatched() (list []string) {
	tree := os.DirFS(f.root)
	for _, p := range f.patterns {
		found, err := fs.Glob(tree, p)
		if err == nil && !slices.ContainsFunc(found, func(name string) bool { info, err := fs.Stat(tree, name); return err == nil && info.IsDir() }) {
			list = append(list, p)
		}
	}
	return list
}

// Wrong returns why a text is not a pattern of folders below the root; empty if it is.
func Wrong(pattern string) string {
	switch _, err := path.Match(pattern, ""); {
	case err != nil || pattern == "":
		return "write a glob pattern of folders, such as teams/*"
	case strings.Contains(pattern, "**"):
		return "** means the same as *, which does not match a slash: write a pattern for each depth, such as teams/* and teams/*/*"
	case path.Clean(pattern) != pattern || pattern == "." || !filepath.IsLocal(pattern):
		return "it matches nothing: write a path below the source tree without . and .., such as teams/*"
	}
	return ""
}

// Held is an owner whose folder waits, because the folder has errors. Its last valid resources stay published.
type Held struct {
	// Owner is the folder, as a path below the source tree.
	Owner string `json:"owner"`
	// Since is the beginning of the wait.
	Since time.Time `json:"since"`
}

// mostHeld is the number of owners that Text names, and mostText bounds a name, in bytes.
const (
	mostHeld = 5
	mostText = 200
)

// Text returns held owners with their times, such as "as last valid: teams/a (since 2026-01-02T03:04:05Z)".
func Text(held []Held) string {
	var names []string
	for _, h := range held {
		names = append(names, fmt.Sprintf("%s (since %s)", diag.Clip(h.Owner, mostText), h.Since.UTC().Format(time.RFC3339)))
	}
	return "as last valid: " + diag.Few(names, mostHeld)
}
