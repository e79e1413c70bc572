package filter

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/sourcecontextpb"
	"google.golang.org/protobuf/types/known/typepb"
)

// TestReadDescriptors: changed bytes of a descriptor set can be parsed if the library can parse them.
func TestReadDescriptors(t *testing.T) {
	whole := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(typepb.File_google_protobuf_type_proto),
		protodesc.ToFileDescriptorProto(sourcecontextpb.File_google_protobuf_source_context_proto),
		protodesc.ToFileDescriptorProto(apipb.File_google_protobuf_api_proto),
	}}
	whole.File[0].SourceCodeInfo = &descriptorpb.SourceCodeInfo{Location: []*descriptorpb.SourceCodeInfo_Location{{Path: []int32{4, 300}, Span: []int32{1, 2, 3}}}}
	whole.File[1].Options.UninterpretedOption = []*descriptorpb.UninterpretedOption{{Name: []*descriptorpb.UninterpretedOption_NamePart{{NamePart: proto.String("a"), IsExtension: proto.Bool(true)}}}}
	binary, err := proto.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if set, err := readDescriptors(binary, false); err != nil || !set.messages["google.protobuf.Method"]["request_type_url"] {
		t.Fatalf("%v, %v", set, err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 3000 {
		changed := slices.Clone(binary)
		for range 1 + random.IntN(2) {
			changed[random.IntN(len(changed))] = byte(random.IntN(256))
		}
		changed = changed[:len(changed)-random.IntN(2)*random.IntN(len(changed))]
		want := proto.Unmarshal(changed, new(descriptorpb.FileDescriptorSet))
		if _, err := readDescriptors(changed, false); (err == nil) != (want == nil) {
			t.Fatalf("%v, and the library says %v: %x", err, want, changed)
		} else if err == nil {
			taken++
		}
	}
	if taken < 100 {
		t.Errorf("only %d sets can be parsed", taken)
	}
}

// TestDescriptorBomb: two million messages of two bytes take no memory.
func TestDescriptorBomb(t *testing.T) {
	messages := bytes.Repeat([]byte{4<<3 | 2, 0}, 2<<20)
	set := append([]byte{1<<3 | 2, 0x80, 0x80, 0x80, 0x02}, messages...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readDescriptors(set, false); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && grown > 64<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
}
