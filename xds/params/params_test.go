package params

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// random returns random Constraints on three keys with two values each.
func random(r *rand.Rand, depth int) Constraints {
	key := string(rune('a' + r.IntN(3)))
	kind := r.IntN(6)
	if depth == 0 {
		kind = r.IntN(2)
	}
	switch kind {
	case 0:
		return Exists(key)
	case 1, 2:
		return Value(key, string(rune('1'+r.IntN(2))))
	case 3:
		return Not(random(r, depth-1))
	}
	var list []Constraints
	for range r.IntN(4) {
		list = append(list, random(r, depth-1))
	}
	if kind == 4 {
		return And(list...)
	}
	return Or(list...)
}

// every returns all Parameters of the keys that random uses: each key has one of the used values, another value, or
// is absent.
func every() (list []Parameters) {
	for n := range 4 * 4 * 4 {
		p := make(Parameters)
		for i, key := range []string{"a", "b", "c"} {
			switch v := n >> (2 * i) & 3; v {
			case 3:
			case 2:
				p[key] = "other"
			default:
				p[key] = string(rune('1' + v))
			}
		}
		list = append(list, p)
	}
	return list
}

// TestSpace compares Sets of random Constraints with an enumeration of all Parameters.
func TestSpace(t *testing.T) {
	r, list := rand.New(rand.NewPCG(1, 2)), every()
	for range 3000 {
		a, b := random(r, 4), random(r, 4)
		s := NewSpace(a, b)
		for _, c := range []struct {
			name string
			set  Set
			in   func(p Parameters) bool
		}{
			{"of", s.Of(a), a.Matches},
			{"and", s.And(s.Of(a), s.Of(b)), func(p Parameters) bool { return a.Matches(p) && b.Matches(p) }},
			{"or", s.Or(s.Of(a), s.Of(b)), func(p Parameters) bool { return a.Matches(p) || b.Matches(p) }},
			{"minus", s.Minus(s.Of(a), s.Of(b)), func(p Parameters) bool { return a.Matches(p) && !b.Matches(p) }},
		} {
			in := slices.DeleteFunc(slices.Clone(list), func(p Parameters) bool { return !c.in(p) })
			if (c.set == None) != (len(in) == 0) || (c.set == All) != (len(in) == len(list)) {
				t.Fatalf("%s of %q and %q: set %d, and %d of %d by enumeration", c.name, a, b, c.set, len(in), len(list))
			}
			for _, p := range list {
				if s.Has(c.set, p) != c.in(p) {
					t.Fatalf("%s of %q and %q has %v: %v", c.name, a, b, p, !c.in(p))
				}
			}
			example, ok := s.Example(c.set)
			if ok != (len(in) > 0) {
				t.Fatalf("%s of %q and %q: an example is %v", c.name, a, b, ok)
			}
			if !ok {
				continue
			}
			fewest := slices.MinFunc(in, func(p, q Parameters) int { return len(p) - len(q) })
			if !c.in(example) || len(example) != len(fewest) {
				t.Fatalf("%s of %q and %q: the example %v, and %v has the fewest keys", c.name, a, b, example, fewest)
			}
			p := in[r.IntN(len(in))]
			sent, absent := s.Counts(c.set, p)
			for _, q := range list {
				like := !slices.ContainsFunc(absent, func(key string) bool { _, has := q[key]; return has })
				for key, value := range sent {
					like = like && q[key] == value
				}
				if like && !c.in(q) {
					t.Fatalf("%s of %q and %q: of %v, %v and no %v count, and %v is not in the set", c.name, a, b, p, sent, absent, q)
				}
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
	}
}

// TestCanonical: the Constraints of the message of Constraints are equal to these, and match the same Parameters.
func TestCanonical(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		c := random(r, 4)
		again, err := Parse(c.Proto())
		if err != nil || !again.Equal(c) || again.String() != c.String() || !proto.Equal(again.Proto(), c.Proto()) {
			t.Fatalf("%q becomes %q, %v", c, again, err)
		}
		for _, p := range every() {
			if again.Matches(p) != c.Matches(p) {
				t.Fatalf("%q and %q differ for %v", c, again, p)
			}
		}
	}
}

// TestString: constraints that differ only in the order and nesting of operators have the same text.
func TestString(t *testing.T) {
	env, eu, us := Value("env", "prod"), Value("region", "eu"), Value("region", "us")
	for _, c := range []struct {
		of   Constraints
		want string
	}{
		{Constraints{}, "any client"},
		{And(), "any client"},
		{Or(), "no client"},
		{Not(And()), "no client"},
		{env, "env=prod"},
		{And(Or(us, eu), env, And(env)), "env=prod and (region=eu or region=us)"},
		{Or(And(us, env), eu), "(env=prod and region=us) or region=eu"},
		{Not(Not(Exists("canary"))), "canary"},
		{Not(Or(env, Exists("canary"))), "not (canary or env=prod)"},
		{And(env, Or()), "no client"},
		{Or(env, And()), "any client"},
		{Value("a key", "or"), `"a key"="or"`},
		{Value("k", ""), `k=""`},
	} {
		if got := c.of.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	deep := `{"constraint":{"key":"a","exists":{}}}`
	for range 40 {
		deep = `{"notConstraints":` + deep + `}`
	}
	single := func(rest string) string { return `{"andConstraints":{"constraints":[{},{"constraint":` + rest + `}]}}` }
	for _, c := range []struct{ json, want, err string }{
		{`{}`, "any client", ""},
		{`{"andConstraints":{}}`, "any client", ""},
		{`{"orConstraints":{}}`, "no client", ""},
		{`{"notConstraints":{}}`, "no client", ""},
		{single(`{"key":"env","value":""}`), `env=""`, ""},
		{single(`{"key":"env"}`), "", "and_constraints.constraints[1].constraint: a constraint needs value or exists"},
		{single(`{"value":"prod"}`), "", "and_constraints.constraints[1].constraint: a constraint needs a key"},
		{single(`{"key":"` + strings.Repeat("k", 1<<20) + `","exists":{}}`), "", "and_constraints.constraints[1].constraint.key: a key has at most 1024 bytes, and this one 1048576"},
		{deep, "", strings.Repeat("not_constraints.", 32)[:32*16-1] + ": constraints are nested deeper than 32"},
		{`{"orConstraints":{"constraints":[` + strings.Repeat("{},", maxParts) + `{}]}}`, "", "or_constraints.constraints[9999]: the constraints have more than 10000 parts"},
	} {
		m := new(discoveryv3.DynamicParameterConstraints)
		if err := protojson.Unmarshal([]byte(c.json), m); err != nil {
			t.Fatal(err)
		}
		got, err := Parse(m)
		if fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
			t.Errorf("%.80s: error %v, want %q", c.json, err, c.err)
		}
		if err == nil && got.String() != c.want {
			t.Errorf("%.80s: %q, want %q", c.json, got, c.want)
		}
	}
}

// TestTooComplex: Sets that would take all memory end with ErrTooComplex.
func TestTooComplex(t *testing.T) {
	var pairs []Constraints
	for i := range 40 {
		pairs = append(pairs, And(Exists(fmt.Sprintf("a%02d", i)), Exists(fmt.Sprintf("z%02d", i))))
	}
	all := Or(pairs...)
	s := NewSpace(all)
	s.Of(all)
	if s.Err() != ErrTooComplex {
		t.Fatal(s.Err())
	}
	if _, ok := s.Example(All); ok {
		t.Error("an example of a set that means nothing")
	}
}

// TestManyValues: a key may have as many values as constraints may have parts. Each value is another Set.
func TestManyValues(t *testing.T) {
	var values []Constraints
	for i := range maxParts {
		values = append(values, Value("key", fmt.Sprintf("v%d", i)))
	}
	one := Or(values...)
	s := NewSpace(one)
	var sets []Set
	for i, v := range values {
		sets = append(sets, s.Of(v))
		if p, ok := s.Example(sets[i]); !ok || p["key"] != fmt.Sprintf("v%d", i) {
			t.Fatal(p, ok)
		}
	}
	if s.Or(sets...) != s.Of(one) || s.Err() != nil {
		t.Error("all values are not the OR of them:", s.Err())
	}
	if p, ok := s.Example(s.Minus(s.Of(Exists("key")), s.Of(one))); !ok || p["key"] != "other" {
		t.Error(p, ok)
	}
}

// TestManyKeys: a Space of 20 keys with 10 values each has 10^20 combinations, and takes little time and memory.
func TestManyKeys(t *testing.T) {
	var variants []Constraints
	for v := range 10 {
		var keys []Constraints
		for k := range 20 {
			keys = append(keys, Value(fmt.Sprintf("key%02d", k), fmt.Sprintf("v%d", v)))
		}
		variants = append(variants, And(keys...))
	}
	s := NewSpace(variants...)
	covered := None
	for i, v := range variants {
		for _, other := range variants[:i] {
			if s.And(s.Of(v), s.Of(other)) != None {
				t.Errorf("%s and %s overlap", v, other)
			}
		}
		covered = s.Or(covered, s.Of(v))
	}
	if p, ok := s.Example(s.Minus(All, covered)); !ok || len(p) != 0 || s.Err() != nil {
		t.Error(p, ok, s.Err())
	}
	if len(s.nodes) > 10_000 {
		t.Errorf("%d nodes", len(s.nodes))
	}
}
