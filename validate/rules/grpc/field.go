package grpc

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

// reject reports the reason why gRPC rejects a resource.
type reject func(check validate.CheckName, path xds.Path, what, help string)

// isSet reports whether a field of a message is set.
func isSet(m protoreflect.ProtoMessage, field protoreflect.Name) bool {
	return m.ProtoReflect().Has(m.ProtoReflect().Descriptor().Fields().ByName(field))
}

// isEmpty reports whether a string field of a message is empty.
func isEmpty(m protoreflect.ProtoMessage, field string) bool {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(field))).String() == ""
}

// fieldOf returns the name of the field that is set in a oneof; "" if none is set.
func fieldOf(m protoreflect.Message, oneof protoreflect.Name) string {
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName(oneof)); f != nil {
		return string(f.Name())
	}
	return ""
}
