package xds

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Extension is one that the Envoy 1.40.0 binary holds.
type Extension struct {
	// Category is the kind of place that it fits, such as envoy.filters.http.
	Category string
	Name     string
	// Config is the type of its configuration; empty where Envoy finds it by its
	// name only.
	Config protoreflect.FullName
	// Route is the type of an HTTP filter's configuration for a route where that
	// is another one, NoRoute says that it takes none there.
	Route   protoreflect.FullName
	NoRoute bool
}

//go:embed extensions.txt
var extensionsText string

var extensions = sync.OnceValue(func() map[string][]Extension {
	byCategory := make(map[string][]Extension)
	for line := range strings.Lines(extensionsText) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		e := Extension{Category: fields[0], Name: fields[1]}
		for i, value := range fields[2:] {
			switch {
			case value == "-":
				e.NoRoute = true
			case i == 0:
				e.Config = protoreflect.FullName(value)
			default:
				e.Route = protoreflect.FullName(value)
			}
		}
		byCategory[e.Category] = append(byCategory[e.Category], e)
	}
	return byCategory
})

// Extensions are those of a category, sorted by name.
func Extensions(category string) []Extension { return extensions()[category] }

// ExtensionOf is the extension of a category that a configuration is for.
func ExtensionOf(category string, config protoreflect.FullName) (Extension, bool) {
	return find(category, func(e Extension) bool { return config != "" && (e.Config == config || e.Route == config) })
}

// ExtensionNamed is the extension of a category by its name.
func ExtensionNamed(category, name string) (Extension, bool) {
	return find(category, func(e Extension) bool { return e.Name == name })
}

func find(category string, match func(Extension) bool) (Extension, bool) {
	list := Extensions(category)
	if i := slices.IndexFunc(list, match); i >= 0 {
		return list[i], true
	}
	return Extension{}, false
}

// Categories are the kinds of extensions that take a configuration, sorted.
func Categories(config protoreflect.FullName) []string {
	var list []string
	for category := range extensions() {
		if _, ok := ExtensionOf(category, config); ok {
			list = append(list, category)
		}
	}
	slices.Sort(list)
	return list
}
