package xds

import (
	"bytes"
	"slices"
)

// Delta is the difference between two Snapshots by the content of their resources. Each list is
// in the order of Types, then by name.
type Delta struct {
	// Added and Changed are resources of the new Snapshot, Removed of the old one.
	Added, Changed, Removed []*Resource
}

// Empty reports whether the two Snapshots hold the same.
func (d Delta) Empty() bool { return len(d.Added)+len(d.Changed)+len(d.Removed) == 0 }

// Diff returns the Delta from old, which may be nil, to s. Of resources that share a Key, Diff compares the first.
// A resource does not change by another place or format in the source, nor by other constraints. If Apply made s of
// old, Diff visits only the Change.
func (s *Snapshot) Diff(old *Snapshot) Delta {
	if old == nil {
		old = NewSnapshot(nil)
	}
	if changes, known := s.ChangesSince(old); known {
		return deltaOf(changes)
	}
	var d Delta
	for _, t := range Types {
		is, was := s.firsts(t), old.firsts(t)
		for len(is) > 0 || len(was) > 0 {
			switch {
			case len(was) == 0 || len(is) > 0 && is[0].Name < was[0].Name:
				d.Added, is = append(d.Added, is[0]), is[1:]
			case len(is) == 0 || was[0].Name < is[0].Name:
				d.Removed, was = append(d.Removed, was[0]), was[1:]
			default:
				if !is[0].Same(was[0]) {
					d.Changed = append(d.Changed, is[0])
				}
				is, was = is[1:], was[1:]
			}
		}
	}
	return d
}

// deltaOf returns the Delta of changes.
func deltaOf(changes []Edited) (d Delta) {
	for _, e := range changes {
		switch {
		case e.Was == nil:
			d.Added = append(d.Added, e.Is)
		case e.Is == nil:
			d.Removed = append(d.Removed, e.Was)
		case !e.Same():
			d.Changed = append(d.Changed, e.Is)
		}
	}
	return d
}

// firsts returns the first resource of each Key of a type.
func (s *Snapshot) firsts(t *Type) []*Resource {
	list := s.byType[t]
	same := func(a, b *Resource) bool { return a.Name == b.Name }
	for i := 1; i < len(list); i++ {
		if same(list[i-1], list[i]) {
			return slices.CompactFunc(slices.Clone(list), same)
		}
	}
	return list
}

// Same reports whether two resources of one Key have equal messages, and wrappers that are equal except for name,
// constraints and version. A resource without a canonical form is the same as itself only.
func (r *Resource) Same(other *Resource) bool {
	if r == other {
		return true
	}
	is, err := r.Canonical()
	was, errWas := other.Canonical()
	return err == nil && errWas == nil && bytes.Equal(is, was) && bytes.Equal(r.wrapperSays(), other.wrapperSays())
}
