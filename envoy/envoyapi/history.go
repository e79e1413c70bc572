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

// The API before v3. The descriptors have the v2 name of each message, and the names of removed fields, but no
// replacements of these fields. removed-fields.txt has the replacements.

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

// Removed returns the replacement of a field that a message no longer has; empty if the message never had such a
// field.
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

// Successor returns the v3 message of a v2 message. ok is false if there is none.
func Successor(old protoreflect.FullName) (name protoreflect.FullName, ok bool) {
	name, ok = successors()[old]
	return name, ok
}
