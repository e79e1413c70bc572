package render

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// Binary is for large snapshots: nothing else is read as fast. Nor is anything as
// silent when it is damaged, so whatever is written is read back.
var Binary = &Format{Name: "pb", message: xds.Marshal, resource: resourceBinary, response: responseBinary}

// Field numbers of DiscoveryResponse and of Any.
const (
	responseVersion   = 1
	responseResources = 2
	responseTypeURL   = 4
	anyTypeURL        = 1
	anyValue          = 2
)

func resourceBinary(m proto.Message, canonical []byte) ([]byte, error) {
	return canonical, readsBack(m, canonical, canonical, proto.Unmarshal)
}

func responseBinary(version, typeURL string, resources [][]byte) ([]byte, error) {
	field := func(b []byte, n protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), value)
	}
	data := make([]byte, 0, sizeOf(resources))
	data = field(data, responseVersion, version)
	url := field(nil, anyTypeURL, typeURL)
	for _, r := range resources {
		size := len(url) + protowire.SizeTag(anyValue) + protowire.SizeBytes(len(r))
		data = protowire.AppendTag(data, responseResources, protowire.BytesType)
		data = append(protowire.AppendVarint(data, uint64(size)), url...)
		data = protowire.AppendBytes(protowire.AppendTag(data, anyValue, protowire.BytesType), r)
	}
	data = field(data, responseTypeURL, typeURL)
	return data, holds(data, version, typeURL, resources)
}
