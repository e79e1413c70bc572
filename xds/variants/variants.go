// Package variants chooses, by a client's dynamic parameters (xRFC TP2), one of several variants of a
// resource.
//
// The resources of one client are a plain Snapshot, so that code that judges, binds or serves a Snapshot knows
// nothing of variants:
//
//	tree := variants.Of(snapshot)            // all variants of all resources
//	one := tree.For(variants.Client{Parameters: params.Parameters{"env": "prod"}})
//	two := one.Then(tree, variants.Client{Parameters: params.Parameters{"env": "test"}})
//	two.Snapshot.Since(one.Snapshot)         // knows the difference
package variants

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sync"

	"xdspub/xds"
	"xdspub/xds/params"
)

// Tree is a Snapshot with all variants of its resources. A Tree is immutable.
type Tree struct {
	all  *xds.Snapshot
	keys []xds.Key // those with variants, in the order of xds.Types, then by name
	has  map[xds.Key]bool
	hash func() string // returns the hash of the variants and their constraints
}

// Of returns a Snapshot as a Tree.
func Of(s *xds.Snapshot) *Tree {
	t := &Tree{all: s, has: make(map[xds.Key]bool)}
	for _, of := range xds.Types {
		for _, r := range s.Of(of) {
			if !r.For.None() && !t.has[r.Key] {
				t.has[r.Key] = true
				t.keys = append(t.keys, r.Key)
			}
		}
	}
	var all []*xds.Resource // t.hash refers to this list, not to the Snapshot: later Trees share t.hash, and must not keep the Snapshot
	for _, k := range t.keys {
		all = append(all, t.Variants(k)...)
	}
	t.hash = sync.OnceValue(func() string { return hashOf(all) })
	return t
}

// After returns a Snapshot as a Tree. If the difference to t's Snapshot is known and touches no resource with
// variants, After costs as much as the change. t may be nil.
func (t *Tree) After(s *xds.Snapshot) *Tree {
	if t == nil {
		return Of(s)
	}
	c, known := s.Since(t.all)
	varies := func(r *xds.Resource) bool { return t.has[r.Key] || !r.For.None() }
	if !known || slices.ContainsFunc(c.Removed, varies) || slices.ContainsFunc(c.Added, varies) {
		return Of(s)
	}
	return &Tree{all: s, keys: t.keys, has: t.has, hash: t.hash}
}

// All returns the Snapshot with all variants.
func (t *Tree) All() *xds.Snapshot { return t.all }

// ID returns the hash of all variants of all resources, and of their constraints.
func (t *Tree) ID() string {
	if !t.Varies() {
		return t.all.ID()
	}
	return xds.Version([][]byte{[]byte(t.all.ID()), []byte(t.hash())})
}

func hashOf(variants []*xds.Resource) string {
	h := sha256.New()
	for _, r := range variants {
		fmt.Fprintf(h, "%q %q %s %s\n", r.Type.API, r.Name, r.Version(), r.For)
	}
	return string(h.Sum(nil))
}

// Varies reports whether any resource has variants. Otherwise, each client gets the Snapshot.
func (t *Tree) Varies() bool { return len(t.keys) > 0 }

// Keys returns the keys of resources that have constraints, in the order of xds.Types, then by name.
func (t *Tree) Keys() []xds.Key { return t.keys }

// Variants returns the variants of a resource, in the order of the source.
func (t *Tree) Variants(k xds.Key) []*xds.Resource { return t.all.Named(k) }

// Tells returns a text that is equal for two Parameters that match the same constraints of all variants.
func (t *Tree) Tells(p params.Parameters) string {
	h := sha256.New()
	for _, k := range t.keys {
		fmt.Fprintf(h, "%q %q", k.Type.API, k.Name)
		for _, r := range t.Variants(k) {
			if r.For.Matches(p) {
				io.WriteString(h, " "+r.For.String())
			}
		}
	}
	return string(h.Sum(nil))
}

// TellsAs reports whether the variants of both Trees have equal names and constraints. Tells then returns the same
// text for both. If the change from old is known, TellsAs visits only the change.
func (t *Tree) TellsAs(old *Tree) bool {
	if t == old {
		return true
	}
	if c, known := t.all.Since(old.all); known {
		return sameConstraints(c.Removed, c.Added)
	}
	return slices.Equal(t.keys, old.keys) && !slices.ContainsFunc(t.keys, func(k xds.Key) bool {
		return !slices.EqualFunc(t.Variants(k), old.Variants(k), func(a, b *xds.Resource) bool { return a.For.Equal(b.For) })
	})
}

// sameConstraints reports whether the variants in two lists have the same constraints, in the same order.
func sameConstraints(a, b []*xds.Resource) bool {
	none := func(r *xds.Resource) bool { return r.For.None() }
	a, b = slices.DeleteFunc(slices.Clone(a), none), slices.DeleteFunc(slices.Clone(b), none)
	return slices.EqualFunc(a, b, func(a, b *xds.Resource) bool { return a.Key == b.Key && a.For.Equal(b.For) })
}

// Transition is the change from one Snapshot to the next for clients with some Parameters.
type Transition struct {
	Parameters params.Parameters
	// From includes retired resources, and Current is From without them.
	From, Current, To *xds.Snapshot
	// Clients are the clients that ask for listeners by name and that To leaves without any of their listeners. The
	// Snapshots then have only the listeners of these clients. Clients is nil otherwise.
	Clients []string
}

// Selection is the set of resources for a Client. A Selection is immutable.
type Selection struct {
	// Snapshot has all resources without variants. Of a resource with variants, it has the client's variant, if
	// any.
	Snapshot *xds.Snapshot
	Client   Client

	tree *Tree
}

// For returns what a client gets.
func (t *Tree) For(c Client) *Selection {
	if !t.Varies() {
		return &Selection{t.all, c, t}
	}
	var not []*xds.Resource
	for _, k := range t.keys {
		for _, r := range t.Variants(k) {
			if !c.Matches(r) {
				not = append(not, r)
			}
		}
	}
	return &Selection{t.all.Apply(xds.Change{Removed: not}), c, t}
}

// Variant returns the client's variant of a resource, or nil.
func (s *Selection) Variant(k xds.Key) *xds.Resource { return s.Snapshot.Lookup(k.Type, k.Name) }

// Then returns the Selection of a Client, possibly another one, from a Tree, possibly a later one. The new
// Snapshot knows its difference from s's (xds.Snapshot.Since) if the Tree's Snapshot knows its own. s may be
// nil.
func (s *Selection) Then(t *Tree, client Client) *Selection {
	if s == nil || !t.Varies() {
		return t.For(client)
	}
	c, known := t.all.Since(s.tree.all)
	if !known {
		return t.For(client)
	}
	edited := make(map[xds.Key]bool)
	var change xds.Change
	note := func(k xds.Key) {
		if edited[k] {
			return
		}
		edited[k] = true
		was, is := kept(s.tree.Variants(k), s.Client.Matches), kept(t.Variants(k), client.Matches)
		if !slices.Equal(was, is) {
			change.Removed, change.Added = append(change.Removed, was...), append(change.Added, is...)
		}
	}
	for _, r := range slices.Concat(c.Removed, c.Added) {
		note(r.Key)
	}
	if !client.Equal(s.Client) {
		for _, k := range t.keys {
			note(k)
		}
	}
	if change.Empty() {
		return &Selection{s.Snapshot, client, t}
	}
	return &Selection{s.Snapshot.Apply(change), client, t}
}

func kept(list []*xds.Resource, keep func(*xds.Resource) bool) (some []*xds.Resource) {
	for _, r := range list {
		if keep(r) {
			some = append(some, r)
		}
	}
	return some
}
