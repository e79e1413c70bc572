package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/load"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/xds"
)

// UsageError says that the output directory does not allow what was asked for.
type UsageError struct{ Reason string }

func (e *UsageError) Error() string { return e.Reason }

// state is what is out: the record and the files of the output directory. It is
// read from disk for each plan, so that a plan made after a crash, or after a
// change by hand, starts from what Envoy would really read.
type state struct {
	manifest publish.Manifest
	// files are the published files below the output directory, sorted.
	files []string
	// clusters and listeners are the resources of the CDS and LDS files.
	clusters, listeners []*xds.Resource
}

func (p *Pipeline) readState() (*state, error) {
	m, err := publish.ReadManifest(p.options.Out)
	if err != nil {
		return nil, err
	}
	if err := p.compatible(m); err != nil {
		return nil, err
	}
	s := &state{manifest: m}
	if s.files, err = publishedFiles(p.options.Out, p.options.Format); err != nil {
		return nil, err
	}
	if s.clusters, err = p.published(xds.Cluster); err != nil {
		return nil, err
	}
	s.listeners, err = p.published(xds.Listener)
	return s, err
}

// publishedFiles lists the files that stand where this program puts them, below
// the output directory and sorted. All else there is somebody else's: it is never
// removed, and not even looked into, since the lost+found of a volume can't be.
func publishedFiles(out string, format *render.Format) ([]string, error) {
	var files []string
	for _, t := range xds.Types {
		top, leaf := strings.ToLower(t.API), path.Base(format.Path(t, "x"))
		entries, err := os.ReadDir(filepath.Join(out, top))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := path.Join(top, e.Name())
			if e.IsDir() {
				name = path.Join(name, leaf)
			}
			info, err := os.Lstat(filepath.Join(out, filepath.FromSlash(name)))
			switch {
			case path.Base(name) != leaf, errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return nil, err
			case !info.IsDir():
				files = append(files, name)
			}
		}
	}
	slices.Sort(files)
	return files, nil
}

// isLayer tells whether a published file is that of a runtime layer.
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
	file := filepath.Join(p.options.Out, filepath.FromSlash(p.options.Format.Path(t, "")))
	result, err := load.New(load.Options{}).Load(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if result.Diagnostics.HasErrors() {
		p.log.Warn("a published file was changed and can't be read, it will be replaced", "file", file, "error", result.Diagnostics[0].Message)
		return nil, nil
	}
	return result.Resources, nil
}

// RuntimeLayers are the names of the runtime layers that the output directory has
// a file for, in the order of their folders: what a bootstrap can name.
func RuntimeLayers(out string, format *render.Format) ([]string, error) {
	files, err := publishedFiles(out, format)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if !isLayer(f) {
			continue
		}
		result, err := load.New(load.Options{}).Load(filepath.Join(out, filepath.FromSlash(f)))
		if err != nil {
			return nil, err
		}
		for _, r := range result.Resources {
			names = append(names, r.Name)
		}
	}
	return names, nil
}

// since is when a cluster or file began to go, or now. A record without a time
// is of a plan that did not end: what waits for its end waits anew.
func (s *state) since(cluster, file string, now time.Time) time.Time {
	for _, g := range s.manifest.Going {
		if g.Cluster == cluster && g.File == file && !g.Since.IsZero() {
			return g.Since
		}
	}
	return now
}
