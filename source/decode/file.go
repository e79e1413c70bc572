package decode

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/diag"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// File is what a source holds. A File is immutable except for the Stamps of Inlined.
type File struct {
	Source    *Source
	Resources []*xds.Resource
	Findings  diag.Bounded
	// Inlined are the files whose content was put into the resources.
	Inlined []Inlined
	// Envelopes are its DiscoveryResponses without their resources.
	Envelopes []*discoveryv3.DiscoveryResponse
	// SaysNone reports whether the file has an explicitly empty list of resources.
	SaysNone bool
	// Bootstrap is a Bootstrap without its static resources.
	Bootstrap *xds.Resource
	Ignores   []IgnoreComment
	// When is a settings file's value for the clients of the files around it; ClientsUnknown means that the
	// value could not be read.
	When           *settingsfile.Folder
	ClientsUnknown bool
	// Partial means that a resource of the file could not be read at all.
	Partial bool
	// joined counts the bytes of Constraints that are those of a resource and of its folder.
	joined int
}

// NewFile returns an empty File of a source.
func NewFile(s *Source) *File { return &File{Source: s, Findings: diag.NewBounded(syntax.MaxFindings)} }

// Diagnostics returns the findings.
func (f *File) Diagnostics() diag.List {
	return f.Findings.List(diag.Position{File: f.Source.Name}, "in this file")
}

// giveUp records that the rest of the file is not read because of its many errors.
func (f *File) giveUp() {
	f.Findings.Leave(diag.Error)
	f.Partial = true
}

// Size counts the bytes read. A file that is inlined into several resources counts several times, and so does a
// settings file for resources with Constraints of their own.
func (f *File) Size() int64 {
	n := f.Source.Size() + f.joined
	for _, in := range f.Inlined {
		n += len(in.Data)
	}
	return int64(n)
}

// Failure returns the error of an inlined file if the disk or the system has failed. Such an error is no fault of the
// source tree, and passes without a change of the tree.
func (f *File) Failure() error {
	for _, i := range f.Inlined {
		if err := Failure(i.Path, i.Err); err != nil {
			return err
		}
	}
	return nil
}
