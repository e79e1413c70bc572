package xds

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Change is the difference between a Snapshot and the Snapshot that it was made of, by identity of resources. (A
// Delta is a difference by content.) A resource in both lists moves behind the other resources of its Key.
type Change struct {
	// Removed are resources of the former Snapshot.
	Removed []*Resource
	// Added are resources of the new Snapshot. They stand behind the unchanged resources of their Key, in the order
	// of the list.
	Added []*Resource
}

// Empty reports whether the Change has no resources.
func (c Change) Empty() bool { return len(c.Removed)+len(c.Added) == 0 }

// Apply returns the Snapshot after a Change of s. The result shares unchanged parts with s, and s stays unchanged.
// s must not be from a bootstrap.
func (s *Snapshot) Apply(c Change) *Snapshot {
	next := &Snapshot{byType: maps.Clone(s.byType), restricted: s.restricted + restricted(c.Added) - restricted(c.Removed), from: s.mark, change: c}
	removed, added := byType(c.Removed), byType(c.Added)
	for t := range removed {
		next.byType[t] = applied(s.byType[t], removed[t], added[t])
	}
	for t := range added {
		if removed[t] == nil {
			next.byType[t] = applied(s.byType[t], nil, added[t])
		}
	}
	before := s.digests()
	next.digests = sync.OnceValue(func() digests { return before.after(c) })
	maps.DeleteFunc(next.byType, func(_ *Type, list []*Resource) bool { return len(list) == 0 })
	return next.sealed()
}

// Since returns the Change by which Apply made s of old. known is false unless old is that Snapshot, or s
// itself.
func (s *Snapshot) Since(old *Snapshot) (c Change, known bool) {
	switch {
	case old == s:
		return Change{}, true
	case old != nil && s.from == old.mark:
		return s.change, true
	}
	return Change{}, false
}

// Edited is a changed resource before and after the change, with the same Key. Was is nil for an added
// resource, Is for a removed one.
type Edited struct{ Was, Is *Resource }

// Key returns the Key of the resource.
func (e Edited) Key() Key {
	if e.Is == nil {
		return e.Was.Key
	}
	return e.Is.Key
}

// ChangeOf returns the Change of a list of edits, in the order of the list.
func ChangeOf(edits []Edited) (c Change) {
	for _, e := range edits {
		if e.Was != nil {
			c.Removed = append(c.Removed, e.Was)
		}
		if e.Is != nil {
			c.Added = append(c.Added, e.Is)
		}
	}
	return c
}

// Same reports whether the change replaces a resource by an equal resource (Resource.Same).
func (e Edited) Same() bool { return e.Was != nil && e.Is != nil && e.Is.Same(e.Was) }

// ChangesSince returns the Change of Since with one Edited for each Key, in the order of Types, then by name. ok is
// false if Since does not know the Change, or if s or old has several resources of a changed Key.
func (s *Snapshot) ChangesSince(old *Snapshot) (changes []Edited, ok bool) {
	c, known := s.Since(old)
	if !known {
		return nil, false
	}
	byKey := make(map[Key]Edited, len(c.Removed))
	for _, r := range c.Removed {
		byKey[r.Key] = Edited{Was: r}
	}
	for _, r := range c.Added {
		byKey[r.Key] = Edited{byKey[r.Key].Was, r}
	}
	for key, e := range byKey {
		if len(s.Named(key)) > 1 || len(old.Named(key)) > 1 {
			return nil, false
		}
		changes = append(changes, e)
	}
	slices.SortFunc(changes, func(a, b Edited) int {
		a1, b1 := a.Key(), b.Key()
		return cmp.Or(cmp.Compare(slices.Index(Types, a1.Type), slices.Index(Types, b1.Type)), strings.Compare(a1.Name, b1.Name))
	})
	return changes, true
}

// EditsSince returns the Change of Since if it replaces resources only, in the order of Change.Added. ok is false
// if Since does not know the Change, if a resource was added or removed, or if several resources have a changed
// Key.
func (s *Snapshot) EditsSince(old *Snapshot) (edits []Edited, ok bool) {
	c, known := s.Since(old)
	if !known || len(c.Added) != len(c.Removed) {
		return nil, false
	}
	was := make(map[Key]*Resource, len(c.Removed))
	for _, r := range c.Removed {
		was[r.Key] = r
	}
	for _, r := range c.Added {
		if was[r.Key] == nil || len(s.Named(r.Key)) > 1 {
			return nil, false
		}
		edits = append(edits, Edited{was[r.Key], r})
	}
	return edits, true
}

func byType(list []*Resource) map[*Type][]*Resource {
	m := make(map[*Type][]*Resource)
	for _, r := range list {
		m[r.Type] = append(m[r.Type], r)
	}
	return m
}

// applied returns list, which is sorted by name, after a Change of its type. It searches for the changed names, and
// copies the parts between them.
func applied(list, removed, added []*Resource) []*Resource {
	gone := make(map[*Resource]bool, len(removed))
	names := make([]string, 0, len(removed)+len(added))
	for _, r := range removed {
		gone[r] = true
		names = append(names, r.Name)
	}
	for _, r := range added {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	added = slices.Clone(added)
	slices.SortStableFunc(added, byName)

	next := make([]*Resource, 0, len(list)+len(added))
	for _, name := range slices.Compact(names) {
		i, _ := search(list, name)
		next, list = append(next, list[:i]...), list[i:]
		for range sameName(list, name) {
			if !gone[list[0]] {
				next = append(next, list[0])
			}
			list = list[1:]
		}
		n := sameName(added, name)
		next, added = append(next, added[:n]...), added[n:]
	}
	return append(next, list...)
}
