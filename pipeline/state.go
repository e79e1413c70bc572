package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/load"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/xds"
)

// UsageError means that the output directory does not allow the Options.
type UsageError struct{ Reason string }

func (e *UsageError) Error() string { return e.Reason }

// state is what is out: the record and the files of the output directory. It is
// read for each plan, from disk unless the directory is trusted (Trust): so a plan made
// after a crash, or after a change by hand, starts from what Envoy would really read.
type state struct {
	manifest publish.Manifest
	// files are the published files below the output directory, sorted.
	files []string
	// clusters and listeners are the resources of the CDS and LDS files.
	clusters, listeners []*xds.Resource
}

func (p *Pipeline) readState() (*state, error) {
	m, err := p.out.Manifest()
	if err != nil {
		return nil, err
	}
	if err := p.compatible(m); err != nil {
		return nil, err
	}
	s := &state{manifest: m}
	if s.files, err = p.out.List(folders(p.options.Format)); err != nil {
		return nil, err
	}
	// What is neither out nor on record, as after a trim that ended early, waits for no trim.
	s.manifest.Retired = slices.DeleteFunc(slices.Clone(m.Retired), func(g publish.Retired) bool {
		_, recorded := m.Files.Get(g.File)
		_, out := slices.BinarySearch(s.files, g.File)
		return g.File != "" && !recorded && !out
	})
	if s.clusters, err = p.published(xds.Cluster); err != nil {
		return nil, err
	}
	s.listeners, err = p.published(xds.Listener)
	return s, err
}

// publishedFiles are the files that stand where this program puts them, by path below
// the output directory. All else there is somebody else's: it is never removed, and
// not even looked into, since the lost+found of a volume can't be.
func publishedFiles(out string, format *render.Format) (map[string]publish.Info, error) {
	all := make(map[string]publish.Info)
	for top, base := range folders(format) {
		files, err := publish.Files(out, top, base)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

// folders are those of the output directory that published files stand below, each with
// the base name of its files.
func folders(format *render.Format) map[string]string {
	folders := make(map[string]string, len(xds.Types))
	for _, t := range xds.Types {
		folders[strings.ToLower(t.API)] = path.Base(format.Path(t, "x"))
	}
	return folders
}

// isLayer reports whether a published file is that of a runtime layer.
func isLayer(file string) bool {
	return strings.HasPrefix(file, strings.ToLower(xds.Runtime.API)+"/")
}

// compatible refuses to change what a running Envoy relies on.
func (p *Pipeline) compatible(m publish.Manifest) error {
	if m.Layout == 0 {
		return nil
	}
	for _, c := range []struct{ flag, was, is string }{
		{"--format", m.Format, p.options.Format.Name},
		{"--envoy-path", m.EnvoyPath, p.envoyPath()},
	} {
		if c.was != c.is {
			return &UsageError{fmt.Sprintf("%s was published with %s=%s and can't change to %s under a running Envoy: say %[2]s=%[3]s, or publish into another directory and start Envoy from there, or stop Envoy and remove this one",
				p.options.Out, c.flag, c.was, c.is)}
		}
	}
	return nil
}

// published reads back the resources of a published file. A file that is missing
// or was damaged by hand holds none: it is going to be replaced.
func (p *Pipeline) published(t *xds.Type) ([]*xds.Resource, error) {
	file := p.options.Format.Path(t, "")
	out, err := p.readBack(file)
	if err != nil {
		return nil, err
	}
	if out.damage != "" {
		p.log.Warn("a published file was changed and can't be read, it will be replaced", "file", file, "error", out.damage)
	}
	return out.only(t), nil
}

// versionInfo is the version_info in a published file, whoever wrote it; "" where
// there is no file, or nothing to be read.
func (p *Pipeline) versionInfo(file string) string {
	data, err := publish.ReadFile(p.options.Out, file)
	if err != nil {
		return "" // it has moved, or is no file
	}
	response, _ := load.Response(p.document(file, data))
	return response.GetVersionInfo()
}

func (p *Pipeline) document(file string, data []byte) load.Input {
	return load.Input{Name: filepath.Join(p.options.Out, filepath.FromSlash(file)), Format: p.options.Format.Name, Data: data, Envoy: p.options.Envoy}
}

// readOut is a published file and what is in it, or why that can't be read.
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
func (p *Pipeline) readBack(file string) (*readOut, error) {
	data, err := p.out.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &readOut{}, nil
	case publish.Unreadable(err):
		return &readOut{damage: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	for _, known := range []map[string]*readOut{p.rendered, p.readOut} {
		if was := known[file]; was != nil && bytes.Equal(was.data, data) {
			was.data = data // which are the same bytes the next time
			p.readOut[file] = was
			return was, nil
		}
	}
	is := &readOut{data: data}
	result := load.AsWritten(p.document(file, data))
	if result.Diagnostics.HasErrors() {
		is.damage = result.Diagnostics[0].Message
	} else {
		is.resources = result.Resources()
	}
	p.readOut[file] = is
	return is, nil
}

// forgetGone drops what was read of files that are no longer published.
func (p *Pipeline) forgetGone(files []string) {
	maps.DeleteFunc(p.readOut, func(file string, _ *readOut) bool {
		_, there := slices.BinarySearch(files, file)
		return !there
	})
}

// only returns the resources of type t.
func only(t *xds.Type, resources []*xds.Resource) []*xds.Resource {
	other := func(r *xds.Resource) bool { return r.Type != t }
	if !slices.ContainsFunc(resources, other) {
		return resources
	}
	return slices.DeleteFunc(slices.Clone(resources), other)
}

// layers are the names of the runtime layers that there are published files for,
// in the order of their folders, and what is wrong with the files that can't be
// read. A copy of a folder under another name is no layer.
func (p *Pipeline) layers(files []string) (names, damaged []string, err error) {
	for _, f := range files {
		if !isLayer(f) {
			continue
		}
		out, err := p.readBack(f)
		if err != nil {
			return nil, nil, err
		}
		if out.damage != "" {
			damaged = append(damaged, fmt.Sprintf("%s: %s", f, out.damage))
		}
		for _, r := range out.resources {
			if p.options.Format.Path(xds.Runtime, r.Name) == f {
				names = append(names, r.Name)
			}
		}
	}
	return names, damaged, nil
}

// RuntimeLayers are the names of the runtime layers that an output directory of
// that format has a file for: what a bootstrap can name. A file that can't be read
// is an error: without it Envoy would lack the layer until its next restart.
func RuntimeLayers(out string, format *render.Format) ([]string, error) {
	files, err := publishedFiles(out, format)
	if err != nil {
		return nil, err
	}
	names, damaged, err := New(Options{Out: out, Format: format}).layers(slices.Sorted(maps.Keys(files)))
	if err == nil && len(damaged) > 0 {
		err = fmt.Errorf("read %s: publish again first", strings.Join(damaged, "; "))
	}
	return names, err
}
