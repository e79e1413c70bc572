// Package part builds the Snapshot that is published while the source tree is refused: the live Snapshot, with the
// faultless changes of the source tree that may go on.
//
//	faults := part.FaultsOf(findings, diag.Error)
//	change := part.Admit(live, read, part.TypesOf([]string{"endpoints", "secrets"}), faults)
//	next := live.Apply(change)
//
// Settle publishes more if the folders of the source tree have owners.
package part

import (
	"slices"

	"xdspub/diag"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// kinds are the types whose changes may go on, with their names in settings.
var kinds = []struct {
	name string
	of   *xds.Type
}{
	{"endpoints", xds.Endpoints},
	{"secrets", xds.Secret},
}

// Names returns the names, in settings, of the types whose changes may go on.
func Names() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// TypesOf returns the types of names.
func TypesOf(names []string) (types []*xds.Type) {
	for _, k := range kinds {
		if slices.Contains(names, k.name) {
			types = append(types, k.of)
		}
	}
	return types
}

// Faults are the resources of a refused source tree that may not go on.
type Faults struct {
	keys  map[xds.Key]bool
	files map[string]bool // no resource of these files may go on
}

// FaultsOf returns the resources with findings of at least a severity. If a finding names no resource, FaultsOf returns
// all resources of its file.
func FaultsOf(list diag.List, least diag.Severity) *Faults {
	f := &Faults{make(map[xds.Key]bool), make(map[string]bool)}
	for _, d := range list {
		t := xds.TypeOfURL(d.Resource.Type)
		switch {
		case d.Severity > least:
		case t != nil:
			f.keys[xds.Key{Type: t, Name: d.Resource.Name}] = true
		case d.File != "":
			f.files[d.File] = true
		}
	}
	return f
}

// AddOf adds all resources of a Snapshot that belong to one of the owners.
func (f *Faults) AddOf(s *xds.Snapshot, owners []string) {
	if len(owners) == 0 {
		return
	}
	for _, r := range s.All() {
		if slices.Contains(owners, r.Owner) {
			f.keys[r.Key] = true
		}
	}
}

// Has reports whether a resource may not go on.
func (f *Faults) Has(r *xds.Resource) bool {
	return len(r.Lost) > 0 || f.keys[r.Key] || len(f.files) > 0 && f.files[r.File()]
}

// Blame adds the admitted resources that findings about the Snapshot mixed are about. If a finding is about another
// resource, Blame adds the admitted resources that the other resource subscribes to. Blame returns false if it added
// none.
func (f *Faults) Blame(list diag.List, least diag.Severity, mixed *xds.Snapshot, admitted xds.Change) (added bool) {
	blame := f.blame(admitted, &added)
	for _, d := range list {
		t := xds.TypeOfURL(d.Resource.Type)
		if d.Severity > least || t == nil {
			continue
		}
		k := xds.Key{Type: t, Name: d.Resource.Name}
		blame(k)
		for _, r := range mixed.Named(k) {
			for _, sub := range r.Facts().Subscriptions {
				blame(xds.Key{Type: sub.Target, Name: sub.Name})
			}
		}
	}
	return added
}

// BlameRemovals adds the admitted resources that a guard has refused; nil for none. BlameRemovals returns false if it
// added none.
func (f *Faults) BlameRemovals(g *transition.Guard, admitted xds.Change) (added bool) {
	if g == nil {
		return false
	}
	blame := f.blame(admitted, &added)
	for _, r := range g.Refused() {
		blame(r.Key)
	}
	return added
}

// blame returns a function that adds an admitted resource, and then sets added.
func (f *Faults) blame(admitted xds.Change, added *bool) func(xds.Key) {
	is := make(map[xds.Key]bool)
	for _, r := range admitted.Added {
		is[r.Key] = true
	}
	return func(k xds.Key) {
		if is[k] && !f.keys[k] {
			f.keys[k], *added = true, true
		}
	}
}

// Admit returns the Change of live by the resources of some types in read: the changes of resources that live has, and
// that have no fault. Admit removes no name and adds none, and a name that has moved to another owner waits.
func Admit(live, read *xds.Snapshot, types []*xds.Type, f *Faults) (c xds.Change) {
	for _, t := range types {
		var last string
		for i, r := range live.Of(t) {
			if i > 0 && r.Name == last { // a variant
				continue
			}
			last = r.Name
			was, is := live.Named(r.Key), read.Named(r.Key)
			moved := slices.ContainsFunc(is, func(r *xds.Resource) bool { return !owns(was, r.Owner) })
			if len(is) > 0 && !moved && !slices.EqualFunc(was, is, same) && !slices.ContainsFunc(is, f.Has) {
				c.Removed, c.Added = append(c.Removed, was...), append(c.Added, is...)
			}
		}
	}
	return c
}
