package variants

import (
	"slices"

	"xdspub/xds"
	"xdspub/xds/params"
)

// Cover finds clients that, between them, get all that the variants of a Tree can be to each other:
// each variant, and with each resource that asks for another all variants of that other one that a
// client can get beside it. These are as many as the variants of two resources make together, where
// all combinations of the keys would be without number.
type Cover struct {
	tree  *Tree
	space *params.Space
	sets  map[xds.Key][]part
	done  map[pair]bool
	open  []pair
}

// part is a variant, or that a client gets none of a resource, and the clients with that.
type part struct {
	of  *xds.Resource // nil for none
	set params.Set
}

// pair is two parts that some client gets together.
type pair struct{ a, b params.Set }

// NewCover returns a Cover of a Tree.
func NewCover(t *Tree) *Cover {
	var all []params.Constraints
	for _, k := range t.keys {
		for _, r := range t.Variants(k) {
			all = append(all, r.For)
		}
	}
	c := &Cover{tree: t, space: params.NewSpace(all...), sets: make(map[xds.Key][]part), done: make(map[pair]bool)}
	for _, k := range t.keys {
		var some []params.Set
		for _, r := range t.Variants(k) {
			set := c.space.Of(r.For)
			c.sets[k], some = append(c.sets[k], part{r, set}), append(some, set)
		}
		c.sets[k] = append(c.sets[k], part{nil, c.space.Minus(params.All, c.space.Or(some...))})
		for _, p := range c.sets[k] {
			c.add(params.All, p.set)
		}
	}
	return c
}

// Err returns params.ErrTooComplex where the constraints are: no more clients are found then.
func (c *Cover) Err() error { return c.space.Err() }

// add notes that clients with both are to be found, if there are any.
func (c *Cover) add(a, b params.Set) {
	p := pair{min(a, b), max(a, b)}
	if c.done[p] {
		return
	}
	c.done[p] = true
	if c.space.And(a, b) != params.None {
		c.open = append(c.open, p)
	}
}

// Asks notes that a resource asks for another, which may not be there.
func (c *Cover) Asks(r *xds.Resource, k xds.Key) {
	if !c.tree.has[k] || r.Key == k {
		return
	}
	from := params.All
	for _, p := range c.sets[r.Key] {
		if p.of == r {
			from = p.set
		}
	}
	for _, p := range c.sets[k] {
		c.add(from, p.set)
	}
}

// fitted bounds how many pairs are tried to fit into one client.
const fitted = 500

// Next returns the next client. It is not ok where the clients until now are enough.
func (c *Cover) Next() (p params.Parameters, ok bool) {
	if len(c.open) == 0 || c.Err() != nil {
		return nil, false
	}
	client := params.All
	for _, o := range c.open[:min(len(c.open), fitted)] {
		if with := c.space.And(client, c.space.And(o.a, o.b)); with != params.None {
			client = with
		}
	}
	if p, ok = c.space.Example(client); !ok {
		return nil, false
	}
	c.open = slices.DeleteFunc(c.open, func(o pair) bool { return c.space.Has(o.a, p) && c.space.Has(o.b, p) })
	return p, ok
}

// InUse reports whether all keys of the Tree are among Parameters, with values that some variant names.
func (c *Cover) InUse(p params.Parameters) bool { return c.space.Names(p) }

// Missing reports whether there is a resource of which a client gets no variant.
func (s *Selection) Missing() bool {
	return slices.ContainsFunc(s.tree.keys, func(k xds.Key) bool { return s.Snapshot.Lookup(k.Type, k.Name) == nil })
}

// Variant returns what a client gets of a resource; nil where that is nothing.
func (s *Selection) Variant(k xds.Key) *xds.Resource { return s.Snapshot.Lookup(k.Type, k.Name) }

// Varies reports whether a resource has variants.
func (s *Selection) Varies(k xds.Key) bool { return s.tree.has[k] }
