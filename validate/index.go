package validate

import (
	"maps"
	"slices"
	"sync"

	"xdspub/xds"
)

// Index maps names to entries that come from several resources, such as the subscribers of a route configuration.
// The first lookup makes the Index. After an edit, only the entries of the edited resources change, and the cost
// grows with these entries.
type Index[E comparable] struct {
	reads []*xds.Type
	find  func(s *xds.Snapshot, r *xds.Resource, add func(name string, e E))
}

// NewIndex returns an Index. It calls find for each resource of the types in reads, and find adds the entries of
// the resource. If reads is nil, it calls find for resources of all types and for the bootstrap. find may look at
// the resource r, and in the Snapshot s only at resources with the Key of r.
func NewIndex[E comparable](reads []*xds.Type, find func(s *xds.Snapshot, r *xds.Resource, add func(name string, e E))) *Index[E] {
	return &Index[E]{reads, find}
}

// Lookup returns the entries under a name. They are in the order of xds.Types, then sorted by the name of their
// resource.
func (x *Index[E]) Lookup(v View, name string) []E {
	list := x.of(v.from).byName[name].entries
	v.recorder.note(question{about: aboutIndex, index: x, name: name}, list)
	return list
}

// First returns the first entry of Lookup. ok is false if no entry exists. The calling rule runs again only if
// the first entry changes.
func (x *Index[E]) First(v View, name string) (first E, ok bool) {
	answer := x.first(v.from, name)
	v.recorder.note(question{about: aboutFirst, index: x, name: name}, answer)
	return answer.entry, answer.ok
}

// Lacks reports whether the client certainly has no entry under a name: the Index has none, and the Snapshot is
// complete for the types that the Index reads.
func (x *Index[E]) Lacks(v View, name string) bool {
	_, ok := x.First(v, name)
	return !ok && x.Complete(v)
}

// Complete reports whether the Snapshot has all of the client's resources of the types that the Index reads.
func (x *Index[E]) Complete(v View) bool {
	for _, t := range xds.Types {
		if x.readsType(t) && !v.Complete(t) {
			return false
		}
	}
	return true
}

// Names returns the names in the Index, sorted. Only the find function of a Table may call Names, because Names
// records no lookup.
func (x *Index[E]) Names(v View) []string { return slices.Sorted(maps.Keys(x.of(v.from).byName)) }

type firstOf[E comparable] struct {
	entry E
	ok    bool
}

func (x *Index[E]) first(a *answers, name string) (f firstOf[E]) {
	if list := x.of(a).byName[name].entries; len(list) > 0 {
		f = firstOf[E]{list[0], true}
	}
	return f
}

// indexed holds the entries of an Index in a Snapshot.
type indexed[E comparable] struct {
	once   sync.Once
	byName map[string]column[E]
}

// of returns the entries of x in the Snapshot of a, and makes or updates them if necessary.
func (x *Index[E]) of(a *answers) *indexed[E] {
	made, ok := a.made.Load(x)
	if !ok {
		made, _ = a.made.LoadOrStore(x, &indexed[E]{})
	}
	is := made.(*indexed[E])
	is.once.Do(func() {
		is.byName = make(map[string]column[E])
		for _, t := range allTypes {
			if x.readsType(t) {
				x.collect(a.Snapshot, a.of(t), is.byName)
			}
		}
	})
	if a.behind[x] {
		delete(a.behind, x)
		x.follow(a, is)
	}
	return is
}

func (x *Index[E]) readsType(t *xds.Type) bool { return x.reads == nil || slices.Contains(x.reads, t) }

// collect adds the entries of resources of a Snapshot to a map.
func (x *Index[E]) collect(s *xds.Snapshot, resources []*xds.Resource, to map[string]column[E]) {
	for _, r := range resources {
		x.find(s, r, func(name string, e E) {
			c := to[name]
			c.add(r, e)
			to[name] = c
		})
	}
}

// follow changes the entries of the previous Snapshot to those of the Snapshot of a.
func (x *Index[E]) follow(a *answers, is *indexed[E]) {
	for _, k := range a.edit.keys {
		if !x.readsType(k.Type) {
			continue
		}
		was, now := make(map[string]column[E]), make(map[string]column[E])
		x.collect(a.edit.before, a.edit.before.Named(k), was)
		x.collect(a.Snapshot, a.Snapshot.Named(k), now)
		for name := range was {
			if _, stays := now[name]; !stays {
				now[name] = column[E]{}
			}
		}
		for name, entries := range now {
			had := len(is.byName[name].entries) > 0
			next := is.byName[name].replace(k, entries)
			is.byName[name] = next
			if len(next.entries) == 0 {
				delete(is.byName, name)
			}
			a.edit.note(x, name, had != (len(next.entries) > 0))
		}
	}
}

// anyIndex is a Table, or an Index with entries of any type.
type anyIndex interface {
	// still reports whether the answer to a question equals an earlier answer.
	still(a *answers, q question, was any) bool
	// bring updates the entries from the previous Snapshot to the Snapshot of a.
	bring(a *answers)
}

func (x *Index[E]) bring(a *answers) { x.of(a) }

func (x *Index[E]) still(a *answers, q question, was any) bool {
	if q.about == aboutFirst {
		return was.(firstOf[E]) == x.first(a, q.name)
	}
	return slices.Equal(was.([]E), x.of(a).byName[q.name].entries)
}
