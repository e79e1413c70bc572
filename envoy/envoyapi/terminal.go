package envoyapi

import "google.golang.org/protobuf/reflect/protoreflect"

// IsTerminal reports whether a filter ends its chain. config is the type of its configuration.
func (v *Version) IsTerminal(category string, config protoreflect.FullName) bool {
	return v.tables().terminal[extensionKey{category, string(config)}]
}

func (r *reader) terminalFilters(file string) map[extensionKey]bool {
	set := make(map[extensionKey]bool)
	for _, words := range r.rows(file, 2) {
		set[extensionKey{words[0], words[1]}] = true
	}
	return set
}
