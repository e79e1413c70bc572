package diff

import (
	"strconv"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// element is an element of a list.
type element struct {
	value protoreflect.Value
	// content is a text that only equal elements share. key identifies the element among others; empty without a key.
	content, key string
	// named means that the key is a name. Two elements with different names are never the same element.
	named bool
}

// pair is the numbers of an element in both lists; -1 for a list without the element.
type pair struct{ was, is int }

// lists compares two lists. An element of both lists is one element even if its number changes, so an insertion
// changes no other element.
func (c *comparison) lists(p place, fd protoreflect.FieldDescriptor, was, is protoreflect.List) {
	a, b := c.elements(fd, was), c.elements(fd, is)
	pairs := match(a, b)
	moved := movedOf(pairs)
	for i, q := range pairs {
		switch {
		case q.was < 0:
			c.add(p.element(-1, q.is, b[q.is].name()), Added, "", c.text(fd, b[q.is].value), "")
		case q.is < 0:
			c.add(p.element(q.was, -1, a[q.was].name()), Removed, c.text(fd, a[q.was].value), "", "")
		default:
			at := p.element(q.was, q.is, b[q.is].name())
			if moved[i] {
				c.add(at, Moved, strconv.Itoa(q.was), strconv.Itoa(q.is), "")
			}
			if a[q.was].content != b[q.is].content {
				c.values(at, fd, a[q.was].value, b[q.is].value)
			}
		}
	}
}

// name returns the name of an element; empty without one.
func (e element) name() string {
	if e.named {
		return e.key
	}
	return ""
}

func (c *comparison) elements(fd protoreflect.FieldDescriptor, list protoreflect.List) []element {
	all := make([]element, list.Len())
	for i := range all {
		v := list.Get(i)
		if all[i].value = v; fd.Message() == nil {
			all[i].content = v.String()
			continue
		}
		all[i].content = canonical(v.Message())
		all[i].key, all[i].named = c.keyOf(v.Message())
	}
	return all
}

// canonical returns a text that only equal messages share.
func canonical(m protoreflect.Message) string {
	b, _ := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m.Interface()) // texts are UTF-8
	return string(b)
}

// nameFields are the fields with the name of an element. keyFields identify an element without a name. The first field
// that is set counts.
var (
	nameFields = []protoreflect.Name{"name", "key", "header_name", "cluster", "type_url"}
	keyFields  = []protoreflect.Name{"match", "filter_chain_match", "endpoint", "endpoint_name", "header", "typed_extension_config", "matcher", "predicate"}
)

// keyOf returns the key of a message in a list.
func (c *comparison) keyOf(m protoreflect.Message) (key string, named bool) {
	switch of := m.Interface().(type) {
	case *endpointv3.LocalityLbEndpoints:
		return strconv.Itoa(int(of.GetPriority())) + canonical(of.GetLocality().ProtoReflect()), false
	case *endpointv3.LbEndpoint:
		if address := AddressOf(of); address != "" {
			return address, true
		}
	case *anypb.Any:
		return of.GetTypeUrl(), false
	}
	fields := m.Descriptor().Fields()
	for _, name := range nameFields {
		if fd := fields.ByName(name); fd != nil && fd.Kind() == protoreflect.StringKind && !fd.IsList() && m.Has(fd) {
			return m.Get(fd).String(), true
		}
	}
	for _, name := range keyFields {
		fd := fields.ByName(name)
		if fd == nil || fd.Message() == nil || fd.IsList() || fd.IsMap() || !m.Has(fd) {
			continue
		}
		of := m.Get(fd).Message()
		if inner := of.Descriptor().Fields().ByName("key"); inner != nil && inner.Kind() == protoreflect.StringKind {
			return of.Get(inner).String(), true
		}
		if inner := of.Descriptor().Fields().ByName("name"); inner != nil && inner.Kind() == protoreflect.StringKind {
			return of.Get(inner).String(), true
		}
		return canonical(of), false
	}
	return "", false
}

// match pairs the elements of two lists: first elements of one key, then equal elements, then the elements without a
// name in their order. The pairs are in the order of is; elements of was alone stand in front of the elements that
// followed them.
func match(was, is []element) []pair {
	partner := make([]int, len(is)) // in was
	for i := range partner {
		partner[i] = -1
	}
	taken := make([]bool, len(was))
	pairBy := func(of func(element) string) {
		at := make(map[string][]int)
		for i, e := range was {
			if k := of(e); !taken[i] && k != "" {
				at[k] = append(at[k], i)
			}
		}
		for i, e := range is {
			if k := of(e); partner[i] < 0 && len(at[k]) > 0 {
				partner[i], taken[at[k][0]] = at[k][0], true
				at[k] = at[k][1:]
			}
		}
	}
	pairBy(func(e element) string { return e.content + "\x00" + e.key })
	pairBy(func(e element) string { return e.key })
	rest := 0
	for i, e := range is {
		for rest < len(was) && (taken[rest] || was[rest].named || was[rest].key == "" && was[rest].value.IsValid() && isScalar(was[rest])) {
			rest++
		}
		if partner[i] < 0 && !e.named && !isScalar(e) && rest < len(was) {
			partner[i], taken[rest] = rest, true
		}
	}
	return inOrder(partner, taken)
}

// isScalar reports whether an element is no message. A scalar is its own identity.
func isScalar(e element) bool {
	_, isMessage := e.value.Interface().(protoreflect.Message)
	return !isMessage
}

// inOrder returns the pairs of partner, with the elements that have no partner.
func inOrder(partner []int, taken []bool) []pair {
	var pairs []pair
	next := 0
	alone := func(end int) {
		for ; next < end; next++ {
			if !taken[next] {
				pairs = append(pairs, pair{next, -1})
			}
		}
	}
	for i, w := range partner {
		alone(w) // nothing if w is -1 or stands before next
		pairs = append(pairs, pair{w, i})
	}
	alone(len(taken))
	return pairs
}

// movedOf returns the pairs whose elements have moved. The other pairs are the longest sequence that both lists have in
// the same order. Of several longest sequences, movedOf takes one with the most elements that keep their number.
func movedOf(pairs []pair) map[int]bool {
	var both []int
	last := 0
	for i, p := range pairs {
		if p.was >= 0 && p.is >= 0 {
			both, last = append(both, i), max(last, p.was)
		}
	}
	// best is a Fenwick tree: the best sequences that end at or before each number in was.
	type end struct{ score, pair int }
	best := make([]end, last+2)
	for i := range best {
		best[i].pair = -1
	}
	prev := make(map[int]int, len(both))
	for _, i := range both {
		before := end{0, -1}
		for n := pairs[i].was; n > 0; n -= n & -n {
			if best[n].score > before.score {
				before = best[n]
			}
		}
		prev[i] = before.pair
		is := end{before.score + len(both) + 1, i}
		if pairs[i].was == pairs[i].is {
			is.score++
		}
		for n := pairs[i].was + 1; n < len(best); n += n & -n {
			if best[n].score < is.score {
				best[n] = is
			}
		}
	}
	longest := end{0, -1}
	for n := last + 1; n > 0; n -= n & -n {
		if best[n].score > longest.score {
			longest = best[n]
		}
	}
	moved := make(map[int]bool)
	for _, i := range both {
		moved[i] = true
	}
	for i := longest.pair; i >= 0; i = prev[i] {
		delete(moved, i)
	}
	return moved
}
