package pipeline

import (
	"slices"

	"xdspub/load"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/xds"
)

// rollback returns the CDS file for a rollback from s: the clusters from before, and beside
// them those that s adds. Connections of a listener that Envoy took, and that then drains,
// route to these. It returns nil where s adds no cluster: then the file gets the bytes from
// before.
func (p *Pipeline) rollback(s *xds.Snapshot, st *state, going []*xds.Resource) (*publish.Rollback, error) {
	if st.manifest.Snapshot == "" {
		return nil, nil // a first publish is not rolled back
	}
	before, past, err := p.clustersBefore(st)
	if err != nil {
		return nil, err
	}
	had := make(map[string]bool, len(before))
	for _, r := range before {
		had[r.Name] = true
	}
	came := func(list []*xds.Resource) []*xds.Resource {
		return slices.DeleteFunc(slices.Clone(list), func(r *xds.Resource) bool { return had[r.Name] })
	}
	stay := came(going)
	if len(stay)+len(came(s.Of(xds.Cluster))) == 0 {
		return nil, nil
	}
	back := new(publish.Rollback)
	if back.Taken, err = p.restoredFile(&p.renderer, slices.Concat(before, stay), slices.Concat(came(s.Of(xds.Cluster)), stay)); err != nil {
		return nil, err
	}
	// A change that ended early before this one may have published listeners.
	if out := came(st.clusters); past && len(out) > 0 {
		back.Refused, err = p.restoredFile(new(render.Renderer), slices.Concat(before, out), out)
	}
	return back, err
}

// restoredFile returns a CDS file of the clusters that r rendered last and of others that were
// published before. It retires those that came.
func (p *Pipeline) restoredFile(r *render.Renderer, published, came []*xds.Resource) (publish.RestoredFile, error) {
	f, err := r.Clusters(p.options.Format, published)
	k := publish.RestoredFile{File: publishFile(f)}
	for _, r := range came {
		k.Retired = append(k.Retired, publish.Retired{Cluster: r.Name})
	}
	return k, err
}

// clustersBefore returns the clusters that a rollback leads to: the published ones, or, after
// a change that ended early, those from before it. past reports whether that change moved
// anything after its clusters.
func (p *Pipeline) clustersBefore(st *state) (clusters []*xds.Resource, past bool, err error) {
	file := p.options.Format.Path(xds.Cluster, "")
	data, past, err := publish.ReadOriginal(p.options.Out, file)
	if err != nil || data == nil {
		return st.clusters, false, err
	}
	return only(xds.Cluster, load.AsWritten(p.document(file, data)).Resources()), past, nil
}
