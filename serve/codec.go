package serve

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// codec writes messages as the library does, but for a response whose resources the cache has given
// as bytes: the library would copy these for each stream, and keep the copy until the client has
// taken it in. A thousand clients that ask for all clusters at once share them instead.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal returns the bytes of a message. Those of its unknown fields, which the cache fills, are
// not copied: nobody may change them.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(protoreflect.ProtoMessage)
	if !ok || len(m.ProtoReflect().GetUnknown()) == 0 {
		return c.CodecV2.Marshal(v)
	}
	known := m.ProtoReflect().New()
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		known.Set(field, value)
		return true
	})
	bytes, err := c.CodecV2.Marshal(known.Interface())
	return append(bytes, mem.SliceBuffer(m.ProtoReflect().GetUnknown())), err
}
