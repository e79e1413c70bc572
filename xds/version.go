package xds

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"google.golang.org/protobuf/proto"
)

// Marshal returns the binary form of a message that equal messages share: fields in
// order, maps sorted, and every Any payload marshalled again in the same way,
// because payloads keep the bytes that their source format gave them.
func Marshal(m proto.Message) ([]byte, error) {
	if Contains(m, isAny) {
		m = proto.Clone(m)
		// A TypedStruct stays one: what it stands for is another message on the wire.
		w := walker{visit: func(n *Node) bool { return n.Name() != "google.protobuf.Any" && n.payload() }, shallow: true}
		w.walk(&Node{Message: m})
	}
	return marshalPacked(m)
}

// marshalPacked is Marshal where all payloads are in its form already.
func marshalPacked(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// payload reports whether the node stands directly in an Any.
func (n *Node) payload() bool { return n.Parent != nil && n.field == nil }

// Version returns a version_info for a list of resources in the form of Marshal: a hash of the
// content, so that equal content has one version on any machine. It starts with a letter:
// Envoy reads a bare number in YAML as no string.
func Version(resources [][]byte) string {
	h := sha256.New()
	var size [8]byte
	for _, b := range resources {
		binary.LittleEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	return "v" + hex.EncodeToString(h.Sum(nil)[:8])
}
