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

// What the API was before v3. The descriptors name the v2 message that each message was; of
// the fields that are gone they keep the names alone.

//go:embed removed-fields.txt
var removedFields string

// removed has what took the place of fields that the API had once, by their full names.
var removed = sync.OnceValue(func() map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(removedFields) {
		if name, successor, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			fields[name] = successor
		}
	}
	return fields
})

// Removed returns what to write instead of a field that a message no longer has. It is empty
// for any other name.
func Removed(message protoreflect.FullName, field string) string {
	return removed()[string(message)+"."+field]
}

// successors are the v3 messages by the v2 messages that they were.
var successors = sync.OnceValue(func() map[protoreflect.FullName]protoreflect.FullName {
	of := make(map[protoreflect.FullName]protoreflect.FullName)
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		md := mt.Descriptor()
		if v, ok := proto.GetExtension(md.Options(), udpaannotations.E_Versioning).(*udpaannotations.VersioningAnnotation); ok && v.GetPreviousMessageType() != "" {
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
