package xds

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/diag"
)

// IsWord reports whether a word in lower case is a part of a name in the API: of a message, a field, or a value of an
// enum.
func IsWord(word string) bool { return apiWords()[word] }

var apiWords = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	add := func(name protoreflect.Name) {
		for _, p := range diag.Parts(string(name)) {
			words[p] = true
		}
	}
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		md := mt.Descriptor()
		for _, p := range diag.Parts(string(md.FullName())) {
			words[p] = true
		}
		for i := range md.Fields().Len() {
			add(md.Fields().Get(i).Name())
		}
		return true
	})
	protoregistry.GlobalTypes.RangeEnums(func(et protoreflect.EnumType) bool {
		values := et.Descriptor().Values()
		for i := range values.Len() {
			add(values.Get(i).Name())
		}
		return true
	})
	return words
})
