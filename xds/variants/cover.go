package variants

import (
	"slices"

	"xdspub/xds"
	"xdspub/xds/params"
)

// Cover knows which clients get which variants of a Tree, and finds clients of the sets that Want names. Not for
// concurrent use.
type Cover struct {
	*params.Space

	tree *Tree
	gets map[*xds.Resource]params.Set // the clients of each variant
	open []params.Set                 // the wanted sets for which Next found no client yet
}

// NewCover returns a Cover of a Tree.
func NewCover(t *Tree) *Cover {
	var all []params.Constraints
	for _, k := range t.keys {
		for _, r := range t.Variants(k) {
			all = append(all, r.For)
		}
	}
	c := &Cover{Space: params.NewSpace(all...), tree: t, gets: make(map[*xds.Resource]params.Set)}
	for _, k := range t.keys {
		for _, r := range t.Variants(k) {
			c.gets[r] = c.Of(r.For)
		}
	}
	return c
}

// Gets returns the clients that get at least one resource of a list. All clients get a resource without variants.
func (c *Cover) Gets(list ...*xds.Resource) params.Set {
	sets := make([]params.Set, len(list))
	for i, r := range list {
		sets[i] = params.All
		if set, varies := c.gets[r]; varies {
			sets[i] = set
		}
	}
	return c.Or(sets...)
}

// Alike returns the clients that belong to the same sets as p. Only the sets of the list count.
func (c *Cover) Alike(p params.Parameters, sets []params.Set) params.Set {
	alike := params.All
	for _, set := range sets {
		if c.Has(set, p) {
			alike = c.And(alike, set)
		} else {
			alike = c.Minus(alike, set)
		}
	}
	return alike
}

// KnownIn returns the clients of a set that get a variant of each resource. Such clients are taken to exist.
func (c *Cover) KnownIn(set params.Set) params.Set {
	for _, k := range c.tree.keys {
		if set == params.None {
			break
		}
		set = c.And(set, c.Gets(c.tree.Variants(k)...))
	}
	return set
}

// Want asks Next for a client of a set. Want ignores the empty set.
func (c *Cover) Want(set params.Set) {
	if set != params.None {
		c.open = append(c.open, set)
	}
}

// fitted bounds the sets that Next tries to fit into one client.
const fitted = 500

// Next returns a client of at least one wanted set, and the wanted sets of the client. Next tries the sets one
// after another, and skips a set without a common client with the earlier sets. The sets of the client are no
// longer wanted. ok is false if no set is wanted, or if the Space is too complex.
func (c *Cover) Next() (p params.Parameters, met []params.Set, ok bool) {
	if len(c.open) == 0 || c.Err() != nil {
		return nil, nil, false
	}
	client := params.All
	for _, set := range c.open[:min(len(c.open), fitted)] {
		if with := c.And(client, set); with != params.None {
			client = with
		}
	}
	if p, ok = c.Example(client); !ok {
		return nil, nil, false
	}
	c.open = slices.DeleteFunc(c.open, func(set params.Set) bool {
		if c.Has(set, p) {
			met = append(met, set)
			return true
		}
		return false
	})
	return p, met, true
}
