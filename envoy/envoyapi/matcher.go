package envoyapi

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// MatcherPlace has the types that Envoy accepts in the matcher of one field.
type MatcherPlace struct {
	// Inputs are the inputs, without the extensions of envoy.matching.common_inputs, which Envoy accepts in each
	// matcher.
	Inputs []protoreflect.FullName
	// Actions are the actions.
	Actions []protoreflect.FullName
	// Trees are the custom matchers of a matcher_tree.
	Trees []protoreflect.FullName
	// Keeps means that Envoy accepts keep_matching.
	Keeps bool
}

// matcherTable is the content of matchers.txt.
type matcherTable struct {
	places map[protoreflect.FullName]*MatcherPlace // by field
	// pairs maps each input that is no string to its only custom matcher.
	pairs map[protoreflect.FullName]protoreflect.FullName
}

// MatcherPlaceOf returns the MatcherPlace of a field; nil if the field holds no matcher.
func (v *Version) MatcherPlaceOf(field protoreflect.FullName) *MatcherPlace {
	return v.tables().matchers.places[field]
}

// PairedMatcher returns the only custom matcher that goes with an input; empty for a string input.
func (v *Version) PairedMatcher(input protoreflect.FullName) protoreflect.FullName {
	return v.tables().matchers.pairs[input]
}

// PairedInput returns the only input that goes with a custom matcher; empty for a matcher of strings.
func (v *Version) PairedInput(matcher protoreflect.FullName) protoreflect.FullName {
	for input, with := range v.tables().matchers.pairs {
		if with == matcher {
			return input
		}
	}
	return ""
}

func (r *reader) matchers(file string) matcherTable {
	t := matcherTable{make(map[protoreflect.FullName]*MatcherPlace), make(map[protoreflect.FullName]protoreflect.FullName)}
	lists := make(map[string][]protoreflect.FullName)
	for _, words := range r.rows(file, 2) {
		subject, verb, types := words[0], words[1], typesOf(words[2:], lists)
		if len(types) == 0 && verb != "keeps" {
			r.fail(fmt.Errorf("%s: %s %s: want a type, or a list that a line above defines", file, subject, verb))
			continue
		}
		switch verb {
		case "contains":
			lists[subject] = append(lists[subject], types...)
			continue
		case "pairs":
			t.pairs[protoreflect.FullName(subject)] = types[0]
			continue
		}
		place := t.places[protoreflect.FullName(subject)]
		if place == nil {
			place = &MatcherPlace{}
			t.places[protoreflect.FullName(subject)] = place
		}
		switch verb {
		case "input":
			place.Inputs = append(place.Inputs, types...)
		case "action":
			place.Actions = append(place.Actions, types...)
		case "tree":
			place.Trees = append(place.Trees, types...)
		case "keeps":
			place.Keeps = true
		default:
			r.fail(fmt.Errorf("%s: unknown word %q", file, verb))
		}
	}
	return t
}

// typesOf returns the types in words. A word @NAME stands for the types of a list.
func typesOf(words row, lists map[string][]protoreflect.FullName) (types []protoreflect.FullName) {
	for _, word := range words {
		if strings.HasPrefix(word, "@") {
			types = append(types, lists[word]...)
		} else {
			types = append(types, protoreflect.FullName(word))
		}
	}
	return types
}
