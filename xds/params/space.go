package params

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strconv"
)

// ErrTooComplex means that Sets got larger than a Space may be. Constraints of one variant of a
// resource after the other, over a few keys, stay far below.
var ErrTooComplex = errors.New("the constraints combine too many keys in too many ways")

// maxNodes and maxBranches bound a Space: about 100 MB at most.
const (
	maxNodes    = 1 << 18
	maxBranches = 1 << 24 // of all nodes: a key may have many values
)

// Space is all Parameters that some Constraints tell apart: each of their keys has one of the
// values that they name, or any other, or is absent. Not for concurrent use.
//
// It is a decision diagram (Bryant 1986) with a branch for each value in place of two: sets that
// are equal are one node, so that a Set is empty or not without a search.
type Space struct {
	keys   []string
	values [][]string // of each key, sorted
	nodes  []node
	size   int // the branches of all nodes
	known  map[string]Set
	found  map[question]Set
	full   bool
}

// Set is a set of Parameters in a Space. Equal sets are ==.
type Set int32

// None is the empty set, and All has all Parameters.
const (
	None Set = iota
	All
)

// node is a Set that depends on a key: what it is for each of its values, then for any other
// value, then where the key is absent.
type node struct {
	key int
	of  []Set
}

type question struct {
	op   op
	a, b Set
}

// NewSpace returns the Space that some Constraints tell apart.
func NewSpace(of ...Constraints) *Space {
	values := make(map[string]map[string]bool)
	for _, c := range of {
		c.each(func(c Constraints) {
			if values[c.key] == nil {
				values[c.key] = make(map[string]bool)
			}
			if c.op == equals {
				values[c.key][c.is] = true
			}
		})
	}
	s := &Space{keys: slices.Sorted(maps.Keys(values)), nodes: make([]node, 2), known: make(map[string]Set), found: make(map[question]Set)}
	for _, key := range s.keys {
		s.values = append(s.values, slices.Sorted(maps.Keys(values[key])))
	}
	return s
}

// Err returns ErrTooComplex once Sets of the Space mean nothing any more.
func (s *Space) Err() error {
	if s.full {
		return ErrTooComplex
	}
	return nil
}

// Of returns the Parameters that meet Constraints, which NewSpace was given.
func (s *Space) Of(c Constraints) Set {
	switch c.kind() {
	case all:
		return All
	case equals:
		key, of := s.branches(c.key)
		i, _ := slices.BinarySearch(s.values[key], c.is)
		of[i] = All
		return s.node(key, of)
	case exists:
		key, of := s.branches(c.key)
		for i := range of[:len(of)-1] {
			of[i] = All
		}
		return s.node(key, of)
	case not:
		return s.Minus(All, s.Of(c.of[0]))
	case and:
		set := All
		for _, part := range c.of {
			set = s.And(set, s.Of(part))
		}
		return set
	}
	set := None // or, never
	for _, part := range c.of {
		set = s.Or(set, s.Of(part))
	}
	return set
}

// And returns what is in both sets.
func (s *Space) And(a, b Set) Set { return s.apply(and, min(a, b), max(a, b)) }

// Or returns what is in one of the sets.
func (s *Space) Or(a, b Set) Set { return s.apply(or, min(a, b), max(a, b)) }

// Minus returns what is in a and not in b.
func (s *Space) Minus(a, b Set) Set { return s.apply(not, a, b) }

// simple is an answer that needs no look at what the sets are.
func simple(by op, a, b Set) (is Set, ok bool) {
	switch {
	case by == and && (a == None || b == All || a == b), by == or && (b == None || a == All || a == b), by == not && b == None:
		return a, true
	case by == and && (b == None || a == All), by == or && (a == None || b == All):
		return b, true
	case by == not && (a == None || b == All || a == b):
		return None, true
	}
	return None, false
}

func (s *Space) apply(by op, a, b Set) Set {
	if is, ok := simple(by, a, b); ok || s.full {
		return is
	}
	q := question{by, a, b}
	if is, ok := s.found[q]; ok {
		return is
	}
	key := min(s.depends(a), s.depends(b))
	of := make([]Set, len(s.values[key])+2)
	for i := range of {
		of[i] = s.apply(by, s.branch(a, key, i), s.branch(b, key, i))
	}
	is := s.node(key, of)
	s.full = s.full || len(s.found) > 4*maxNodes
	s.found[q] = is
	return is
}

// depends returns the first key that a set depends on.
func (s *Space) depends(a Set) int {
	if a <= All {
		return len(s.keys)
	}
	return s.nodes[a].key
}

// branch returns what a set is where a key, or one before those that it depends on, has a value.
func (s *Space) branch(a Set, key, i int) Set {
	if s.depends(a) != key {
		return a
	}
	return s.nodes[a].of[i]
}

// branches returns the index of a key, and a branch for each of its values, all None.
func (s *Space) branches(name string) (key int, of []Set) {
	key, _ = slices.BinarySearch(s.keys, name)
	return key, make([]Set, len(s.values[key])+2)
}

// node returns the Set with these branches.
func (s *Space) node(key int, of []Set) Set {
	if !slices.ContainsFunc(of, func(b Set) bool { return b != of[0] }) {
		return of[0] // it does not depend on the key
	}
	if s.full {
		return None
	}
	id := binary.AppendUvarint(nil, uint64(key))
	for _, b := range of {
		id = binary.AppendUvarint(id, uint64(b))
	}
	is, ok := s.known[string(id)]
	if !ok {
		if s.size += len(of); len(s.nodes) == maxNodes || s.size > maxBranches {
			s.full = true
			return None
		}
		is = Set(len(s.nodes))
		s.nodes = append(s.nodes, node{key, of})
		s.known[string(id)] = is
	}
	return is
}

// Example returns Parameters of a set, with as few keys as any in it has; false where it is empty. Where
// a key may have any other value than those in use, it has one that is not.
func (s *Space) Example(a Set) (Parameters, bool) {
	if a == None || s.full {
		return nil, false
	}
	costs := make(map[Set]int)
	p := make(Parameters)
	for a != All {
		n := s.nodes[a]
		i := s.cheapest(n, costs)
		switch values := s.values[n.key]; {
		case i < len(values):
			p[s.keys[n.key]] = values[i]
		case i == len(values):
			p[s.keys[n.key]] = unused(values)
		}
		a = n.of[i]
	}
	return p, true
}

// cheapest returns the branch of a node that leads to an example with the fewest keys, a value in
// use before any other.
func (s *Space) cheapest(n node, costs map[Set]int) int {
	best, least := 0, noExample
	for i, b := range n.of {
		if cost := s.cost(b, costs) + weight(i, len(n.of)); cost < least {
			best, least = i, cost
		}
	}
	return best
}

// noExample is more than any example costs.
const noExample = 1 << 40

// weight is what a branch of so many adds to the cost of an example.
func weight(i, branches int) int {
	switch i {
	case branches - 1:
		return 0 // the key is absent
	case branches - 2:
		return 3 // any other value
	}
	return 2
}

func (s *Space) cost(a Set, costs map[Set]int) int {
	if a == None {
		return noExample
	}
	if a == All {
		return 0
	}
	if c, ok := costs[a]; ok {
		return c
	}
	n := s.nodes[a]
	least := noExample
	for i, b := range n.of {
		least = min(least, s.cost(b, costs)+weight(i, len(n.of)))
	}
	costs[a] = least
	return least
}

// unused returns a value that is not one of a sorted list.
func unused(values []string) string {
	name := "other"
	for i := 2; ; i++ {
		if _, found := slices.BinarySearch(values, name); !found {
			return name
		}
		name = "other-" + strconv.Itoa(i)
	}
}

// Has reports whether Parameters are in a set.
func (s *Space) Has(a Set, p Parameters) bool {
	for a > All {
		n := s.nodes[a]
		is, sent := p[s.keys[n.key]]
		i, inUse := slices.BinarySearch(s.values[n.key], is)
		switch {
		case !sent:
			i = len(n.of) - 1
		case !inUse:
			i = len(n.of) - 2
		}
		a = n.of[i]
	}
	return a == All
}

// Names reports whether Parameters have all keys of the Space, each with one of its values, or any
// where none is named.
func (s *Space) Names(p Parameters) bool {
	for i, key := range s.keys {
		is, sent := p[key]
		if _, inUse := slices.BinarySearch(s.values[i], is); !sent || !inUse && len(s.values[i]) > 0 {
			return false
		}
	}
	return true
}
