package serve

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/internal/decoded"
)

// codec encodes messages as the library does, except for a response whose resources the cache has encoded.
// The library would copy these bytes for each stream, and keep the copy until the client has read it. codec
// shares the bytes instead, between a thousand clients that subscribe to all clusters at once. The account of
// the connection holds the other bytes of a response, if they are more than smallest. The account of the
// stream holds a received message.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal encodes a message. Marshal doesn't copy the message's unknown fields, into which the cache puts
// encoded resources. Callers must not change these bytes.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	out, ok := v.(*outgoing)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	buffer, err := out.encode()
	if err != nil {
		return nil, err
	}
	if len(out.shared) == 0 {
		return mem.BufferSlice{buffer}, nil
	}
	return mem.BufferSlice{buffer, mem.SliceBuffer(out.shared)}, nil
}

// own returns a message without its unknown fields, and the unknown fields, which streams share.
func own(m pb.Message) (own pb.Message, shared []byte) {
	is := m.ProtoReflect()
	if shared = is.GetUnknown(); len(shared) == 0 {
		return m, nil
	}
	known := is.New()
	is.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		known.Set(field, value)
		return true
	})
	return known.Interface(), shared
}

// Unmarshal decodes a message. Unmarshal refuses a message of a unary call that would hold more than
// largestCall bytes.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if in, ok := v.(*incoming); ok {
		return in.decode(buffer.ReadOnlyData())
	}
	m := v.(pb.Message)
	if held := decoded.Size(buffer.ReadOnlyData(), m.ProtoReflect().Descriptor()); held > largestCall {
		return status.Errorf(codes.ResourceExhausted, "the request would hold %d bytes of memory after decoding, and %d are allowed: send a smaller request", held, largestCall)
	}
	return pb.Unmarshal(buffer.ReadOnlyData(), m)
}
