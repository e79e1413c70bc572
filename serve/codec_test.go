package serve

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestCodecShares checks that the codec doesn't copy resources that are already encoded, and that a client
// decodes them like other resources.
func TestCodecShares(t *testing.T) {
	resource := &anypb.Any{TypeUrl: "type.googleapis.com/a", Value: []byte("b")}
	body, err := proto.Marshal(resource)
	if err != nil {
		t.Fatal(err)
	}
	shared := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), body)
	m := &discoveryv3.DiscoveryResponse{VersionInfo: "v1", TypeUrl: "type.googleapis.com/a", Nonce: "1"}
	want := proto.CloneOf(m)
	want.Resources = []*anypb.Any{resource}
	m.ProtoReflect().SetUnknown(shared)
	for range 2 { // Marshal leaves the message unchanged
		bytes, err := newCodec().Marshal(newOutgoing(m, nil))
		if err != nil {
			t.Fatal(err)
		}
		if last := bytes[len(bytes)-1].ReadOnlyData(); &last[0] != &shared[0] {
			t.Error("the bytes are a copy")
		}
		got := new(discoveryv3.DiscoveryResponse)
		if err := newCodec().Unmarshal(bytes, got); err != nil || !proto.Equal(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
		bytes.Free()
	}
	if _, err := newCodec().Marshal("no message"); err == nil {
		t.Error("what is no message is marshalled")
	}
}
