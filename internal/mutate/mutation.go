// Package mutate makes small random faults in configurations that work, so that
// what validate says of them can be held against what the real Envoy does: fields
// are dropped, doubled, retyped and renamed, names are broken, values moved to their
// limits, and parts of other configurations put in.
package mutate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

// Corpus is what mutations are made from: the values that stand under each key in
// configurations that work, and the members of the objects there.
type Corpus struct {
	values  map[string][]any
	members map[string][]member
}

type member struct {
	key   string
	value any
}

// Learn adds the resources of a configuration.
func (c *Corpus) Learn(document any) {
	if c.values == nil {
		c.values, c.members = make(map[string][]any), make(map[string][]member)
	}
	each(document, "", func(key string, value any) {
		c.values[key] = append(c.values[key], value)
		if object, ok := value.(map[string]any); ok {
			kind := kindOf(key, object)
			for _, k := range slices.Sorted(maps.Keys(object)) {
				if k != "@type" {
					c.members[kind] = append(c.members[kind], member{k, object[k]})
				}
			}
		}
	})
}

// kindOf is what tells one kind of object from another: its type, or where it stands.
func kindOf(key string, object map[string]any) string {
	if t, ok := object["@type"].(string); ok {
		return t
	}
	return key
}

// each calls f for every value below document with the key that it stands under,
// which for an element of a list is the list's.
func each(document any, key string, f func(key string, value any)) {
	switch v := document.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			f(k, v[k])
			each(v[k], k, f)
		}
	case []any:
		for _, element := range v {
			f(key, element)
			each(element, key, f)
		}
	}
}

// spot is one value in a document, and how to change it.
type spot struct {
	path   string
	key    string
	value  any
	object map[string]any // where it is a member
	list   []any          // where it is an element
	index  int
	setAll func([]any) // replaces the list
}

func (s spot) set(v any) {
	if s.object != nil {
		s.object[s.key] = v
		return
	}
	s.list[s.index] = v
}

// spots are all values of a document. set replaces the document itself.
func spots(document any, key, path string, set func(any)) (all []spot) {
	switch v := document.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			s := spot{path: path + "." + k, key: k, value: v[k], object: v}
			all = append(all, s)
			all = append(all, spots(v[k], k, s.path, func(x any) { v[k] = x })...)
		}
	case []any:
		for i, element := range v {
			s := spot{path: fmt.Sprintf("%s[%d]", path, i), key: key, value: element, list: v, index: i, setAll: func(l []any) { set(l) }}
			all = append(all, s)
			all = append(all, spots(element, key, s.path, func(x any) { v[i] = x })...)
		}
	}
	return all
}

// Mutate makes one random fault in a document, a DiscoveryResponse of JSON values,
// and says which. The document is changed in place.
func (c *Corpus) Mutate(r *rand.Rand, document map[string]any) string {
	for {
		all := spots(document["resources"], "resources", "", func(v any) { document["resources"] = v })
		if len(all) == 0 {
			return "nothing to change"
		}
		s := all[r.IntN(len(all))]
		m := mutations[r.IntN(len(mutations))]
		if what, ok := m(c, r, s); ok {
			return s.path + ": " + what
		}
	}
}

// mutations are the kinds of faults; one that can't be made at a spot says so. What
// stands twice is made more often.
var mutations = []func(*Corpus, *rand.Rand, spot) (string, bool){
	drop, double, retype, rename, breakText, limits, limits, otherValue, otherValue, addMember, addMember, addMember, breakText,
}

func drop(_ *Corpus, _ *rand.Rand, s spot) (string, bool) {
	if s.object != nil {
		delete(s.object, s.key)
	} else {
		s.setAll(slices.Delete(slices.Clone(s.list), s.index, s.index+1))
	}
	return "dropped", true
}

func double(_ *Corpus, _ *rand.Rand, s spot) (string, bool) {
	if s.list == nil {
		return "", false
	}
	s.setAll(slices.Insert(slices.Clone(s.list), s.index, copied(s.value)))
	return "doubled", true
}

func retype(_ *Corpus, r *rand.Rand, s spot) (string, bool) {
	others := []any{"text", json.Number("7"), true, map[string]any{}, []any{}, nil, "", json.Number("1.5"), []any{copied(s.value)}}
	v := others[r.IntN(len(others))]
	s.set(v)
	return fmt.Sprintf("made %s", shown(v)), true
}

func rename(_ *Corpus, r *rand.Rand, s spot) (string, bool) {
	if s.object == nil || len(s.key) < 3 {
		return "", false
	}
	i := 1 + r.IntN(len(s.key)-2)
	name := s.key[:i] + s.key[i+1:]
	if r.IntN(3) == 0 {
		name = s.key + "s"
	}
	if _, there := s.object[name]; there {
		return "", false
	}
	delete(s.object, s.key)
	s.object[name] = s.value
	return "renamed " + name, true
}

func breakText(_ *Corpus, r *rand.Rand, s spot) (string, bool) {
	text, ok := s.value.(string)
	if !ok {
		return "", false
	}
	others := []string{text + "x", "", strings.ToUpper(text), text + " ", "*", "%FOO%", "/", text + "\n", strings.Repeat("a", 300), "{" + text, text + "}", "(" + text, "[" + text, "%" + text, ":" + text, "nope", "é", "127.0.0.1", "a.b", "*." + text}
	v := others[r.IntN(len(others))]
	if v == text {
		return "", false
	}
	s.set(v)
	return "made " + shown(v), true
}

func limits(_ *Corpus, r *rand.Rand, s spot) (string, bool) {
	var others []string
	switch v := s.value.(type) {
	case json.Number:
		others = []string{"0", "1", "2", "-1", "99", "100", "101", "128", "129", "255", "256", "1000000", "1000001", "65535", "65536", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807", "0.5"}
		n := json.Number(others[r.IntN(len(others))])
		s.set(n)
		return "made " + n.String(), n != v
	case string:
		if !strings.HasSuffix(v, "s") || len(v) < 2 || !unicode.IsDigit(rune(v[0])) {
			return "", false
		}
		others = []string{"0s", "-1s", "0.000000001s", "0.0005s", "0.001s", "1s", "9223372035s", "9223372036s", "315576000000s", "4294967296s", "5"}
		d := others[r.IntN(len(others))]
		s.set(d)
		return "made " + d, d != v
	case bool:
		s.set(!v)
		return fmt.Sprintf("made %v", !v), true
	}
	return "", false
}

// otherValue puts what stands under the same key elsewhere in its place.
func otherValue(c *Corpus, r *rand.Rand, s spot) (string, bool) {
	others := c.values[s.key]
	if len(others) == 0 {
		return "", false
	}
	v := others[r.IntN(len(others))]
	if fmt.Sprint(v) == fmt.Sprint(s.value) {
		return "", false
	}
	s.set(copied(v))
	return "made " + shown(v), true
}

// addMember adds a member that objects of the kind have elsewhere.
func addMember(c *Corpus, r *rand.Rand, s spot) (string, bool) {
	object, ok := s.value.(map[string]any)
	if !ok {
		return "", false
	}
	others := c.members[kindOf(s.key, object)]
	if len(others) == 0 {
		return "", false
	}
	m := others[r.IntN(len(others))]
	if _, there := object[m.key]; there {
		return "", false
	}
	object[m.key] = copied(m.value)
	return fmt.Sprintf("with %s %s", m.key, shown(m.value)), true
}

func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, value := range v {
			c[k] = copied(value)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, value := range v {
			c[i] = copied(value)
		}
		return c
	}
	return v
}

func shown(v any) string {
	text, _ := json.Marshal(v) // of JSON values: can't fail
	if len(text) > 80 {
		return string(text[:80]) + "…"
	}
	return string(text)
}
