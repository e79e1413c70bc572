package load

import (
	"os"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/diag"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// file is what one file held when it was read last. But for the stamps, which the Loader
// alone looks at, it does not change.
type file struct {
	source    *source
	found     entry
	stamp     stamp
	resources []*xds.Resource
	findings  diag.Bounded
	inlined   []inlined
	// envelopes are its DiscoveryResponses without their resources.
	envelopes []*discoveryv3.DiscoveryResponse
	// saysNone tells that the list of its resources is there, and empty.
	saysNone bool
	// bootstrap is a Bootstrap without its static resources.
	bootstrap *xds.Resource
	ignores   []IgnoreComment
	// when is what a settings file says about the files around it, and clientsUnknown tells that it could
	// not be read.
	when           *settingsfile.Folder
	clientsUnknown bool
	// joined counts the bytes of Constraints that are those of a resource and of its folder.
	joined int
	unread bool // findings say why
	// partial tells that a resource in it could not be read at all.
	partial bool
}

func newFile(s *source) *file { return &file{source: s, findings: diag.NewBounded(syntax.MaxFindings)} }

func (f *file) diagnostics() diag.List {
	return f.findings.List(diag.Position{File: f.source.Name}, "in this file")
}

// errors counts the findings that are errors.
func (f *file) errors() int { return f.diagnostics().Count(diag.Error) }

// giveUp notes that what is left of the file is not read, for its many errors.
func (f *file) giveUp() {
	f.findings.Leave(diag.Error)
	f.partial = true
}

// isOther reports whether the file was looked at only.
func (f *file) isOther() bool { return f.source.Format == syntax.Other && !f.found.isOutside }

// size counts the bytes that were read: of a file that goes into several resources, and of what a
// settings file says to resources with Constraints of their own, several times. What was looked at only
// does not count.
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

// isCurrent reports whether the file, and those that went into its resources, surely are
// what they were. Mostly what the file system says of them is enough.
func (f *file) isCurrent(t *tree) bool {
	if f.unread || !f.stamp.settled {
		return false
	}
	stat := os.Lstat
	if f.found.linked {
		stat = t.stat
	}
	info, err := stat(f.source.Name)
	return err == nil && f.stamp.holds(info) && f.upToDate(t)
}

// upToDate reports whether the files that went into resources are what they were.
func (f *file) upToDate(t *tree) bool {
	for i := range f.inlined {
		if !f.inlined[i].same(t) {
			return false
		}
	}
	return true
}
