package planner

import (
	"cmp"
	"slices"

	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/xds"
)

// rollback returns the CDS file for a rollback from the Snapshot: the earlier clusters, and beside them the
// new clusters of the Snapshot. A listener that Envoy accepted, and that drains after the rollback, routes its
// connections to these new clusters. If the Snapshot has no new clusters, rollback returns nil, and the file
// gets its earlier bytes.
func (c *change) rollback(going, clusters []*xds.Resource) (*publish.Rollback, error) {
	if c.st.Manifest.Snapshot == "" || len(going)+len(clusters) == 0 {
		return nil, nil // a first publish is not rolled back
	}
	before, past, err := c.st.ClustersBefore()
	if err != nil {
		return nil, err
	}
	before = slices.SortedStableFunc(slices.Values(before), func(a, b *xds.Resource) int { return cmp.Compare(a.Name, b.Name) })
	came := func(list []*xds.Resource) []*xds.Resource {
		return slices.DeleteFunc(slices.Clone(list), func(r *xds.Resource) bool { return named(before, r.Name) != nil })
	}
	clusters, stay := came(clusters), came(going)
	if len(stay)+len(clusters) == 0 {
		return nil, nil
	}
	back := new(publish.Rollback)
	if back.Taken, err = c.restoredFile(&c.renderer, slices.Concat(before, stay), slices.Concat(clusters, stay)); err != nil {
		return nil, err
	}
	// An earlier change that ended early may have published listeners.
	if out := came(c.st.Clusters); past && len(out) > 0 {
		back.Refused, err = c.restoredFile(new(render.Renderer), slices.Concat(before, out), out)
	}
	return back, err
}

// restoredFile returns a CDS file with the clusters of r's last render and other published clusters. The file
// retires the clusters in came.
func (c *change) restoredFile(r *render.Renderer, all, came []*xds.Resource) (publish.RestoredFile, error) {
	f, err := r.Clusters(c.out.Format(), all)
	k := publish.RestoredFile{File: published.AsFile(f)}
	for _, r := range came {
		k.Retired = append(k.Retired, publish.Retired{Cluster: r.Name})
	}
	return k, err
}
