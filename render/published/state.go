package published

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"xdspub/event"
	"xdspub/internal/names"
	"xdspub/render/publish"
	"xdspub/source/load"
	"xdspub/xds"
)

// UsageError means that the output directory does not allow the Options.
type UsageError struct{ Reason string }

func (e *UsageError) Error() string { return e.Reason }

// State is the record and the files of the output directory, as they are read for each plan. They
// are read from disk, unless the directory is trusted (Trust). So a plan that is made after a
// crash, or after a change by hand, starts from what Envoy would read.
type State struct {
	Manifest publish.Manifest
	// Files are the published files below the output directory, sorted.
	Files []string
	// Clusters and Listeners are the resources of the CDS and LDS files.
	Clusters, Listeners []*xds.Resource

	reader   *Reader
	clusters map[string]*xds.Resource // Clusters by name; nil before the first Read
}

// State reads what is published. A *UsageError means that the output directory does not allow
// the Options.
func (r *Reader) State() (*State, error) {
	m, err := r.Manifest()
	if err != nil {
		return nil, err
	}
	if err := r.compatible(m); err != nil {
		return nil, err
	}
	s := &State{Manifest: m, reader: r}
	if s.Files, err = r.files.List(folders(r.options.Format)); err != nil {
		return nil, err
	}
	// What is neither out nor on record, as after a trim that ended early, waits for no trim.
	s.Manifest.Retired = slices.DeleteFunc(slices.Clone(m.Retired), func(g publish.Retired) bool {
		_, recorded := m.Files.Get(g.File)
		return g.File != "" && !recorded && !s.Has(g.File)
	})
	if s.Clusters, err = r.published(xds.Cluster); err != nil {
		return nil, err
	}
	s.Listeners, err = r.published(xds.Listener)
	return s, err
}

// compatible refuses to change what a running Envoy relies on.
func (r *Reader) compatible(m publish.Manifest) error {
	if m.Layout == 0 {
		return nil
	}
	for _, c := range []struct{ flag, was, is string }{
		{"--format", m.Format, r.options.Format.Name},
		{"--envoy-path", m.EnvoyPath, r.EnvoyPath()},
	} {
		if c.was != c.is {
			return &UsageError{fmt.Sprintf("%s was published with %s=%s and can't change to %s under a running Envoy: use "+
				"%[2]s=%[3]s, or publish into another directory and start Envoy from there, or stop Envoy and remove this one",
				r.options.Dir, c.flag, c.was, c.is)}
		}
	}
	return nil
}

// published returns the resources of the published file of a type. A file that is missing, or was damaged by
// hand, has no resources, and the next publish replaces the file. published logs a damage once while the damage
// lasts: a publish does not replace a folder.
func (r *Reader) published(t *xds.Type) ([]*xds.Resource, error) {
	file := r.options.Format.Path(t, "")
	out, err := r.readBack(file)
	if err != nil {
		return nil, err
	}
	if out.damage != "" && out.damage != r.damage[file] {
		r.options.Log.Write(event.PublishedFileUnreadable{File: file, Error: out.damage})
	}
	r.damage[file] = out.damage
	return out.only(t), nil
}

// Has reports whether a file is published.
func (s *State) Has(file string) bool {
	_, has := slices.BinarySearch(s.Files, file)
	return has
}

// Holds reports whether clusters and listeners are the same slices as State's.
func (s *State) Holds(clusters, listeners []*xds.Resource) bool {
	return sameSlice(s.Clusters, clusters) && sameSlice(s.Listeners, listeners)
}

// Watches counts the path subscriptions that Envoy holds for the published clusters, or the
// published listeners. The Counts hold until the next call of another State.
func (s *State) Watches(t *xds.Type) names.Counts { return s.derive(t).watches }

// Named counts the files that the published clusters, or the published listeners, subscribe
// to. The Counts hold until the next call of another State.
func (s *State) Named(t *xds.Type) names.Counts { return s.derive(t).named }

func (s *State) derive(t *xds.Type) *derived {
	if t == xds.Cluster {
		return s.reader.derive(t, s.Clusters)
	}
	return s.reader.derive(t, s.Listeners)
}

// ForgetGone drops the contents of files that are no longer published.
func (s *State) ForgetGone() {
	maps.DeleteFunc(s.reader.readOut, func(file string, _ *readOut) bool { return !s.Has(file) })
}

// ClustersBefore returns the clusters that a rollback leads to: the published ones, or after a
// change that ended early the ones from before it. past reports whether that change moved any
// file after the one of its clusters.
func (s *State) ClustersBefore() (clusters []*xds.Resource, past bool, err error) {
	r := s.reader
	file := r.options.Format.Path(xds.Cluster, "")
	data, past, err := publish.ReadOriginal(r.options.Dir, file)
	if err != nil || data == nil {
		return s.Clusters, false, err
	}
	return only(xds.Cluster, load.AsWritten(r.document(file, data)).Resources()), past, nil
}

// Of returns the published resources of a type, for transition rules. State holds the clusters and listeners;
// only Of reads the files of other types, because thousands may exist. An unreadable file holds nothing: no
// Envoy runs the file, and the next publish replaces the file.
func (s *State) Of(t *xds.Type) ([]*xds.Resource, error) {
	switch t {
	case xds.Cluster:
		return s.Clusters, nil
	case xds.Listener:
		return s.Listeners, nil
	}
	var all []*xds.Resource
	for _, file := range s.Files {
		if !strings.HasPrefix(file, strings.ToLower(t.API)+"/") {
			continue
		}
		out, err := s.reader.readBack(file)
		if err != nil {
			return nil, err
		}
		all = append(all, out.only(t)...)
	}
	return all, nil
}

// Serves reports whether a published file answers a subscription of a published resource: its config
// source is the path of that file, as Envoy sees it.
func (s *State) Serves(sub xds.Subscription) bool {
	return xds.PathOf(sub.Source) == path.Join(s.reader.EnvoyPath(), s.reader.options.Format.Path(sub.Target, sub.Name))
}
