package pipeline

import (
	"slices"

	"xdspub/load"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/xds"
)

// rollback is the CDS file for the way back to what was out before s: the clusters as they
// were, and beside them those that came. Connections that came by a listener which Envoy
// took, and which now drains, route to these. It is nil where none come: then the file
// goes back to the bytes that it had.
func (p *Pipeline) rollback(s *xds.Snapshot, st *state, going []*xds.Resource) (*publish.Rollback, error) {
	if st.manifest.Snapshot == "" {
		return nil, nil // a first publish does not go back
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
	// Of a change that ended early before this one, listeners may be out already.
	if out := came(st.clusters); past && len(out) > 0 {
		back.Refused, err = p.restoredFile(new(render.Renderer), slices.Concat(before, out), out)
	}
	return back, err
}

// restoredFile is a CDS file of the clusters that r rendered last and of others that were published
// before, of which came are to go.
func (p *Pipeline) restoredFile(r *render.Renderer, published, came []*xds.Resource) (publish.RestoredFile, error) {
	f, err := r.Clusters(p.options.Format, published)
	k := publish.RestoredFile{File: publishFile(f)}
	for _, r := range came {
		k.Retired = append(k.Retired, publish.Retired{Cluster: r.Name})
	}
	return k, err
}

// clustersBefore are the clusters that the way back leads to: those that are out, or, over
// a change that ended early, those that were out before it; past tells whether that one
// got further than to its clusters.
func (p *Pipeline) clustersBefore(st *state) (clusters []*xds.Resource, past bool, err error) {
	file := p.options.Format.Path(xds.Cluster, "")
	data, past, err := publish.ReadOriginal(p.options.Out, file)
	if err != nil || data == nil {
		return st.clusters, false, err
	}
	return only(xds.Cluster, load.AsWritten(p.document(file, data)).Resources()), past, nil
}
