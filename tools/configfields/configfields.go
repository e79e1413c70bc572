// Package configfields goes through the fields of the API, for the tests that a table of
// fields is complete.
package configfields

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Each calls f for the fields of all messages that a configuration can hold. Each skips Envoy's reports and
// the messages of services.
func Each(f func(protoreflect.FieldDescriptor)) {
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		name := string(mt.Descriptor().FullName())
		has := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		switch {
		case has("envoy.data.dns."), has("xds.core."): // DNS tables are configuration
		case !has("envoy."), has("envoy.admin."), has("envoy.service."), has("envoy.data."):
			return true
		}
		for i := range mt.Descriptor().Fields().Len() {
			f(mt.Descriptor().Fields().Get(i))
		}
		return true
	})
}
