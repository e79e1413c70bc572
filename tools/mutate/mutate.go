// Package mutate makes random faults in working configurations, so that tests can compare the verdicts of
// validate and of the real Envoy. kinds.go has the kinds of faults: fields are dropped, doubled, swapped,
// moved, retyped and renamed, names are broken, values moved to their limits, and parts of other
// configurations and fields of the API put in. Equal seeds give equal faults.
//
//	var corpus mutate.Corpus
//	corpus.Learn(resources) // of each configuration
//	said := corpus.Mutate(rand.New(rand.NewPCG(seed, 0)), resources)
//
// TestMutants gives each mutant to both programs and compares.
package mutate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Mutate makes one random fault in a copy of a list of resources of Resources, and describes the fault with
// its place. fault is empty if no change is possible.
func (c *Corpus) Mutate(r *rand.Rand, resources []any) (mutant []any, fault string) {
	const attempts = 1000 // most kinds of faults are possible at most spots
	before := encoded(resources)
	for range attempts {
		document := map[string]any{"resources": copied(resources)}
		all := spots(document)
		if len(all) == 0 {
			break
		}
		s := all[r.IntN(len(all))]
		said, ok := pick(r, kinds)(c, r, s)
		mutant, _ := document["resources"].([]any)
		if ok && encoded(mutant) != before {
			return mutant, s.path + ": " + said
		}
	}
	return resources, ""
}

// spot is a value in a document, with its place.
type spot struct {
	path  string
	key   string // of the value; for an element, the key of its list
	value any
	kind  string // of the object around the value
	// message is the type of the value or, for a list, of its elements; nil if unknown.
	message protoreflect.MessageDescriptor
	object  map[string]any // the object with the value; nil for an element
	list    []any          // the list with the value; nil for a member
	index   int            // in list
	// relist replaces list by another list.
	relist func([]any)
}

func (s spot) set(v any) {
	if s.object != nil {
		s.object[s.key] = v
	} else {
		s.list[s.index] = v
	}
}

// isResource reports whether the value is a resource.
func (s spot) isResource() bool { return s.list != nil && s.kind == "" }

// spots returns the spots of a document in the order of their paths. The list of resources is no spot.
func spots(document map[string]any) (all []spot) {
	var below func(parent spot)
	below = func(parent spot) {
		switch v := parent.value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				s := spot{path: parent.path + "." + key, key: key, value: v[key], kind: kindOf(parent.key, v), object: v}
				s.message = messageOf(s.value, fieldMessage(parent.message, key))
				all = append(all, s)
				below(s)
			}
		case []any:
			for i, element := range v {
				s := spot{
					path: fmt.Sprintf("%s[%d]", parent.path, i), key: parent.key, value: element, kind: parent.kind,
					list: v, index: i, relist: func(l []any) { parent.set(l) },
				}
				s.message = messageOf(s.value, parent.message)
				all = append(all, s)
				below(s)
			}
		}
	}
	below(spot{key: "resources", value: document["resources"], object: document})
	return all
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

// encoded returns a value as JSON, its keys sorted.
func encoded(v any) string {
	text, _ := json.Marshal(v) // no error: v came from JSON
	return string(text)
}

// shown returns a value as JSON for a description, clipped.
func shown(v any) string {
	const most = 80
	text := []rune(encoded(v))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
