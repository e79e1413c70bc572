package published

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/source/load"
	"xdspub/xds"
)

// readOut is a published file with its resources, or with the reason why the file can't be read.
type readOut struct {
	data      []byte
	resources []*xds.Resource
	damage    string
	// of are the resources of one type; nil before somebody asks.
	of []*xds.Resource
}

// only returns the resources of type t, which is that of the file. What somebody wrote among
// them by hand Envoy refuses, with the whole file.
func (r *readOut) only(t *xds.Type) []*xds.Resource {
	if r.of == nil {
		r.of = only(t, r.resources)
	}
	return r.of
}

// readBack reads the resources of a published file. It decodes again only what changed: the
// file may be large, and is looked at in each pass.
func (r *Reader) readBack(file string) (*readOut, error) {
	data, err := r.files.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &readOut{}, nil
	case publish.Unreadable(err):
		return &readOut{damage: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	for _, known := range []map[string]*readOut{r.rendered, r.readOut} {
		if was := known[file]; was != nil && bytes.Equal(was.data, data) {
			was.data = data // the next comparison is of the same slice
			r.readOut[file] = was
			return was, nil
		}
	}
	is := &readOut{data: data}
	result := load.AsWritten(r.document(file, data))
	if result.Diagnostics.HasErrors() {
		is.damage = result.Diagnostics[0].Message
	} else {
		is.resources = result.Resources()
	}
	r.readOut[file] = is
	return is, nil
}

// only returns the resources of type t.
func only(t *xds.Type, resources []*xds.Resource) []*xds.Resource {
	other := func(r *xds.Resource) bool { return r.Type != t }
	if !slices.ContainsFunc(resources, other) {
		return resources
	}
	return slices.DeleteFunc(slices.Clone(resources), other)
}

// Rendered keeps the resources of those of the rendered files that are CDS and LDS files:
// decoding these again would take long.
func (r *Reader) Rendered(files []render.File) {
	for _, f := range files {
		if slices.Contains(xds.Entrypoints, f.Type) {
			r.rendered[f.Path] = &readOut{data: f.Data, resources: f.Resources}
		}
	}
}

// Resources returns the clusters or listeners in a file that a plan writes. Resources decodes the file only if
// Rendered did not get the file.
func (r *Reader) Resources(f publish.File) []*xds.Resource {
	if was, ok := r.rendered[f.Path]; ok && bytes.Equal(was.data, f.Data) {
		return was.resources
	}
	return load.Parse(load.Input{Name: f.Path, Format: r.options.Format.Name, Data: f.Data, Envoy: r.options.Envoy}).Resources()
}

// VersionInfo returns the version_info in a published file, even if another program wrote the file.
// VersionInfo is empty for a missing or unreadable file.
func (r *Reader) VersionInfo(file string) string {
	data, err := publish.ReadFile(r.options.Dir, file)
	if err != nil {
		return "" // it has moved, or is no file
	}
	response, _ := load.Response(r.document(file, data))
	return response.GetVersionInfo()
}

func (r *Reader) document(file string, data []byte) load.Input {
	return load.Input{Name: filepath.Join(r.options.Dir, filepath.FromSlash(file)), Format: r.options.Format.Name, Data: data, Envoy: r.options.Envoy}
}

// Changed returns when a published file, or the folder that it is in, was last changed
// (publish.Changed).
func (r *Reader) Changed(file string) time.Time { return publish.Changed(r.options.Dir, file) }
