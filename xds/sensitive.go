package xds

import (
	"sync"

	udpaannotations "github.com/cncf/xds/go/udpa/annotations"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// HoldsSecret tells whether m carries secret content: a field that the API marks
// as sensitive is set, wherever it stands, also a key inline in a listener. A
// DataSource that only names a file or variable is no secret content.
func HoldsSecret(m proto.Message) bool {
	found := false
	Walk(m, func(n *Node) {
		if found {
			return
		}
		r := n.Message.ProtoReflect()
		for _, fd := range sensitiveFields(r.Descriptor()) {
			if !r.Has(fd) {
				continue
			}
			if fd.Message() == nil || fd.IsMap() || fd.IsList() {
				found = true
				continue
			}
			source, ok := r.Get(fd).Message().Interface().(*corev3.DataSource)
			if !ok || source.GetInlineBytes() != nil || source.GetInlineString() != "" {
				found = true
			}
		}
	})
	return found
}

func sensitiveFields(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := sensitiveOf.Load(md); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	var fields []protoreflect.FieldDescriptor
	for i := range md.Fields().Len() {
		if fd := md.Fields().Get(i); proto.GetExtension(fd.Options(), udpaannotations.E_Sensitive).(bool) {
			fields = append(fields, fd)
		}
	}
	sensitiveOf.Store(md, fields)
	return fields
}

var sensitiveOf sync.Map // protoreflect.MessageDescriptor → []protoreflect.FieldDescriptor

// SensitiveFieldName tells whether any message of the API has a sensitive field
// of that name, in its proto or JSON form. It is for text that could not be
// decoded, where no descriptor is at hand.
func SensitiveFieldName(name string) bool { return sensitiveNames()[name] }

var sensitiveNames = sync.OnceValue(func() map[string]bool {
	names := make(map[string]bool)
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		for _, fd := range sensitiveFields(mt.Descriptor()) {
			names[string(fd.Name())], names[fd.JSONName()] = true, true
		}
		return true
	})
	return names
})
