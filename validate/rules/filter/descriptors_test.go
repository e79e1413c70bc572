package filter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/sourcecontextpb"
	"google.golang.org/protobuf/types/known/typepb"

	"xdspub/xds"
)

// TestReadDescriptors: readDescriptors accepts a damaged descriptor set if and only if the library accepts it.
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

// TestDescriptorBomb: two million messages, or eight million imports, of two bytes each take little memory.
func TestDescriptorBomb(t *testing.T) {
	for name, file := range map[string][]byte{
		"messages": bytes.Repeat([]byte{4<<3 | 2, 0}, 2<<20),
		"imports":  bytes.Repeat([]byte{3<<3 | 2, 0}, 8<<20),
	} {
		set := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), file)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := readDescriptors(set, true); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if grown := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && grown > 64<<20 {
			t.Errorf("%s: the heap has grown by %d MiB", name, grown>>20)
		}
	}
}

// TestImports: a set with a cycle of imports is complete. A set is incomplete if a file imports a file that is not
// in the set.
func TestImports(t *testing.T) {
	a := &descriptorpb.FileDescriptorProto{Name: proto.String("a"), Dependency: []string{"b"}}
	b := &descriptorpb.FileDescriptorProto{Name: proto.String("b"), Dependency: []string{"b", "a"}}
	for want, files := range map[string][]*descriptorpb.FileDescriptorProto{
		"": {a, b, a},
		"the descriptor set lacks b, which a imports": {a},
	} {
		binary, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readDescriptors(binary, true); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := readDescriptors(binary, false); err != nil {
			t.Error(err)
		}
	}
}

// TestManyServices: a filter names 10,000 services that its set of 300,000 services lacks. The names of the set are
// sorted once; if they were sorted for each service, the test would not end.
func TestManyServices(t *testing.T) {
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{}}}
	for i := range 300_000 {
		set.File[0].Service = append(set.File[0].Service, &descriptorpb.ServiceDescriptorProto{Name: proto.String(fmt.Sprint(i))})
	}
	binary, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	filter := &transcoderv3.GrpcJsonTranscoder{
		DescriptorSet: &transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin{ProtoDescriptorBin: binary},
		Services:      slices.Repeat([]string{"absent"}, 10_000),
	}
	findings := 0
	checkTranscoder(filter, func(xds.Path, string, string) { findings++ })
	if findings != 10_000 {
		t.Errorf("%d findings", findings)
	}
}
