package xds

import (
	"slices"
	"strings"
	"sync"
)

// Snapshot is a set of resources of all types, read at one time. A Snapshot is immutable, and safe for
// concurrent use.
type Snapshot struct {
	byType map[*Type][]*Resource // sorted by name; resources of one name in the order of the source
	// byPath has the resource that a file delivers to a subscription to one resource. byPath is nil unless the
	// Snapshot is from a bootstrap.
	byPath map[subscribed]*Resource
	// restricted counts the resources that have constraints.
	restricted int

	digests func() digests

	// If Apply made the Snapshot, change was applied to the Snapshot with the mark from. A mark does not keep its
	// Snapshot in memory.
	mark, from *mark
	change     Change
}

// mark identifies a Snapshot by its address. Marks of size zero could share an address, so a mark has a byte.
type mark struct{ _ byte }

// subscribed is a file and the type of the subscriptions that read it.
type subscribed struct {
	t    *Type
	path string
}

// NewSnapshot returns a Snapshot of resources in any order. The Snapshot keeps all resources of a Key, in the
// order of the source, so that a rule can report duplicates.
func NewSnapshot(resources []*Resource) *Snapshot {
	s := &Snapshot{byType: make(map[*Type][]*Resource), restricted: restricted(resources)}
	for _, r := range resources {
		s.byType[r.Type] = append(s.byType[r.Type], r)
	}
	for _, list := range s.byType {
		if !slices.IsSortedFunc(list, byName) {
			slices.SortStableFunc(list, byName)
		}
	}
	return s.sealed()
}

// sealed gives s, which has all its resources, a mark and the function of its digests, and returns s.
func (s *Snapshot) sealed() *Snapshot {
	s.mark = new(mark)
	if s.digests == nil {
		s.digests = sync.OnceValue(func() digests { return digestsOf(s.byType) })
	}
	return s
}

func byName(a, b *Resource) int { return strings.Compare(a.Name, b.Name) }

// NewFromBootstrap returns a Snapshot of the resources that an Envoy gets by its bootstrap: its static
// resources, and the resources of the files that it subscribes to, each with its DeliveredBy. In this
// Snapshot, only the file that a config source names answers a subscription.
func NewFromBootstrap(resources []*Resource) *Snapshot {
	s := NewSnapshot(resources)
	s.byPath = make(map[subscribed]*Resource)
	for _, r := range resources {
		s.byPath[subscribed{r.Type, r.DeliveredBy}] = r
	}
	return s
}

// FromBootstrap reports whether NewFromBootstrap made the Snapshot. Every other Snapshot is of a source tree.
func (s *Snapshot) FromBootstrap() bool { return s.byPath != nil }

// Of returns the resources of type t, sorted by name.
func (s *Snapshot) Of(t *Type) []*Resource { return s.byType[t] }

// All returns every resource in the order of Types, then by name.
func (s *Snapshot) All() []*Resource {
	var all []*Resource
	for _, t := range Types {
		all = append(all, s.byType[t]...)
	}
	return all
}

// Restricted reports whether any resource has constraints.
func (s *Snapshot) Restricted() bool { return s.restricted > 0 }

// restricted counts the resources of a list that have constraints.
func restricted(list []*Resource) (n int) {
	for _, r := range list {
		if !r.For.None() {
			n++
		}
	}
	return n
}

// Lookup returns the first resource of that type and name, or nil.
func (s *Snapshot) Lookup(t *Type, name string) *Resource {
	list := s.byType[t]
	i, found := search(list, name)
	if !found {
		return nil
	}
	return list[i]
}

// Named returns all resources of that type and name, in the order of the source.
func (s *Snapshot) Named(k Key) []*Resource {
	list := s.byType[k.Type]
	i, _ := search(list, k.Name)
	return list[i : i+sameName(list[i:], k.Name)]
}

// search returns the index of the first resource of a name in a list sorted by name, or the index at which such a
// resource would stand.
func search(list []*Resource, name string) (i int, found bool) {
	return slices.BinarySearchFunc(list, name, func(r *Resource, name string) int { return strings.Compare(r.Name, name) })
}

// sameName counts the resources of a name at the front of a list.
func sameName(list []*Resource, name string) (n int) {
	for n < len(list) && list[n].Name == name {
		n++
	}
	return n
}

// ID returns the hash of all resources and of their wrappers. ID does not depend on the files and formats of the
// resources, on their constraints, or on their delivery by files or by streams.
func (s *Snapshot) ID() string { return s.digests().id() }

// Version returns the hash of the resources of type t.
func (s *Snapshot) Version(t *Type) string { return s.digests().version(t) }

// Len returns the number of resources.
func (s *Snapshot) Len() int {
	n := 0
	for _, list := range s.byType {
		n += len(list)
	}
	return n
}
