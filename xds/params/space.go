package params

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
)

// ErrTooComplex means that the Sets of a Space became larger than a Space may be. The constraints of usual
// variants, which combine a few keys, stay far below this bound.
var ErrTooComplex = errors.New("the constraints combine too many keys in too many ways")

// maxNodes and maxBranches bound the memory of a Space to about 150 MB.
const (
	maxNodes    = 1 << 18
	maxBranches = 1 << 23 // of all nodes: a key may have many values
)

// Space holds the Parameters that some Constraints distinguish. In a Space, a key is absent, has one of the
// values that the Constraints name, or has another value. Not for concurrent use.
//
// A Space is a decision diagram (Bryant 1986) with a branch for each value. Equal sets are the same node: a
// comparison shows whether a Set is empty. A node lists only the values that lead elsewhere than other values, so
// that a key with 1,000 values costs no more than a key with two.
type Space struct {
	keys   []string
	values [][]string // of each key, sorted
	nodes  []node
	size   int              // the branches of all nodes
	known  map[string]Set   // the Set of each node, by the encoded node
	found  map[question]Set // the results of apply
	full   bool             // the result of Err is ErrTooComplex
}

// Set is a set of Parameters in a Space. Equal sets are ==.
type Set int32

// None is the empty set. All is the set of all Parameters.
const (
	None Set = iota
	All
)

// node is a Set that depends on a key.
type node struct {
	key    int
	values []branch // the values that lead to another Set than other does, in the order of the Space's values
	other  Set      // for any value that values lacks
	absent Set      // for an absent key
}

// branch is a value of a key, by its index, and the Set that it leads to.
type branch struct {
	value int32
	to    Set
}

// question is a call of apply.
type question struct {
	op   op
	a, b Set
}

// NewSpace returns the Space of the Parameters that some Constraints distinguish.
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

// Of returns the Parameters that match c. c must be one of the Constraints that NewSpace was given, or a
// combination of them.
func (s *Space) Of(c Constraints) Set {
	switch c.kind() {
	case all:
		return All
	case equals:
		key, _ := slices.BinarySearch(s.keys, c.key)
		i, _ := slices.BinarySearch(s.values[key], c.is)
		return s.node(node{key: key, values: []branch{{int32(i), All}}})
	case exists:
		key, _ := slices.BinarySearch(s.keys, c.key)
		return s.node(node{key: key, other: All})
	case not:
		return s.Minus(All, s.Of(c.of[0]))
	case and:
		set := All
		for _, part := range c.of {
			set = s.And(set, s.Of(part))
		}
		return set
	}
	var of []Set // or, never
	for _, part := range c.of {
		of = append(of, s.Of(part))
	}
	return s.Or(of...)
}

// And returns the intersection of two sets.
func (s *Space) And(a, b Set) Set { return s.apply(and, min(a, b), max(a, b)) }

// Or returns the union of the sets.
func (s *Space) Or(sets ...Set) Set {
	switch n := len(sets); n {
	case 0:
		return None
	case 1:
		return sets[0]
	case 2:
		return s.apply(or, min(sets[0], sets[1]), max(sets[0], sets[1]))
	default: // by halves: one set after the other would make nodes of 1, 2, 3, … values
		return s.Or(s.Or(sets[:n/2]...), s.Or(sets[n/2:]...))
	}
}

// Minus returns what is in a and not in b.
func (s *Space) Minus(a, b Set) Set { return s.apply(not, a, b) }

// simple returns the result of an operator if the result is one of the operands, or None, without a look at their
// nodes.
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

// apply returns the result of an operator: and, or, or not, which is a without b.
func (s *Space) apply(by op, a, b Set) Set {
	if is, ok := simple(by, a, b); ok || s.full {
		return is
	}
	q := question{by, a, b}
	if is, ok := s.found[q]; ok {
		return is
	}
	key := min(s.depends(a), s.depends(b))
	x, y := s.at(a, key), s.at(b, key)
	joined := node{key: key, other: s.apply(by, x.other, y.other), absent: s.apply(by, x.absent, y.absent)}
	for i, j := 0, 0; i < len(x.values) || j < len(y.values); {
		value := min(valueAt(x.values, i), valueAt(y.values, j))
		left, right := x.other, y.other
		if valueAt(x.values, i) == value {
			left, i = x.values[i].to, i+1
		}
		if valueAt(y.values, j) == value {
			right, j = y.values[j].to, j+1
		}
		if to := s.apply(by, left, right); to != joined.other {
			joined.values = append(joined.values, branch{value, to})
		}
	}
	is := s.node(joined)
	s.full = s.full || len(s.found) > 4*maxNodes
	s.found[q] = is
	return is
}

// valueAt returns the value of branch i; behind the last branch, a number above all values.
func valueAt(list []branch, i int) int32 {
	if i == len(list) {
		return math.MaxInt32
	}
	return list[i].value
}

// depends returns the first key that a set depends on.
func (s *Space) depends(a Set) int {
	if a <= All {
		return len(s.keys)
	}
	return s.nodes[a].key
}

// at returns a as a node of a key. The key is the first key that a depends on, or an earlier key.
func (s *Space) at(a Set, key int) node {
	if s.depends(a) != key {
		return node{key: key, other: a, absent: a}
	}
	return s.nodes[a]
}

// node returns the Set of a node. It adds the node to the Space if the Space lacks it.
func (s *Space) node(n node) Set {
	if len(n.values) == 0 && n.other == n.absent {
		return n.other // it does not depend on the key
	}
	if s.full {
		return None
	}
	id := binary.AppendUvarint(nil, uint64(n.key))
	id = binary.AppendUvarint(id, uint64(n.other))
	id = binary.AppendUvarint(id, uint64(n.absent))
	for _, b := range n.values {
		id = binary.AppendUvarint(id, uint64(b.value))
		id = binary.AppendUvarint(id, uint64(b.to))
	}
	is, ok := s.known[string(id)]
	if !ok {
		if s.size += 2 + len(n.values); len(s.nodes) == maxNodes || s.size > maxBranches {
			s.full = true
			return None
		}
		is = Set(len(s.nodes))
		s.nodes = append(s.nodes, n)
		s.known[string(id)] = is
	}
	return is
}

// Example returns Parameters of a set. It prefers few keys, and values that constraints name to other values. ok is
// false if the set is empty, or if the Space is too complex.
func (s *Space) Example(a Set) (example Parameters, ok bool) {
	if a == None || s.full {
		return nil, false
	}
	costs := make(map[Set]int)
	p := make(Parameters)
	for a != All {
		n := s.nodes[a]
		value, to := s.cheapest(n, costs)
		switch values := s.values[n.key]; {
		case value < 0:
		case value < len(values):
			p[s.keys[n.key]] = values[value]
		default:
			p[s.keys[n.key]] = unused(values)
		}
		a = to
	}
	return p, true
}

// noExample is more than any example costs.
const noExample = 1 << 40

// The cost of a key in an example. An absent key costs nothing.
const (
	costOfValue = 2
	costOfOther = 3 // a value that no constraint names is a worse example
)

// cheapest returns the value of a node's key that leads to the example with the least cost, and the Set that the
// value leads to. The value is an index; -1 means an absent key, and the number of values a value that no
// constraint names.
func (s *Space) cheapest(n node, costs map[Set]int) (value int, to Set) {
	least := noExample
	try := func(v int, t Set, weight int) {
		if cost := s.cost(t, costs) + weight; cost < least {
			value, to, least = v, t, cost
		}
	}
	free := s.firstOther(n)
	for _, b := range n.values {
		if free < int(b.value) {
			try(free, n.other, costOfValue)
			free = len(s.values[n.key])
		}
		try(int(b.value), b.to, costOfValue)
	}
	if free < len(s.values[n.key]) {
		try(free, n.other, costOfValue)
	}
	try(len(s.values[n.key]), n.other, costOfOther)
	try(-1, n.absent, 0)
	return value, to
}

// firstOther returns the first value that leads to n.other, or the number of values if none does.
func (s *Space) firstOther(n node) int {
	for i, b := range n.values {
		if int(b.value) != i {
			return i
		}
	}
	return len(n.values)
}

// cost returns the cost of the cheapest example of a set. It caches costs in costs.
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
	weight := costOfValue
	if s.firstOther(n) == len(s.values[n.key]) {
		weight = costOfOther
	}
	least := min(s.cost(n.absent, costs), s.cost(n.other, costs)+weight)
	for _, b := range n.values {
		least = min(least, s.cost(b.to, costs)+costOfValue)
	}
	costs[a] = least
	return least
}

// unused returns a value that a sorted list lacks.
func unused(values []string) string {
	name := "other"
	for i := 2; ; i++ {
		if _, found := slices.BinarySearch(values, name); !found {
			return name
		}
		name = "other-" + strconv.Itoa(i)
	}
}

// Has reports whether a set contains Parameters.
func (s *Space) Has(a Set, p Parameters) bool {
	for a > All {
		a = s.next(s.nodes[a], p)
	}
	return a == All
}

// next returns the Set that the value of a node's key leads to.
func (s *Space) next(n node, p Parameters) Set {
	is, sent := p[s.keys[n.key]]
	if !sent {
		return n.absent
	}
	if value, inUse := slices.BinarySearch(s.values[n.key], is); inUse {
		if i, found := slices.BinarySearchFunc(n.values, value, func(b branch, v int) int { return int(b.value) - v }); found {
			return n.values[i].to
		}
	}
	return n.other
}

// Counts returns the part of p that decides whether a contains p: the present keys with their values, and, sorted,
// the absent keys.
func (s *Space) Counts(a Set, p Parameters) (sent Parameters, absent []string) {
	sent = make(Parameters)
	for a > All {
		n := s.nodes[a]
		key := s.keys[n.key]
		if value, ok := p[key]; ok {
			sent[key] = value
		} else {
			absent = append(absent, key)
		}
		a = s.next(n, p)
	}
	return sent, absent
}
