package envoyapi

import (
	"maps"
	"slices"

	"xdspub/xds"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Extension is an extension of a binary.
type Extension struct {
	// Category is the kind of extension, such as envoy.filters.http.
	Category string
	Name     string
	// Config is the type of the configuration; empty if Envoy finds the extension by name only.
	Config protoreflect.FullName
	// Route is the type of an HTTP filter's configuration for a route, if it differs from Config.
	Route protoreflect.FullName
}

// extensionTable indexes extensions by category, by type and by name.
type extensionTable struct {
	byCategory map[string][]Extension
	byConfig   map[extensionKey]Extension
	byName     map[extensionKey]Extension
}

// extensionKey is a category, and a type or a name in the category.
type extensionKey struct{ category, value string }

func (r *reader) extensions(file string) extensionTable {
	t := extensionTable{make(map[string][]Extension), make(map[extensionKey]Extension), make(map[extensionKey]Extension)}
	for _, words := range r.rows(file, 2) {
		e := Extension{Category: words[0], Name: words[1]}
		for i, value := range words[2:] {
			if i == 0 {
				e.Config = protoreflect.FullName(value)
			} else {
				e.Route = protoreflect.FullName(value)
			}
		}
		if newIn().extensions[extensionKey{e.Category, e.Name}] > r.release {
			continue
		}
		if newIn().routes[e.Route] > r.release {
			e.Route = ""
		}
		t.byCategory[e.Category] = append(t.byCategory[e.Category], e)
		t.byName[extensionKey{e.Category, e.Name}] = e
		for _, config := range []protoreflect.FullName{e.Config, e.Route} {
			if config != "" {
				t.byConfig[extensionKey{e.Category, string(config)}] = e
			}
		}
	}
	return t
}

// Extensions returns the extensions of a category, in the order of extensions.txt.
func (v *Version) Extensions(category string) []Extension {
	return v.tables().extensions.byCategory[category]
}

// ExtensionOf returns the extension of a category whose Config or Route is the type config.
func (v *Version) ExtensionOf(category string, config protoreflect.FullName) (Extension, bool) {
	e, ok := v.tables().extensions.byConfig[extensionKey{category, string(config)}]
	return e, ok
}

// ExtensionNamed returns the extension of a category by its name.
func (v *Version) ExtensionNamed(category, name string) (Extension, bool) {
	e, ok := v.tables().extensions.byName[extensionKey{category, name}]
	return e, ok
}

// Categories returns the categories in which ExtensionOf finds a type, sorted.
func (v *Version) Categories(config protoreflect.FullName) []string {
	var list []string
	for category := range v.tables().extensions.byCategory {
		if _, ok := v.ExtensionOf(category, config); ok {
			list = append(list, category)
		}
	}
	slices.Sort(list)
	return list
}

// ProtocolOptionsKeys returns the keys that Envoy accepts in the protocol options of a cluster, sorted. The keys
// are names of extensions.
func (v *Version) ProtocolOptionsKeys() []string { return v.tables().optionsKeys }

func (t extensionTable) protocolOptionsKeys() (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(xds.ProtocolOptions)) {
		_, upstream := t.byName[extensionKey{"envoy.upstream_options", key}]
		_, filter := t.byName[extensionKey{"envoy.filters.network", key}]
		if upstream || filter {
			keys = append(keys, key)
		}
	}
	return keys
}
