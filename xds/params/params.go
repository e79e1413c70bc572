// Package params has the dynamic parameters that a client sends when it subscribes to a resource, and the
// constraints that say which clients a variant of a resource is for.
//
// The source is xRFC TP2, "Dynamically Generated Cacheable xDS Resources"
// (github.com/cncf/xds/blob/main/proposals/TP2-dynamically-generated-cacheable-xds-resources.md).
package params

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Parameters are the dynamic parameters of a client, by key. An absent key differs from an empty value.
type Parameters map[string]string

// String returns a text such as "env=prod, region=eu", in the order of the keys.
func (p Parameters) String() string {
	if len(p) == 0 {
		return "no parameters"
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(p)) {
		list = append(list, Word(key)+"="+Word(p[key]))
	}
	return strings.Join(list, ", ")
}

// Constraints select the Parameters of a variant's clients. Constraints are canonical: equal
// Constraints have equal texts (String). The zero value has no constraint, and selects all clients. Constraints are
// immutable.
type Constraints struct{ *term } // nil for no constraint, as in most resources

// term is an operator with its operands.
type term struct {
	op   op
	key  string        // if op is equals or exists
	is   string        // if op is equals
	of   []Constraints // if op is or, and, not
	text string        // the result of String
}

// kind is the operator of c.
func (c Constraints) kind() op {
	if c.term == nil {
		return all
	}
	return c.op
}

type op byte

const (
	all    op = iota // no constraint
	never            // an OR of nothing
	equals           // the key has this value
	exists           // the key has any value
	not
	and
	or
)

// Value matches Parameters in which key has the value.
func Value(key, value string) Constraints {
	return sealed(term{op: equals, key: key, is: value})
}

// Exists matches Parameters with the key, whatever its value.
func Exists(key string) Constraints { return sealed(term{op: exists, key: key}) }

// Not matches if c does not match.
func Not(c Constraints) Constraints {
	switch c.kind() {
	case all:
		return sealed(term{op: never})
	case never:
		return Constraints{}
	case not:
		return c.of[0]
	}
	return sealed(term{op: not, of: []Constraints{c}})
}

// And matches if every element of list matches; an empty list always matches.
func And(list ...Constraints) Constraints { return joined(and, all, never, list) }

// Or matches if an element of list matches; an empty list never matches.
func Or(list ...Constraints) Constraints { return joined(or, never, all, list) }

// joined joins constraints by an operator. The operator ignores operands of kind without. An operand of kind
// decides is the whole result.
func joined(by, without, decides op, list []Constraints) Constraints {
	var of []Constraints
	for _, c := range list {
		switch c.kind() {
		case without:
		case decides:
			return c
		case by:
			of = append(of, c.of...)
		default:
			of = append(of, c)
		}
	}
	slices.SortFunc(of, func(a, b Constraints) int { return cmp.Compare(a.text, b.text) })
	of = slices.CompactFunc(of, func(a, b Constraints) bool { return a.text == b.text })
	switch len(of) {
	case 0:
		return sealed(term{op: without})
	case 1:
		return of[0]
	}
	return sealed(term{op: by, of: of})
}

// sealed returns the Constraints of a term.
func sealed(t term) Constraints {
	if t.op == all {
		return Constraints{}
	}
	c := Constraints{&t}
	c.text = c.write()
	return c
}

// None reports whether c has no constraint.
func (c Constraints) None() bool { return c.term == nil }

// Equal reports whether c and other have equal texts.
func (c Constraints) Equal(other Constraints) bool { return c.String() == other.String() }

// Matches reports whether p meets c. Keys of p that c does not name have no effect (TP2, "Unconstrained
// Parameters").
func (c Constraints) Matches(p Parameters) bool {
	switch c.kind() {
	case all:
		return true
	case equals:
		is, ok := p[c.key]
		return ok && is == c.is
	case exists:
		_, ok := p[c.key]
		return ok
	case not:
		return !c.of[0].Matches(p)
	case and:
		return !slices.ContainsFunc(c.of, func(c Constraints) bool { return !c.Matches(p) })
	case or:
		return slices.ContainsFunc(c.of, func(c Constraints) bool { return c.Matches(p) })
	}
	return false // never
}

// Keys returns the keys that c names, sorted.
func (c Constraints) Keys() []string {
	keys := make(map[string]bool)
	c.each(func(c Constraints) { keys[c.key] = true })
	return slices.Sorted(maps.Keys(keys))
}

// each calls f for each part of c that constrains a key.
func (c Constraints) each(f func(Constraints)) {
	if c.None() {
		return
	}
	if c.op == equals || c.op == exists {
		f(c)
	}
	for _, part := range c.of {
		part.each(f)
	}
}

// String returns a text such as "env=prod and not (canary or version=v2)", in which a key alone means Exists. Equal
// texts mean equal Constraints.
func (c Constraints) String() string {
	if c.None() {
		return "any client"
	}
	return c.text
}

func (c Constraints) write() string {
	switch c.op {
	case equals:
		return Word(c.key) + "=" + Word(c.is)
	case exists:
		return Word(c.key)
	case not:
		return "not " + c.of[0].inner(not)
	case and:
		return c.list(" and ")
	case or:
		return c.list(" or ")
	}
	return "no client"
}

func (c Constraints) list(by string) string {
	var texts []string
	for _, part := range c.of {
		texts = append(texts, part.inner(c.op))
	}
	return strings.Join(texts, by)
}

// inner returns the text of c as an operand of an operator, with parentheses if it needs them.
func (c Constraints) inner(within op) string {
	if c.op == and || c.op == or && within != or {
		return "(" + c.text + ")"
	}
	return c.text
}

// Word returns a key or a value for String. Word quotes ambiguous texts, such as "and".
func Word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@+*", r)
	}
	reserved := s == "and" || s == "or" || s == "not" || s == ""
	if reserved || strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) >= 0 {
		return strconv.Quote(s)
	}
	return s
}
