package mutate

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// Corpus is the material of mutations: the values that stood under each key, the members of each kind of
// object, and whole resources. The zero Corpus is empty.
type Corpus struct {
	values    map[string][]any            // by key
	members   map[string]map[string][]any // by kind and key
	resources []map[string]any

	seen map[seen]bool
}

// seen is a known value.
type seen struct{ kind, key, value string }

// Learn adds a list of resources to the corpus.
func (c *Corpus) Learn(resources []any) {
	if c.seen == nil {
		c.values, c.members, c.seen = make(map[string][]any), make(map[string]map[string][]any), make(map[seen]bool)
	}
	for _, s := range spots(map[string]any{"resources": resources}) {
		text := encoded(s.value)
		if c.isNew(seen{key: s.key, value: text}) {
			c.values[s.key] = append(c.values[s.key], s.value)
			if resource, ok := s.value.(map[string]any); ok && s.isResource() {
				c.resources = append(c.resources, resource)
			}
		}
		if s.object != nil && s.key != "@type" && c.isNew(seen{s.kind, s.key, text}) {
			if c.members[s.kind] == nil {
				c.members[s.kind] = make(map[string][]any)
			}
			c.members[s.kind][s.key] = append(c.members[s.kind][s.key], s.value)
		}
	}
}

func (c *Corpus) isNew(s seen) bool {
	known := c.seen[s]
	c.seen[s] = true
	return !known
}

// missing returns the keys that other objects of a kind have, and object lacks, sorted.
func (c *Corpus) missing(kind string, object map[string]any) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.members[kind])), func(key string) bool {
		_, there := object[key]
		return there
	})
}

// kindOf returns an object's type or, without a type, the key of the object.
func kindOf(key string, object map[string]any) string {
	if t, ok := object["@type"].(string); ok {
		return t
	}
	return key
}

// Resources returns the resources in a YAML or JSON file: in responses, in lists, or one in each document. Numbers
// are json.Number.
func Resources(text []byte) (all []any, err error) {
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		var v any
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case []any:
			all = append(all, v...)
		case map[string]any:
			if list, ok := v["resources"].([]any); ok {
				all = append(all, list...)
			} else if v["@type"] != nil {
				all = append(all, v)
			}
		}
	}
	return all, nil
}
