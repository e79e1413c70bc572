package render

import (
	"slices"
	"strings"

	"xdspub/internal/names"
	"xdspub/xds"
)

// Edit is how an Output differs from the one before.
type Edit struct {
	// Files are those that differ, sorted by path.
	Files []File
	// ID and Watches are those of the Output.
	ID      string
	Watches []string
	// Gone are the watches of the Output before that this one has no longer.
	Gone []string
}

// Edited returns how the Output of s differs from that of the last Render or Edited, where s
// differs from the Snapshot of then in the content of some resources only. It makes only the
// files that differ. ok is false where that is not so, or not known: then Render is needed.
func (r *Renderer) Edited(s *xds.Snapshot) (edit Edit, ok bool) {
	if r.last.snapshot == nil || len(r.last.target.Pinned) > 0 {
		return Edit{}, false
	}
	edits, ok := s.EditsSince(r.last.snapshot)
	if !ok {
		return Edit{}, false
	}
	for _, e := range edits {
		if delete(r.sound, e.Was); len(r.changes(e.Is)) > 0 {
			return Edit{}, false
		}
	}
	if edits, ok = r.binder.Edit(s, edits); !ok {
		return Edit{}, false
	}
	r.last.snapshot = nil // until all is as in s
	fresh, ok := r.replace(edits)
	if !ok {
		return Edit{}, false
	}
	if edit.Files, ok = r.filesOf(fresh); !ok {
		return Edit{}, false
	}
	var change xds.Change
	for _, e := range edits {
		change.Removed, change.Added = append(change.Removed, e.Was), append(change.Added, e.Is)
	}
	r.last.snapshot, r.last.bound = s, r.last.bound.Apply(change)
	edit.ID = r.last.bound.ID()
	edit.Gone = r.last.watches.settle()
	edit.Watches = r.last.watches.sorted
	return edit, true
}

// replace writes bound resources in the place of others.
func (r *Renderer) replace(edits []xds.Edited) (fresh []*encoded, ok bool) {
	for _, e := range edits {
		was := r.written[e.Was]
		is, err := r.encode(e.Is)
		if was == nil || err != nil {
			return nil, false
		}
		delete(r.written, e.Was)
		r.written[e.Is] = is
		r.last.watches.add(was.watches, -1)
		r.last.watches.add(is.watches, 1)
		fresh = append(fresh, is)
	}
	return fresh, true
}

// filesOf returns the files that written resources are in, with those in them that stay.
func (r *Renderer) filesOf(fresh []*encoded) (files []File, ok bool) {
	of := make(map[*xds.Type][]*encoded)
	for _, e := range fresh {
		t := e.resource.Type
		if !inOneFile(t) {
			f, err := e.alone(r.format)
			if err != nil {
				return nil, false
			}
			files = append(files, f)
			continue
		}
		if of[t] == nil {
			of[t] = slices.Clone(r.several[t].of)
		}
		i, found := slices.BinarySearchFunc(of[t], e.resource.Name, func(e *encoded, name string) int { return strings.Compare(e.resource.Name, name) })
		if !found {
			return nil, false
		}
		of[t][i] = e
	}
	for t, all := range of {
		f, err := r.severalIn(t, all)
		if err != nil {
			return nil, false
		}
		files = append(files, f)
	}
	slices.SortFunc(files, inOrder)
	return files, true
}

// inOneFile reports whether all resources of a type are in one file.
func inOneFile(t *xds.Type) bool {
	return t == xds.Cluster || t == xds.Listener || t == xds.ScopedRoutes
}

// counted is a set of watches: those that several resources share count several times.
type counted struct {
	times   names.Counts
	sorted  []string        // as of the last settle
	changed map[string]bool // since then
}

func newCounted() *counted {
	return &counted{times: make(names.Counts), changed: make(map[string]bool)}
}

// add adds each of the watches n times.
func (c *counted) add(watches []string, n int) {
	for _, w := range watches {
		c.changed[w] = true
	}
	c.times.Add(watches, n)
}

// settle brings sorted up to date, and returns the watches that are gone from it, sorted.
func (c *counted) settle() (gone []string) {
	for w := range c.changed {
		c.changed[w] = c.times[w] > 0
		if _, had := slices.BinarySearch(c.sorted, w); had && !c.changed[w] {
			gone = append(gone, w)
		}
	}
	c.sorted, c.changed = names.Merge(c.sorted, c.changed), make(map[string]bool)
	slices.Sort(gone)
	return gone
}
