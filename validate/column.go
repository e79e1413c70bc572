package validate

import (
	"cmp"
	"slices"
	"strings"

	"xdspub/xds"
)

// column lists entries found in resources, in the order of Types, then by name. A column is immutable: an edit
// makes another column.
type column[E any] struct {
	entries []E
	of      []*xds.Resource // the resource of each entry
}

func (c *column[E]) add(r *xds.Resource, e E) {
	c.entries, c.of = append(c.entries, e), append(c.of, r)
}

// replace returns c with the entries of the resources with Key k replaced by the entries in with.
func (c column[E]) replace(k xds.Key, with column[E]) column[E] {
	from, _ := slices.BinarySearchFunc(c.of, k, func(r *xds.Resource, k xds.Key) int { return byKey(r.Key, k) })
	to := from
	for to < len(c.of) && c.of[to].Key == k {
		to++
	}
	return column[E]{
		slices.Concat(c.entries[:from], with.entries, c.entries[to:]),
		slices.Concat(c.of[:from], with.of, c.of[to:]),
	}
}

func byKey(a, b xds.Key) int {
	return cmp.Or(cmp.Compare(position(a.Type), position(b.Type)), strings.Compare(a.Name, b.Name))
}

// allTypes lists the types of the resources under judgement, in the order of judgement.
var allTypes = append(slices.Clone(xds.Types), xds.Bootstrap)

func position(t *xds.Type) int { return slices.Index(allTypes, t) }
