package load

import (
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds"
)

// Result is what a source tree holds. It does not change.
type Result struct {
	// Diagnostics are the findings of reading and decoding, sorted.
	Diagnostics diag.List
	// Partial tells that there are resources beside these that could not be read at all.
	// Of one that could be read in part, Lost says what it lacks.
	Partial bool
	// SaysNone tells that a file says in so many words that it holds no resource,
	// such as resources: []; for Subscribed.
	SaysNone bool
	// Inlined are the files that resources name by a relative path, sorted: they
	// went into the resources.
	Inlined []string
	// Bytes is the size of what was read.
	Bytes int64

	files    []*file // by path
	snapshot *xds.Snapshot
}

// Resources are all of them, in the order of their files, and of their places in a file.
func (r *Result) Resources() []*xds.Resource {
	var list []*xds.Resource
	for _, f := range r.files {
		list = append(list, f.resources...)
	}
	return list
}

// Snapshot holds the Resources. The Results of one Loader that hold the same share one,
// and the next one of them knows the Change (xds.Snapshot.Since).
func (r *Result) Snapshot() *xds.Snapshot {
	if r.snapshot == nil {
		r.snapshot = xds.NewSnapshot(r.Resources())
	}
	return r.snapshot
}

// Files are the resource files that were read, sorted.
func (r *Result) Files() []string {
	var list []string
	for _, f := range r.files {
		if f.source.format != formatOther {
			list = append(list, f.source.name)
		}
	}
	return list
}

// Line is the source line at a position, without its line break. It gives none
// that may hold a secret.
func (r *Result) Line(p diag.Position) (string, bool) {
	i, found := searchFile(r.files, p.File)
	if !found {
		return "", false
	}
	return r.files[i].source.shown(p.Line)
}

// searchFile finds the file of a path, or the place where it would stand.
func searchFile(files []*file, path string) (i int, found bool) {
	return slices.BinarySearchFunc(files, path, func(f *file, path string) int { return strings.Compare(f.source.name, path) })
}
