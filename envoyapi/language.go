package envoyapi

import "google.golang.org/protobuf/reflect/protoreflect"

// RetryReasons returns the words that Envoy knows in retry_on.
func (v *Version) RetryReasons() []string { return v.tables().retryReasons }

// LuaModules returns the modules that its LuaJIT brings.
func (v *Version) LuaModules() []string { return v.tables().luaModules }

// FormatFields returns the text fields of a message that Envoy reads as format strings.
func (v *Version) FormatFields(message protoreflect.FullName) []protoreflect.Name {
	return v.tables().formatFields[message]
}

// IsFormattedHeader reports whether Envoy reads the values of the headers in that field as
// format strings.
func (v *Version) IsFormattedHeader(field protoreflect.FullName) bool {
	return v.tables().formatHeaders[field]
}

// EagerGRPCServices returns the messages where Envoy makes the client of a gRPC service when it
// loads it, or crashes when it can't make it later.
func (v *Version) EagerGRPCServices() []protoreflect.FullName { return v.tables().eagerServices }
