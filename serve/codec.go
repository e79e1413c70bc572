package serve

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/serve/memory"
)

// codec writes messages as the library does, but for a response whose resources the cache has given
// as bytes: the library would copy these for each stream, and keep the copy until the client has
// taken it in. A thousand clients that ask for all clusters at once share them instead. What else a message holds, the account
// of its stream holds.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal returns the bytes of a message. Those of its unknown fields, which the cache fills, are
// not copied: nobody may change them.
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

// own returns a message without the bytes that streams share, and these bytes.
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

// Unmarshal decodes a message.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if in, ok := v.(*incoming); ok {
		return in.decode(buffer.ReadOnlyData())
	}
	m := v.(pb.Message)
	if held := memory.Decoded(buffer.ReadOnlyData(), m.ProtoReflect().Descriptor()); held > largestCall {
		return status.Errorf(codes.ResourceExhausted, "a request that holds %d bytes once it is decoded: %d are allowed", held, largestCall)
	}
	return pb.Unmarshal(buffer.ReadOnlyData(), m)
}
