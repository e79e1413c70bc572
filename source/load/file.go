package load

import (
	"os"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/diag"
	"xdspub/internal/safefile"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// file is the content of a file at its last read. A file is immutable except for its stamps, which only the
// Loader reads.
type file struct {
	source    *source
	found     entry
	stamp     safefile.Stamp
	resources []*xds.Resource
	findings  diag.Bounded
	inlined   []inlined
	// envelopes are its DiscoveryResponses without their resources.
	envelopes []*discoveryv3.DiscoveryResponse
	// saysNone reports whether the file has an explicitly empty list of resources.
	saysNone bool
	// bootstrap is a Bootstrap without its static resources.
	bootstrap *xds.Resource
	ignores   []IgnoreComment
	// when is a settings file's value for the clients of the files around it; clientsUnknown means that the
	// value could not be read.
	when           *settingsfile.Folder
	clientsUnknown bool
	// joined counts the bytes of Constraints that are those of a resource and of its folder.
	joined int
	unread bool // findings say why
	// partial means that a resource of the file could not be read at all.
	partial bool
}

func newFile(s *source) *file { return &file{source: s, findings: diag.NewBounded(syntax.MaxFindings)} }

func (f *file) diagnostics() diag.List {
	return f.findings.List(diag.Position{File: f.source.Name}, "in this file")
}

// errors counts the findings that are errors.
func (f *file) errors() int { return f.diagnostics().Count(diag.Error) }

// giveUp records that the rest of the file is not read because of its many errors.
func (f *file) giveUp() {
	f.findings.Leave(diag.Error)
	f.partial = true
}

// isOther reports whether the file was looked at only.
func (f *file) isOther() bool { return f.source.Format == syntax.Other && !f.found.isOutside }

// size counts the bytes read. A file that is inlined into several resources counts several times, and so does
// a settings file for resources with Constraints of their own. A file that was only scanned does not count.
func (f *file) size() int64 {
	if f == nil || f.isOther() {
		return 0
	}
	n := f.source.Size() + f.joined
	for _, in := range f.inlined {
		n += len(in.data)
	}
	return int64(n)
}

// count is 1 for a resource file, 0 for a settings file, one that was looked at only, and for none.
func (f *file) count() int {
	if f == nil || f.isOther() || f.source.isSettings {
		return 0
	}
	return 1
}

// isCurrent reports whether the file, and the files inlined into its resources, are certainly unchanged. The
// file system's metadata mostly suffice for the answer.
func (f *file) isCurrent(t *tree) bool {
	if f.unread || !f.stamp.Settled() {
		return false
	}
	stat := os.Lstat
	if f.found.linked {
		stat = t.stat
	}
	info, err := stat(f.source.Name)
	return err == nil && f.stamp.Holds(info) && f.upToDate(t)
}

// upToDate reports whether the inlined files are unchanged.
func (f *file) upToDate(t *tree) bool {
	for i := range f.inlined {
		if !f.inlined[i].same(t) {
			return false
		}
	}
	return true
}
