package envoyapi

import (
	_ "embed"
	"strings"
	"sync"

	udpaannotations "github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// The API before v3. The descriptors name the v2 message of each message, but only the names of removed
// fields.

//go:embed removed-fields.txt
var removedFields string

// removed maps the full name of a removed field to its replacement.
var removed = sync.OnceValue(func() map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(removedFields) {
		if name, successor, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			fields[name] = successor
		}
	}
	return fields
})

// Removed returns the replacement of a field that a message no longer has; empty for any other name.
func Removed(message protoreflect.FullName, field string) string {
	return removed()[string(message)+"."+field]
}

// successors maps v2 messages to their v3 messages.
var successors = sync.OnceValue(func() map[protoreflect.FullName]protoreflect.FullName {
	of := make(map[protoreflect.FullName]protoreflect.FullName)
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		md := mt.Descriptor()
		if v, ok := proto.GetExtension(md.Options(), udpaannotations.E_Versioning).(*udpaannotations.VersioningAnnotation); ok &&
			v.GetPreviousMessageType() != "" {
			of[protoreflect.FullName(v.GetPreviousMessageType())] = md.FullName()
		}
		return true
	})
	return of
})

// Successor returns the message of v3 that took the place of one of v2, if it has one.
func Successor(old protoreflect.FullName) (protoreflect.FullName, bool) {
	name, ok := successors()[old]
	return name, ok
}
