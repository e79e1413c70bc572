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

// kinds are the kinds of faults. Each function changes the document at a spot and describes the change; ok is
// false if the spot does not allow the change. Functions that stand here several times are chosen more often:
// their results mostly decode, and only then Envoy's own rules judge.
var kinds = []func(*Corpus, *rand.Rand, spot) (string, bool){
	drop, drop, double, swap, move, retype, rename, breakText, breakText, limit, limit, limit,
	otherValue, otherValue, otherValue, addMember, addMember, addMember, addMember, addField, addField, addField, addField, addField, otherResource,
}

func drop(_ *Corpus, _ *rand.Rand, s spot) (string, bool) {
	if s.object != nil {
		delete(s.object, s.key)
	} else {
		s.relist(slices.Delete(s.list, s.index, s.index+1))
	}
	return "dropped", true
}

func double(_ *Corpus, _ *rand.Rand, s spot) (string, bool) {
	if s.list == nil {
		return "", false
	}
	s.relist(slices.Insert(s.list, s.index, copied(s.value)))
	return "doubled", true
}

// swap changes places with an element of the list, or with a member of the object
// that has a value of the same form.
func swap(_ *Corpus, r *rand.Rand, s spot) (string, bool) {
	if s.list != nil {
		other := r.IntN(len(s.list))
		s.list[s.index], s.list[other] = s.list[other], s.list[s.index]
		return fmt.Sprintf("swapped with [%d]", other), true
	}
	siblings := slices.DeleteFunc(slices.Sorted(maps.Keys(s.object)), func(key string) bool {
		return key == s.key || key == "@type" || !sameForm(s.object[key], s.value)
	})
	if s.key == "@type" || len(siblings) == 0 {
		return "", false
	}
	other := pick(r, siblings)
	s.object[s.key], s.object[other] = s.object[other], s.object[s.key]
	return "swapped with " + other, true
}

// move gives the value another key: a key that has a value of the same JSON type elsewhere.
func move(c *Corpus, r *rand.Rand, s spot) (string, bool) {
	if s.object == nil || s.key == "@type" {
		return "", false
	}
	keys := slices.DeleteFunc(c.missing(s.kind, s.object), func(key string) bool {
		return !sameForm(c.members[s.kind][key][0], s.value)
	})
	if len(keys) == 0 {
		return "", false
	}
	key := pick(r, keys)
	delete(s.object, s.key)
	s.object[key] = s.value
	return "moved to " + key, true
}

// sameForm reports whether two values have the same JSON type.
func sameForm(a, b any) bool { return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b) }

func retype(_ *Corpus, r *rand.Rand, s spot) (string, bool) {
	v := pick(r, []any{"text", "", json.Number("7"), json.Number("1.5"), true, nil, map[string]any{}, []any{}, []any{copied(s.value)}})
	s.set(v)
	return "made " + shown(v), true
}

// rename leaves out a letter of a key, or adds one.
func rename(_ *Corpus, r *rand.Rand, s spot) (string, bool) {
	if s.object == nil || len(s.key) < 3 {
		return "", false
	}
	i := 1 + r.IntN(len(s.key)-2)
	name := pick(r, []string{s.key[:i] + s.key[i+1:], s.key + "s"})
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
	v := pick(r, []string{
		"", "*", "/", "é", "nope", "%FOO%", "127.0.0.1", "::1", "a.b", strings.Repeat("a", 300), strings.ToUpper(text),
		text + "x", text + " ", text + "\n", text + "\x00", text + "}", text + "*", "{" + text, "(" + text, "[" + text,
		"%" + text, ":" + text, "*." + text, "/" + text,
	})
	s.set(v)
	return "made " + shown(v), true
}

// limit changes a number or a duration to a usual limit, and negates a boolean.
func limit(_ *Corpus, r *rand.Rand, s spot) (string, bool) {
	var v any
	switch old := s.value.(type) {
	case json.Number:
		v = json.Number(pick(r, []string{
			"0", "1", "2", "-1", "0.5", "99", "100", "101", "127", "128", "129", "255", "256", "599", "600", "1000000", "1000001", "65535", "65536",
			"16777215", "16777216", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807", "1e300",
		}))
	case string:
		if len(old) < 2 || !strings.HasSuffix(old, "s") || !unicode.IsDigit(rune(old[0])) {
			return "", false
		}
		v = pick(r, []string{
			"0s", "-1s", "0.000000001s", "0.0005s", "0.000999999s", "0.001s", "0.01s", "1s", "4294967s", "4294968s",
			"4294967296s", "9223372035s", "9223372036s", "315576000000s", "315576000001s", "5", "5ms",
		})
	case bool:
		v = !old
	default:
		return "", false
	}
	s.set(v)
	return "made " + shown(v), true
}

// otherValue replaces a value by a value that the same key has elsewhere.
func otherValue(c *Corpus, r *rand.Rand, s spot) (string, bool) {
	others := c.values[s.key]
	if s.object != nil && r.IntN(2) == 0 { // half of the values are from objects of the same kind
		others = c.members[s.kind][s.key]
	}
	if len(others) == 0 {
		return "", false
	}
	v := pick(r, others)
	s.set(copied(v))
	return "made " + shown(v), true
}

// addMember adds a member that objects of the kind have elsewhere.
func addMember(c *Corpus, r *rand.Rand, s spot) (string, bool) {
	object, ok := s.value.(map[string]any)
	if !ok {
		return "", false
	}
	kind := kindOf(s.key, object)
	keys := c.missing(kind, object)
	if len(keys) == 0 {
		return "", false
	}
	key := pick(r, keys)
	v := pick(r, c.members[kind][key])
	object[key] = copied(v)
	return fmt.Sprintf("with %s %s", key, shown(v)), true
}

// otherResource replaces a resource by a resource of another type, or puts the other resource before it.
func otherResource(c *Corpus, r *rand.Rand, s spot) (string, bool) {
	object, ok := s.value.(map[string]any)
	if !ok || !s.isResource() || len(c.resources) == 0 {
		return "", false
	}
	v := pick(r, c.resources)
	if v["@type"] == object["@type"] {
		return "", false
	}
	if r.IntN(2) == 0 {
		s.set(copied(v))
		return "made " + shown(v), true
	}
	s.relist(slices.Insert(s.list, s.index, copied(v)))
	return "before it " + shown(v), true
}
