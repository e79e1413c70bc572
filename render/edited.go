package render

import (
	"maps"
	"slices"
	"strings"

	"xdspub/internal/names"
	"xdspub/xds"
)

// Edit is the difference between an Output and the one before.
type Edit struct {
	// Files are the files of the Output that differ from those before or are new, sorted by path.
	Files []File
	// Removed are the paths of the files that only the Output before has, sorted.
	Removed []string
	// ID and Watches are those of the Output.
	ID      string
	Watches []string
	// Gone are the watches of the Output before that the new Output lacks.
	Gone []string
}

// Edited returns the difference between the Output of s and that of the last Render or Edited,
// and makes only the files that differ. The Target is the one of then, with each cluster that was
// removed added to Retired, and each layer to EmptyLayers.
//
// ok is false, and Render is needed, where s does not follow by a known Change from the Snapshot
// of then, or where the Change does not tell enough.
func (r *Renderer) Edited(s *xds.Snapshot) (edit Edit, ok bool) {
	last := r.last.snapshot
	if last == nil || len(r.last.target.Pinned) > 0 {
		return Edit{}, false
	}
	r.last.snapshot = nil // until all is as in s
	edited, ok := s.ChangesSince(last)
	if !ok || !r.carries(edited) || r.collides(last, edited) {
		return Edit{}, false
	}
	changes, ok := r.binder.Edit(s, edited)
	if !ok || r.changesScopes(s, changes) {
		return Edit{}, false
	}
	fresh, ok := r.replace(changes)
	if !ok {
		return Edit{}, false
	}
	if edit.Files, edit.Removed, ok = r.filesOf(fresh); !ok {
		return Edit{}, false
	}
	r.last.snapshot, r.last.bound = s, r.last.bound.Apply(xds.ChangeOf(changes))
	edit.ID = r.last.bound.ID()
	edit.Gone = r.last.watches.settle()
	edit.Watches = r.last.watches.sorted
	for _, e := range append(edited, changes...) {
		if e.Is != nil {
			e.Is.Unload()
		}
	}
	return edit, true
}

// carries reports whether the format can carry every changed resource.
func (r *Renderer) carries(changes []xds.Edited) bool {
	for _, e := range changes {
		if delete(r.sound, e.Was); e.Is != nil && len(r.changes(e.Is)) > 0 {
			return false
		}
	}
	return true
}

// collides reports whether an added resource shares its folder with another resource. folderCollisions then
// makes the finding.
func (r *Renderer) collides(last *xds.Snapshot, changes []xds.Edited) bool {
	renamed := func(e xds.Edited) bool { return (e.Was == nil || e.Is == nil) && hasFolder(e.Key().Type) }
	if !slices.ContainsFunc(changes, renamed) {
		return false
	}
	if r.last.folders == nil {
		r.last.folders = make(map[string]int)
		for _, res := range last.All() {
			if hasFolder(res.Type) {
				r.last.folders[lowerFolder(res.Key)]++
			}
		}
	}
	for _, e := range changes {
		if !renamed(e) {
			continue
		}
		at := lowerFolder(e.Key())
		if e.Is != nil {
			r.last.folders[at]++
		} else if r.last.folders[at]--; r.last.folders[at] == 0 {
			delete(r.last.folders, at)
		}
	}
	return slices.ContainsFunc(changes, func(e xds.Edited) bool { return e.Is != nil && r.last.folders[lowerFolder(e.Key())] > 1 })
}

// changesScopes reports whether the file of the scopes may come or go: it is there for scopes,
// and for listeners that ask for some (files).
func (r *Renderer) changesScopes(s *xds.Snapshot, changes []xds.Edited) bool {
	if len(s.Of(xds.ScopedRoutes)) > 0 && len(r.last.bound.Of(xds.ScopedRoutes)) > 0 {
		return false
	}
	asks := func(res *xds.Resource) bool {
		return res != nil && (res.Type == xds.ScopedRoutes || res.AsksFor(xds.ScopedRoutes))
	}
	return slices.ContainsFunc(changes, func(e xds.Edited) bool { return asks(e.Was) || asks(e.Is) })
}

// change is a changed resource of an Output: its old and its new encoding, nil for none.
type change struct {
	xds.Key
	was, is *encoded
}

// replace writes bound resources instead of others.
func (r *Renderer) replace(changes []xds.Edited) (fresh []change, ok bool) {
	for _, e := range changes {
		c := change{Key: e.Key()}
		if e.Was != nil {
			if c.was = r.written[e.Was]; c.was == nil {
				return nil, false
			}
			delete(r.written, e.Was)
		}
		if e.Is != nil {
			var err error
			if c.is, err = r.encode(e.Is); err != nil {
				return nil, false
			}
			r.written[e.Is] = c.is
		}
		fresh = append(fresh, c)
	}
	return fresh, true
}

// filesOf returns the files of changed resources, with the unchanged resources of these files, and the paths
// of the removed files. filesOf counts the watches of all these resources.
func (r *Renderer) filesOf(fresh []change) (files []File, removed []string, ok bool) {
	together := make(map[*xds.Type]map[string]*encoded)
	for _, c := range fresh {
		if inOneFile(c.Type) {
			if together[c.Type] == nil {
				together[c.Type] = make(map[string]*encoded)
			}
			together[c.Type][c.Name] = c.is
			continue
		}
		if c.is == nil && c.Type == xds.Runtime {
			var err error
			if c.is, err = r.encode(emptyLayer(c.Name)); err != nil {
				return nil, nil, false
			}
		}
		r.count(c.was, c.is)
		if c.is == nil {
			removed = append(removed, r.format.Path(c.Type, c.Name))
			continue
		}
		f, err := c.is.alone(r.format)
		if err != nil {
			return nil, nil, false
		}
		if c.was == nil {
			r.last.watches.add(subscribedByBootstrap(f), 1) // for good: a layer stays
		}
		files = append(files, f)
	}
	for t, change := range together {
		was := r.several[t]
		f, err := r.severalIn(t, r.merged(t, was.of, change))
		if err != nil {
			return nil, nil, false
		}
		if r.several[t] != was {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, inOrder)
	slices.Sort(removed)
	return files, removed, true
}

// merged returns the resources of a file, sorted by name, after a change, in which nil stands for
// one that is removed. Clusters stay then.
func (r *Renderer) merged(t *xds.Type, sorted []*encoded, change map[string]*encoded) []*encoded {
	all := make([]*encoded, 0, len(sorted)+len(change))
	for _, name := range slices.Sorted(maps.Keys(change)) {
		i, found := slices.BinarySearchFunc(sorted, name, func(e *encoded, name string) int { return strings.Compare(e.resource.Name, name) })
		all, sorted = append(all, sorted[:i]...), sorted[i:]
		is := change[name]
		if found {
			if is == nil && t == xds.Cluster {
				is = sorted[0]
			}
			r.count(sorted[0], is)
			sorted = sorted[1:]
		} else {
			r.count(nil, is)
		}
		if is != nil {
			all = append(all, is)
		}
	}
	return append(all, sorted...)
}

// count counts the watches of a resource that has changed.
func (r *Renderer) count(was, is *encoded) {
	if was != nil {
		r.last.watches.add(was.watches, -1)
	}
	if is != nil {
		r.last.watches.add(is.watches, 1)
	}
}

// inOneFile reports whether one file holds all resources of a type.
func inOneFile(t *xds.Type) bool { return t.Asked == xds.AsWhole }

// counted is a multiset of watches. A watch that several resources share is counted once for each resource.
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
