package load

import (
	"iter"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/settingsfile"
	"xdspub/xds"
)

// Result is the content of a source tree, of a file or of an Input. It does not change.
type Result struct {
	// Diagnostics are the findings of reading and decoding, sorted.
	Diagnostics diag.List
	// Partial means that further resources could not be read at all. A resource that could be read in part is
	// included, with its Lost.
	Partial bool
	// ClientsUnknownIn are the folders of the tree in which, and below which, the clients of files are unknown.
	// Findings report the reasons. ClientsUnknownIn is empty if all clients are known.
	ClientsUnknownIn []string
	// SaysNone means that a file holds an explicitly empty list, such as resources: []. It is for
	// Subscribed.
	SaysNone bool
	// Inlined are the files that resources name by a relative path and whose content was put into
	// the resources, sorted.
	Inlined []string
	// Bytes is the number of bytes read.
	Bytes int64

	files    []*file // by path
	linked   []*file // those that a link leads to
	ignoring []*file // those with an IgnoreComment
	count    int     // of files that are not only looked at
	snapshot *xds.Snapshot
}

// Resources returns all resources, in the order of their files, and in a file in the order in
// which they stand.
func (r *Result) Resources() []*xds.Resource {
	var list []*xds.Resource
	for _, f := range r.files {
		list = append(list, f.Resources...)
	}
	return list
}

// Snapshot returns the Resources as a Snapshot. The Snapshot of a Loader's next Result knows
// how it differs from this one (xds.Snapshot.Since).
func (r *Result) Snapshot() *xds.Snapshot {
	if r.snapshot == nil {
		r.snapshot = xds.NewSnapshot(r.Resources())
	}
	return r.snapshot
}

// FileCount returns the number of resource files that were read.
func (r *Result) FileCount() int { return r.count }

// Unread returns the files that are not read because of their suffix. It leaves out those that
// nobody would take for resources, such as .md and .go.
func (r *Result) Unread() (paths []string) {
	for _, f := range r.files {
		if f.isOther() {
			paths = append(paths, f.Source.Name)
		}
	}
	return paths
}

// Linked returns the resource files that are reached by a link: to the file, or to a folder that
// it is in.
func (r *Result) Linked() []string { return resourceFiles(r.linked) }

func resourceFiles(files []*file) (paths []string) {
	for _, f := range files {
		if f.count() > 0 {
			paths = append(paths, f.Source.Name)
		}
	}
	return paths
}

// Line returns the source line at a position, without its line break. Line hides a line that may hold a
// secret.
func (r *Result) Line(p diag.Position) (string, bool) {
	i, found := searchFile(r.files, p.File)
	if !found {
		return "", false
	}
	return r.files[i].Source.Shown(p.Line)
}

// searchFile finds the file of a path, or the place where it would stand.
// treeFiles are the files of a tree by path.
type treeFiles []*file

// Has implements Files.
func (list treeFiles) Has(path string) bool {
	i, is := searchFile(list, path)
	return is && list[i].count() > 0
}

// Below implements Files.
func (list treeFiles) Below(beginning string) iter.Seq[string] {
	return func(yield func(string) bool) {
		i, _ := searchFile(list, beginning)
		for _, f := range list[i:] {
			if !strings.HasPrefix(f.Source.Name, beginning) || f.count() > 0 && !yield(f.Source.Name) {
				return
			}
		}
	}
}

// foldersOf returns what the settings files among files say.
func foldersOf(files []*file) (folders []*settingsfile.Folder) {
	for _, f := range files {
		if f.When != nil {
			folders = append(folders, f.When)
		} else {
			folders = append(folders, &settingsfile.Folder{Text: &f.Source.Text})
		}
	}
	return folders
}

func searchFile(files []*file, path string) (i int, found bool) {
	return slices.BinarySearchFunc(files, path, func(f *file, path string) int { return strings.Compare(f.Source.Name, path) })
}

// IgnoreComments returns the comments of all files, in the order of files and lines. JSON and binary files
// have no comments.
func (r *Result) IgnoreComments() (list []decode.IgnoreComment) {
	for _, f := range r.ignoring {
		list = append(list, f.Ignores...)
	}
	return list
}
