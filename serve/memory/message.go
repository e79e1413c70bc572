package memory

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The bytes that the parts of a decoded message hold at most.
const (
	heldByField  = 16
	heldByString = 48
	heldBySub    = 256
	// deepest is the depth down to which decoded looks at messages in messages. Below that depth, decoded counts each byte as a
	// message.
	deepest = 50
)

// Decoded returns the number of bytes that a message of a type holds at most once the message is decoded, its wire format
// included. A message of 4 MB can have two million messages in it.
func Decoded(data []byte, of protoreflect.MessageDescriptor) int { return decoded(data, of, 0) }

func decoded(data []byte, of protoreflect.MessageDescriptor, depth int) (bytes int) {
	bytes = heldBySub + len(data)
	if depth > deepest {
		return bytes * heldBySub
	}
	for len(data) > 0 {
		number, typ, n := protowire.ConsumeField(data)
		if n < 0 {
			return bytes // it does not decode
		}
		field := data[:n]
		data = data[n:]
		is := of.Fields().ByNumber(number)
		switch {
		case is == nil:
		case typ != protowire.BytesType:
			bytes += heldByField
		case is.Kind() == protoreflect.MessageKind:
			_, _, tag := protowire.ConsumeTag(field)
			value, _ := protowire.ConsumeBytes(field[tag:])
			bytes += decoded(value, is.Message(), depth+1)
		case is.Kind() == protoreflect.StringKind || is.Kind() == protoreflect.BytesKind:
			bytes += heldByString + n
		default: // packed numbers
			bytes += heldByField * n
		}
	}
	return bytes
}
