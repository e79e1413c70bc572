package xds

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"google.golang.org/protobuf/proto"
)

// Marshal returns the canonical form of a message: the binary form that equal messages share. Fields are in
// order, maps are sorted, and the payload of every Any is in canonical form too, whatever its bytes in the
// source.
func Marshal(m proto.Message) ([]byte, error) {
	var api *Registry
	return api.Marshal(m)
}

// Marshal is the function Marshal for messages whose payloads may be of the user's own types.
func (g *Registry) Marshal(m proto.Message) ([]byte, error) {
	if Contains(m, isAny) {
		m = proto.Clone(m)
		// A TypedStruct stays a TypedStruct: its message would differ on the wire.
		w := walker{registry: g, visit: func(n *Node) bool { return n.Name() != "google.protobuf.Any" && n.payload() }, shallow: true}
		w.walk(&Node{Message: m})
	}
	return marshalPacked(m)
}

// marshalPacked is Marshal for a message whose payloads are in canonical form already.
func marshalPacked(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// payload reports whether the node stands directly in an Any.
func (n *Node) payload() bool { return n.Parent != nil && n.field == nil }

// Version returns the version_info of a list of resources in canonical form (Marshal). The version is a hash: equal
// lists have the same version on each machine. A version starts with a letter, since Envoy reads a bare number in
// YAML as a number.
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
