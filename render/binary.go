package render

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// Binary is the format for large snapshots: Envoy reads no other as fast. Since Envoy also takes
// a damaged file without an error, all that is written is read back.
var Binary = &Format{Name: "pb", message: messageBinary, resource: resourceBinary, response: responseBinary}

// Field numbers of DiscoveryResponse and of Any.
const (
	responseVersion   = 1
	responseResources = 2
	responseTypeURL   = 4
	anyTypeURL        = 1
	anyValue          = 2
)

func messageBinary(g *xds.Registry, m proto.Message) ([]byte, error) { return g.Marshal(m) }

func resourceBinary(_ *xds.Registry, m proto.Message, canonical []byte) ([]byte, error) {
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

// holds checks that a DiscoveryResponse in binary form holds its inputs. holds reads the fields in place and
// copies nothing, because an edit of one resource writes the response of all resources.
func holds(data []byte, version, typeURL string, resources [][]byte) error {
	same := true
	next := func(b []byte, n protowire.Number) (value, rest []byte) {
		number, kind, tag := protowire.ConsumeTag(b)
		if tag < 0 || number != n || kind != protowire.BytesType {
			same = false
			return nil, nil
		}
		value, size := protowire.ConsumeBytes(b[tag:])
		if size < 0 {
			same = false
			return nil, nil
		}
		return value, b[tag+size:]
	}
	is, rest := next(data, responseVersion)
	same = same && string(is) == version
	for _, r := range resources {
		is, rest = next(rest, responseResources)
		url, behind := next(is, anyTypeURL)
		value, behind := next(behind, anyValue)
		same = same && string(url) == typeURL && bytes.Equal(value, r) && len(behind) == 0
	}
	is, rest = next(rest, responseTypeURL)
	if !same || string(is) != typeURL || len(rest) > 0 {
		return errors.New("the response reads back as something else")
	}
	return nil
}
