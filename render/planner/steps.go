package planner

import (
	"slices"
	"sync"

	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/xds"
)

// steps sorts files into Envoy's order: a resource is published before the resources that name it. Resources of
// the earlier Snapshot that name it stay meanwhile.
func (c *change) steps(r *rendered) []publish.Step {
	const (
		born = iota
		early
		clusters
		endpoints
		extensions
		unasked
		listeners
		routes
	)
	list := []publish.Step{
		{Name: "new names"}, {Name: "secrets, extensions, runtime"}, {Name: "clusters"}, {Name: "endpoints"}, {Name: "extensions"},
		{Name: "routes that no listener asks for yet"}, {Name: "listeners"}, {Name: "routes"},
	}
	byClusters, byListeners := c.st.Named(xds.Cluster), c.st.Named(xds.Listener)
	upstream := sync.OnceValue(func() map[string]bool { return upstreamExtensions(c.s) })
	for _, f := range r.files {
		out := c.st.Has(f.Path)
		at := born
		switch t := f.Type; {
		case t == xds.Cluster:
			at = clusters
		case t == xds.Listener:
			at = listeners
		// Filters call clusters, and a filter of a draining listener may read a new file
		// at once. But clusters with filters of their own need the files of these.
		case t == xds.ExtensionConfig && byClusters[f.Path] == 0 && !upstream()[f.Name]:
			at = extensions
		case !out:
		// No listener of the Snapshot reads the file. A draining listener may read it, so the clusters of the
		// file's routes come first.
		case t.Routes && byListeners[f.Path] == 0:
			at = unasked
		case t.Routes:
			at = routes
		case t == xds.Runtime: // which the bootstrap names
			at = early
		case byClusters[f.Path]+byListeners[f.Path] == 0:
		case t == xds.Endpoints:
			at = endpoints
		default:
			at = early
		}
		list[at].Write = append(list[at].Write, published.AsFile(f))
	}
	var leave []publish.Step
	for _, f := range r.intermediate {
		leave = append(leave, publish.Step{Name: "listeners that leave an address", Write: []publish.File{published.AsFile(f)}})
	}
	return slices.Insert(list, listeners, leave...)
}

// upstreamExtensions returns the names of the extensions that clusters of s subscribe to.
func upstreamExtensions(s *xds.Snapshot) map[string]bool {
	names := make(map[string]bool)
	for _, r := range s.Of(xds.Cluster) {
		if !r.AsksFor(xds.ExtensionConfig) {
			continue
		}
		for _, sub := range r.Facts().Subscriptions {
			if sub.Target == xds.ExtensionConfig && s.Serves(sub) {
				names[sub.Name] = true
			}
		}
	}
	return names
}
