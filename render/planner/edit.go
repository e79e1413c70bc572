package planner

import (
	"cmp"
	"context"
	"slices"

	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// planned is what the last plan came to.
type planned struct {
	snapshot *xds.Snapshot
	id       string // of the snapshot on record
	target   render.Target
	// silent means that the render had no findings.
	silent bool
	// still means that transition rules find nothing on the way from the Snapshot to itself.
	still bool
}

// renderEdit renders a change without visiting all resources, if the last plan is published and the changes
// since are known. renderEdit returns the files that differ. ok is false if the known changes are not enough
// to plan the edit, or if the edit may have findings.
func (c *change) renderEdit(ctx context.Context) (r *rendered, ok bool) {
	last := &c.planned
	if !c.out.Trusts() || !last.silent || c.st.Manifest.Snapshot != last.id ||
		!c.st.Holds(c.renderer.Wrote(xds.Cluster), c.renderer.Wrote(xds.Listener)) {
		return nil, false
	}
	changes, ok := c.s.ChangesSince(last.snapshot)
	if !ok || c.movesAddress(changes) {
		return nil, false
	}
	keeps := transition.Keeps(changes, c.s, c.guard)
	if !(keeps && last.still) && !c.makesTransition() {
		return nil, false
	}
	retired, ok := c.retires(ctx, changes)
	if !ok {
		return nil, false
	}
	edit, ok := c.renderer.Edited(c.s)
	if !ok || c.exceedsBudget(edit) {
		return nil, false
	}
	last.snapshot, last.id, last.still = c.s, c.id(edit.ID), keeps
	if !c.findsNamed(changes, edit) {
		c.out.Trust(false)
		return nil, false
	}
	back, err := c.rollback(nil, added(changes, xds.Cluster))
	if err != nil {
		return nil, false
	}
	listening := c.st.Watches(xds.Listener)
	return &rendered{
		target: last.target, files: edit.Files, id: edit.ID, watches: edit.Watches, rollback: back,
		leaving: slices.DeleteFunc(edit.Gone, func(watch string) bool { return listening[watch] == 0 }),
		retired: c.retiredAfter(changes, retired, edit),
	}, true
}

// movesAddress reports whether a listener must leave an address before another listener takes the address.
func (c *change) movesAddress(changes []xds.Edited) bool {
	keepsAddress := func(e xds.Edited) bool {
		return e.Key().Type != xds.Listener || e.Is == nil || e.Was != nil && transition.KeepsSockets(e.Was, e.Is)
	}
	if !slices.ContainsFunc(changes, func(e xds.Edited) bool { return !keepsAddress(e) }) {
		return false
	}
	waits, _ := transition.Moves(c.st.Listeners, c.s.Of(xds.Listener))
	return len(waits) > 0
}

// makesTransition reports whether transition rules find nothing on the way from what is published
// to the Snapshot.
func (c *change) makesTransition() bool {
	found, err := transition.Transitions(c.st, c.s, c.transitions())
	return err == nil && len(found) == 0
}

// exceedsBudget reports whether Envoy may need more inotify instances than it has while an edit
// is published: for what runs, drains and is new.
func (c *change) exceedsBudget(e render.Edit) bool {
	running := append(c.draining(), e.Gone...)
	return len(e.Watches)+len(without(running, e.Watches)) > c.options.InotifyBudget
}

// retires returns the published clusters that the changes remove. ok is false if such a cluster can't stay
// until its trim.
func (c *change) retires(ctx context.Context, changes []xds.Edited) (retired []*xds.Resource, ok bool) {
	for _, e := range changes {
		if e.Key().Type != xds.Cluster || e.Is != nil {
			continue
		}
		r := named(c.st.Clusters, e.Was.Name)
		if r == nil {
			return nil, false
		}
		// Without the trust, the whole plan sees that a file of it was removed by hand.
		if slices.ContainsFunc(c.out.Named([]*xds.Resource{r}), func(file string) bool { return !c.out.StillOut(file) }) {
			c.out.Trust(false)
			return nil, false
		}
		retired = append(retired, r)
	}
	if len(retired) == 0 {
		return nil, true
	}
	return retired, len(c.unfit(ctx, xds.NewSnapshot(retired))) == 0
}

// retiredAfter returns the published clusters and files that the Snapshot lacks: the list on record, without
// added and with removed clusters and files.
func (c *change) retiredAfter(changes []xds.Edited, clusters []*xds.Resource, edit render.Edit) (going []publish.Retired) {
	retired := make(map[publish.Retired]bool)
	for _, g := range c.st.Manifest.Retired {
		retired[publish.Retired{Cluster: g.Cluster, File: g.File}] = true
	}
	for _, r := range clusters {
		retired[publish.Retired{Cluster: r.Name}] = true
	}
	for _, file := range edit.Removed {
		retired[publish.Retired{File: file}] = true
	}
	for _, r := range added(changes, xds.Cluster) {
		delete(retired, publish.Retired{Cluster: r.Name})
	}
	for _, f := range edit.Files {
		delete(retired, publish.Retired{File: f.Path})
	}
	for g := range retired {
		going = append(going, g)
	}
	slices.SortFunc(going, func(a, b publish.Retired) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Cluster, b.Cluster))
	})
	return going
}

// findsNamed reports whether the published files that changed resources name from now on are on
// disk: somebody may have removed one by hand, and nothing named it until then.
func (c *change) findsNamed(changes []xds.Edited, edit render.Edit) bool {
	for _, e := range changes {
		var was []*xds.Resource
		switch e.Key().Type {
		case xds.Cluster:
			was = c.st.Clusters
		case xds.Listener:
			was = c.st.Listeners
		default:
			continue
		}
		now := named(c.renderer.Wrote(e.Key().Type), e.Key().Name)
		if e.Is == nil || now == nil {
			continue
		}
		var before []string
		if r := named(was, now.Name); r != nil {
			before = c.out.Named([]*xds.Resource{r})
		}
		for _, file := range c.out.Named([]*xds.Resource{now}) {
			_, written := slices.BinarySearchFunc(edit.Files, file, func(f render.File, path string) int { return cmp.Compare(f.Path, path) })
			if !written && !slices.Contains(before, file) && !c.out.StillOut(file) {
				return false
			}
		}
	}
	return true
}

// added returns the resources of a type that changes add.
func added(changes []xds.Edited, t *xds.Type) (list []*xds.Resource) {
	for _, e := range changes {
		if e.Was == nil && e.Is.Type == t {
			list = append(list, e.Is)
		}
	}
	return list
}

// named returns the resource of a name in a list that is sorted by name; nil for none.
func named(sorted []*xds.Resource, name string) *xds.Resource {
	i, found := slices.BinarySearchFunc(sorted, name, func(r *xds.Resource, name string) int { return cmp.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return sorted[i]
}
