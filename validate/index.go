package validate

import (
	"slices"
	"sync"

	"xdspub/xds"
)

// Index is what rules look up by a name and no resource has of itself, such as who asks
// for a route configuration. It is made once a Snapshot, when the first rule asks.
type Index[E comparable] struct {
	reads []*xds.Type
	find  func(*xds.Snapshot) map[string][]E
}

// NewIndex returns an Index of what find finds in the resources of a Snapshot that are of
// the types that it reads: it must not look at others.
func NewIndex[E comparable](reads []*xds.Type, find func(*xds.Snapshot) map[string][]E) *Index[E] {
	return &Index[E]{reads, find}
}

// Lookup returns what x has under a name.
func (x *Index[E]) Lookup(v View, name string) []E {
	list := x.of(v.from)[name]
	v.taker.note(question{about: aboutIndex, index: x, name: name}, list)
	return list
}

// of is the index of one Snapshot.
func (x *Index[E]) of(a *answers) map[string][]E {
	made, ok := a.made.Load(x)
	if !ok {
		made, _ = a.made.LoadOrStore(x, sync.OnceValue(func() map[string][]E { return x.find(a.Snapshot) }))
	}
	return made.(func() map[string][]E)()
}

// anyIndex is an Index of whatever.
type anyIndex interface {
	// still reports whether the index has under a name what it had.
	still(a *answers, name string, was any) bool
	// types are those that it reads.
	types() []*xds.Type
}

func (x *Index[E]) types() []*xds.Type { return x.reads }

func (x *Index[E]) still(a *answers, name string, was any) bool {
	return slices.Equal(was.([]E), x.of(a)[name])
}
