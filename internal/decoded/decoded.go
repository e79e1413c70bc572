// Package decoded bounds the memory of decoded messages.
package decoded

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Upper bounds for the memory of the parts of a decoded message, in bytes.
const (
	heldByField  = 16
	heldByString = 48
	heldBySub    = 256 // for a message
	// deepest is the depth of nested messages that size parses. size counts each byte of a deeper
	// message as a message.
	deepest = 50
)

// Size returns an upper bound in bytes for the memory of a message of a type after decoding, including
// data, its wire format. A message of 4 MB can contain two million messages.
func Size(data []byte, of protoreflect.MessageDescriptor) int { return size(data, of, 0) }

func size(data []byte, of protoreflect.MessageDescriptor, depth int) (bytes int) {
	bytes = heldBySub + len(data)
	if depth > deepest {
		return bytes * heldBySub
	}
	for len(data) > 0 {
		number, typ, n := protowire.ConsumeField(data)
		if n < 0 {
			return bytes // malformed
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
			bytes += size(value, is.Message(), depth+1)
		case is.Kind() == protoreflect.StringKind || is.Kind() == protoreflect.BytesKind:
			bytes += heldByString + n
		default: // packed numbers
			bytes += heldByField * n
		}
	}
	return bytes
}
