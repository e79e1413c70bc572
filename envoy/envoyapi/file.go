package envoyapi

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// FileFields returns the fields of a message, except data sources, that name a file or a directory that Envoy opens
// when it loads the resource.
func (v *Version) FileFields(message protoreflect.FullName) []protoreflect.Name {
	return v.tables().fileFields[message]
}

// NamingFiles returns the messages that have FileFields, sorted.
func (v *Version) NamingFiles() []protoreflect.FullName {
	return slices.Sorted(maps.Keys(v.tables().fileFields))
}

// DoesWithoutFile reports whether the file of a data source in a field may be missing: Envoy then accepts the
// message around the data source, and works without the data.
func (v *Version) DoesWithoutFile(field protoreflect.FullName) bool {
	return v.tables().optionalFiles[field]
}

// fields returns the fields in a file with a field in each row, by their messages.
func (r *reader) fields(file string) map[protoreflect.FullName][]protoreflect.Name {
	fields := make(map[protoreflect.FullName][]protoreflect.Name)
	for _, words := range r.rows(file, 1) {
		field := protoreflect.FullName(words[0])
		fields[field.Parent()] = append(fields[field.Parent()], field.Name())
	}
	return fields
}
