package planner

import (
	"context"
	"slices"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// retiredClusters returns the published clusters that the Snapshot has no longer, as they
// were bound.
func (c *change) retiredClusters(ctx context.Context) []*xds.Resource {
	going := xds.NewSnapshot(slices.DeleteFunc(slices.Clone(c.st.Clusters), func(r *xds.Resource) bool { return c.s.Lookup(xds.Cluster, r.Name) != nil }))
	unfit := c.unfit(ctx, going)
	return slices.DeleteFunc(slices.Clone(going.Of(xds.Cluster)), func(r *xds.Resource) bool { return unfit[r.Name] })
}

// unfit returns the names of published clusters that can't be published again, and logs the reasons: somebody
// has changed files by hand. unfit validates these clusters like any others.
func (c *change) unfit(ctx context.Context, going *xds.Snapshot) map[string]bool {
	bad := make(map[string]bool)
	for _, d := range validate.Run(ctx, going, rules.All, validate.Options{Envoy: c.options.Envoy, Disable: c.options.Disable, Incomplete: xds.Types}) {
		if d.Severity == diag.Error {
			bad[d.Resource.Name] = true
			c.options.Log.Write(event.RetiredClusterDamaged{Cluster: d.Resource.Name, Error: d.Message})
		}
	}
	for _, r := range going.Of(xds.Cluster) {
		if file := c.missingFile(r); file != "" && !bad[r.Name] {
			bad[r.Name] = true
			c.options.Log.Write(event.RetiredFileMissing{Cluster: r.Name, File: file})
		}
	}
	return bad
}

// missingFile returns the first file that a published cluster subscribes to and that is neither published nor
// in the Snapshot; "" for none.
func (c *change) missingFile(cluster *xds.Resource) (missing string) {
	for _, sub := range cluster.Facts().Subscriptions {
		file, ok := c.out.File(sub)
		if ok && sub.Name != "" && !c.st.Has(file) && c.s.Lookup(sub.Target, sub.Name) == nil && (missing == "" || file < missing) {
			missing = file
		}
	}
	return missing
}

// retired returns what is published and not in the Snapshot: clusters, and files that no new
// subscription names.
func (c *change) retired(clusters []*xds.Resource, out *render.Output) []publish.Retired {
	var going []publish.Retired
	for _, r := range clusters {
		going = append(going, publish.Retired{Cluster: r.Name})
	}
	wanted := make([]string, len(out.Files))
	for i, f := range out.Files {
		wanted[i] = f.Path
	}
	// A file on record is retired even if somebody has removed the file.
	names := without(c.st.Manifest.Files.Names(), c.st.Files)
	for _, f := range without(slices.Concat(names, c.st.Files), wanted) {
		// The plan writes the file of every layer that can be read. The file of any other layer stays: the
		// bootstrap names the layer, and no other file replaces it.
		if !published.IsLayer(f) {
			going = append(going, publish.Retired{File: f})
		}
	}
	return going
}

// without returns the elements of list, each once, that sorted lacks.
func without(list, sorted []string) []string {
	var rest []string
	for _, x := range list {
		if _, found := slices.BinarySearch(sorted, x); !found {
			rest = append(rest, x)
		}
	}
	slices.Sort(rest)
	return slices.Compact(rest)
}
