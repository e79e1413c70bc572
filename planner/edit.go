package planner

import (
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"xdspub/diff"
	"xdspub/render"
	"xdspub/xds"
)

// planned is what the last plan came to.
type planned struct {
	snapshot *xds.Snapshot
	target   render.Target
	// clusters and listeners are the resources of the CDS and LDS files.
	clusters, listeners []*xds.Resource
	// silent means that it had no findings.
	silent bool
}

// renderEdit renders the most frequent change without looking at all resources: the last plan is
// published, and since then only the content of resources was edited, by which no transition
// rule goes. It returns the files that differ. ok is false for all other changes.
func (c *change) renderEdit() (r *rendered, ok bool) {
	last := &c.planned
	if !c.out.Trusts() || !last.silent || c.st.Manifest.Snapshot != last.snapshot.ID() ||
		!c.st.Holds(last.clusters, last.listeners) {
		return nil, false
	}
	edits, ok := c.s.EditsSince(last.snapshot)
	if !ok || slices.ContainsFunc(edits, func(e xds.Edited) bool { return !keepsTransitions(e) }) {
		return nil, false
	}
	edit, ok := c.renderer.Edited(c.s)
	if !ok || c.exceedsBudget(edit) {
		return nil, false
	}
	last.snapshot = c.s
	for _, f := range edit.Files {
		switch f.Type {
		case xds.Cluster:
			last.clusters = f.Resources
		case xds.Listener:
			last.listeners = f.Resources
		}
	}
	return &rendered{target: last.target, files: edit.Files, id: edit.ID, watches: edit.Watches, retired: c.st.Manifest.Retired}, true
}

// keepsTransitions reports whether no transition rule goes by an edit.
func keepsTransitions(e xds.Edited) bool {
	if e.Is.Same(e.Was) { // another one of its file was edited
		return true
	}
	if diff.UsesSingletons(e.Is) || asksForExtensions(e.Was) || asksForExtensions(e.Is) {
		return false
	}
	switch e.Is.Type {
	case xds.Listener:
		return diff.KeepsSockets(e.Was, e.Is)
	case xds.Secret:
		return xds.SecretKind(e.Was.Message.(*tlsv3.Secret)) == xds.SecretKind(e.Is.Message.(*tlsv3.Secret))
	case xds.Cluster, xds.Endpoints, xds.RouteConfiguration, xds.Runtime:
		return true
	}
	return false
}

func asksForExtensions(r *xds.Resource) bool {
	return slices.ContainsFunc(r.Facts().Subscriptions, func(sub xds.Subscription) bool { return sub.Target == xds.ExtensionConfig })
}

// exceedsBudget reports whether Envoy may need more inotify instances than it has while an edit
// is published: for what runs, drains and is new.
func (c *change) exceedsBudget(e render.Edit) bool {
	running := append(c.draining(), e.Gone...)
	return len(e.Watches)+len(without(running, e.Watches)) > c.options.InotifyBudget
}
