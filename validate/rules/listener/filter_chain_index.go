package listener

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/xds"
)

// chainIndex finds, for a filter chain, the first added chain that overlaps it. A chain can list many values of
// each criterion, and Envoy stores each combination of these values. chainIndex stores no combinations: it compares
// 64 chains at once, with one bit for each chain.
type chainIndex struct {
	having [len(criteria)]map[string]*chainSet
	words  int      // the length of all and one
	all    []uint64 // the chains that share a value of each criterion so far
	one    []uint64 // the chains that share a value of the current criterion
}

func newChainIndex(chains int) *chainIndex {
	x := &chainIndex{words: (chains + 63) / 64}
	x.all, x.one = make([]uint64, x.words), make([]uint64, x.words)
	for i := range x.having {
		x.having[i] = make(map[string]*chainSet)
	}
	return x
}

func (x *chainIndex) add(chain int, c chainMatch) {
	for i, values := range c.criteria {
		for _, v := range values {
			set := x.having[i][v]
			if set == nil {
				set = new(chainSet)
				x.having[i][v] = set
			}
			set.add(chain, x.words)
		}
	}
}

// overlapped returns the first added chain that shares a value of each criterion with c. ok is false if no chain
// does.
func (x *chainIndex) overlapped(c chainMatch) (first int, ok bool) {
	for i, values := range c.criteria {
		clear(x.one)
		for _, v := range values {
			if set := x.having[i][v]; set != nil {
				set.or(x.one)
			}
		}
		if i == 0 {
			copy(x.all, x.one)
			continue
		}
		for w := range x.all {
			x.all[w] &= x.one[w]
		}
	}
	for w, word := range x.all {
		if word != 0 {
			return 64*w + bits.TrailingZeros64(word), true
		}
	}
	return 0, false
}

// shared returns the values that c shares with the chain first, as a text for a message. c must overlap that chain.
func (x *chainIndex) shared(c chainMatch, first int) string {
	var text []string
	for i, values := range c.criteria {
		at := slices.IndexFunc(values, func(v string) bool { return x.having[i][v].has(first) })
		if v := values[at]; v != "" && v != listenerv3.FilterChainMatch_ANY.String() {
			text = append(text, fmt.Sprintf("%s %q", criteria[i], v))
		}
	}
	if len(text) == 0 {
		return "everything"
	}
	return strings.Join(text, ", ")
}

// chainSet is a set of chains, which are added in ascending order. It is a list, or a bit set if a list would take
// more space.
type chainSet struct {
	list []int
	bits []uint64
}

func (s *chainSet) add(chain, words int) {
	if s.bits == nil && len(s.list) < words {
		s.list = append(s.list, chain)
		return
	}
	if s.bits == nil {
		s.bits = make([]uint64, words)
		s.or(s.bits)
		s.list = nil
	}
	s.bits[chain/64] |= 1 << (chain % 64)
}

// or adds the chains of s to a bit set.
func (s *chainSet) or(to []uint64) {
	for _, chain := range s.list {
		to[chain/64] |= 1 << (chain % 64)
	}
	for i, word := range s.bits {
		to[i] |= word
	}
}

// has reports whether a chain is in the set. A nil set is empty.
func (s *chainSet) has(chain int) bool {
	if s == nil {
		return false
	}
	if s.bits != nil {
		return s.bits[chain/64]&(1<<(chain%64)) != 0
	}
	_, found := slices.BinarySearch(s.list, chain)
	return found
}

// chainMatch holds what Envoy compares of a filter chain's match: the values of each criterion. An absent criterion
// has one empty value.
type chainMatch struct {
	path     xds.Path
	criteria [9][]string
}

// criteria are the fields of a filter chain's match, in the order in which Envoy compares them.
var criteria = [9]string{
	"destination_port", "prefix_ranges", "server_names", "transport_protocol", "application_protocols",
	"direct_source_prefix_ranges", "source_type", "source_prefix_ranges", "source_ports",
}

// repeats returns a value that a criterion lists twice, and the field of the criterion.
func (c chainMatch) repeats() (field, value string, twice bool) {
	for i, values := range c.criteria {
		if len(values) < 2 {
			continue
		}
		seen := make(map[string]bool, len(values))
		for _, v := range values {
			if seen[v] {
				return criteria[i], v, true
			}
			seen[v] = true
		}
	}
	return "", "", false
}
