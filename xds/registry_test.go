package xds_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
)

var update = flag.Bool("update", false, "write the descriptor set of the example again, and fail")

// compile compiles .proto files as protoc does without --include_imports.
func compile(t testing.TB, texts map[string]string, names ...string) *descriptorpb.FileDescriptorSet {
	t.Helper()
	imports := protocompile.ResolverFunc(func(path string) (protocompile.SearchResult, error) {
		if text, ok := texts[path]; ok {
			return protocompile.SearchResult{Source: strings.NewReader(text)}, nil
		}
		fd, err := protoregistry.GlobalFiles.FindFileByPath(path)
		return protocompile.SearchResult{Desc: fd}, err
	})
	files, err := (&protocompile.Compiler{Resolver: imports}).Compile(context.Background(), names...)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, f := range files {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	return set
}

const exampleDir, exampleProto = "../examples/own-types/", "acme/v1/quota.proto"

// example returns the types of the example.
func example(t testing.TB) *descriptorpb.FileDescriptorSet {
	t.Helper()
	text, err := os.ReadFile(exampleDir + exampleProto)
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, map[string]string{exampleProto: string(text)}, exampleProto)
}

// TestExampleTypes: the descriptor set of the example is the compiled .proto file.
func TestExampleTypes(t *testing.T) {
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(example(t))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(exampleDir+"config/types.binpb", want, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Fatal("the descriptor set is written again")
	}
	is, err := os.ReadFile(exampleDir + "config/types.binpb")
	if err != nil || !bytes.Equal(is, want) {
		t.Errorf("the descriptor set is not that of the .proto file: go test ./xds -run TestExampleTypes -update (%v)", err)
	}
}

func TestNewRegistry(t *testing.T) {
	builtIn := func(path string) *descriptorpb.FileDescriptorProto {
		fd, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			t.Fatal(err)
		}
		return protodesc.ToFileDescriptorProto(fd)
	}
	of := func(files ...*descriptorpb.FileDescriptorProto) *descriptorpb.FileDescriptorSet {
		return &descriptorpb.FileDescriptorSet{File: files}
	}
	two := map[string]string{
		"a.proto": `syntax = "proto3"; package a; import "b.proto"; message A { b.B b = 1; }`,
		"b.proto": `syntax = "proto2"; package b; message B { required string name = 1; extensions 100 to 200; } extend B { optional int32 more = 100; }`,
	}
	address := builtIn("envoy/config/core/v3/address.proto")
	older, otherwise := proto.CloneOf(address), proto.CloneOf(address)
	older.MessageType = older.MessageType[:2]
	older.MessageType[0].Field = nil
	otherwise.MessageType[1].Field[0].Name = proto.String("other")
	elsewhere := proto.CloneOf(address)
	elsewhere.Name = proto.String("vendor/address.proto")
	loop := of(&descriptorpb.FileDescriptorProto{Name: proto.String("x"), Dependency: []string{"y"}}, &descriptorpb.FileDescriptorProto{Name: proto.String("y"), Dependency: []string{"x"}})
	tests := []struct {
		name string
		set  *descriptorpb.FileDescriptorSet
		want string // of the error; empty for none
	}{
		{"alone", example(t), ""},
		{"with what it imports", of(append([]*descriptorpb.FileDescriptorProto{builtIn("google/protobuf/any.proto"), address}, example(t).File...)...), ""},
		{"twice", of(append(example(t).File, example(t).File...)...), ""},
		{"out of order", compile(t, two, "a.proto", "b.proto"), ""},
		{"of an older API", of(older), ""},
		{"an import is missing", compile(t, two, "a.proto"), "a.proto imports b.proto, which is neither in the descriptor set nor built in: make the set with --include_imports"},
		{"a file that means something else", of(otherwise), "envoy/config/core/v3/address.proto is built in, but defines envoy.config.core.v3." + otherwise.MessageType[1].GetName() + ".other differently here: rename your file"},
		{"a name of the API at another place", of(elsewhere), "vendor/address.proto defines envoy.config.core.v3."},
		{"two files of one name", of(append(compile(t, two, "b.proto").File, &descriptorpb.FileDescriptorProto{Name: proto.String("b.proto")})...), "the descriptor set has b.proto twice, with different content: leave one out"},
		{"a circle", loop, "x imports itself"},
		{"a type that is missing", of(&descriptorpb.FileDescriptorProto{Name: proto.String("x"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("M"), Field: []*descriptorpb.FieldDescriptorProto{{Name: proto.String("f"), Number: proto.Int32(1), TypeName: proto.String(".N"), Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}},
		}}}), "x: "},
		{"many files", of(make([]*descriptorpb.FileDescriptorProto, 5001)...), "the descriptor set has more than 5000 files"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			switch _, err := xds.NewRegistry(tt.set); {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("the error is %v, want %s", err, tt.want)
			}
		})
	}
}

// ownCluster is a cluster with a message of an own type, which holds other messages.
const ownCluster = `{"name": "shop", "metadata": {"typedFilterMetadata": {"acme.quota": {
	"@type": "type.googleapis.com/acme.v1.Quota", "tenant": "shop",
	"limit": {"window": "1.5s"}, "byPath": {"/b": {"window": "2s"}, "/a": {"requests": 1}},
	"service": {"envoyGrpc": {"clusterName": "quota"}},
	"fallback": {"@type": "type.googleapis.com/acme.v1.Quota", "tenant": "inner"},
	"labels": {"tier": 1}
}, "acme.struct": {"@type": "type.googleapis.com/xds.type.v3.TypedStruct", "typeUrl": "type.googleapis.com/acme.v1.Quota", "value": {"tenant": "struct"}}}}}`

func ownResource(t testing.TB) *xds.Resource {
	t.Helper()
	g, err := xds.NewRegistry(example(t))
	if err != nil {
		t.Fatal(err)
	}
	m := &clusterv3.Cluster{}
	if err := (protojson.UnmarshalOptions{Resolver: g}).Unmarshal([]byte(ownCluster), m); err != nil {
		t.Fatal(err)
	}
	r := xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: "shop"}, m)
	r.Registry = g
	return r
}

// TestOwnTypesWalked: a walk enters messages of own types. The API's messages in them have their generated Go types.
func TestOwnTypesWalked(t *testing.T) {
	var paths []string
	clusters := 0
	err := ownResource(t).Walk(t.Context(), func(n *xds.Node) {
		paths = append(paths, string(n.Path()))
		switch m := n.Message.(type) {
		case *corev3.GrpcService_EnvoyGrpc:
			if clusters++; m.GetClusterName() != "quota" {
				t.Errorf("the service is %v", m)
			}
		case *durationpb.Duration, *anypb.Any:
		default:
			if name := n.Name(); strings.HasPrefix(string(name), "google.protobuf.Duration") {
				t.Errorf("%s is a %T", name, m)
			}
		}
		if n.Err != nil {
			t.Errorf("%s: %v", n.Path(), n.Err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	quota := `metadata.typed_filter_metadata["acme.quota"].`
	for _, want := range []string{quota + "limit.window", quota + `by_path["/b"].window`, quota + "service.envoy_grpc", quota + "fallback", quota + "labels", `metadata.typed_filter_metadata["acme.struct"].value`} {
		if !slices.Contains(paths, want) {
			t.Errorf("the walk has no %s: %q", want, paths)
		}
	}
	if clusters != 1 {
		t.Errorf("the service was met %d times, want once", clusters)
	}
	unknown := ownResource(t)
	unknown.Registry = nil
	failed := 0
	_ = unknown.Walk(t.Context(), func(n *xds.Node) {
		if n.Err != nil {
			failed++
		}
	})
	if failed != 2 {
		t.Errorf("without the types %d payloads can't be read, want 2", failed)
	}
}

// TestOwnTypesEdited: Edit changes messages in a message of an own type, and leaves all payloads in canonical form.
func TestOwnTypesEdited(t *testing.T) {
	r := ownResource(t)
	changed := r.Edit(func(n *xds.Node) bool {
		m, ok := n.Message.(*corev3.GrpcService_EnvoyGrpc)
		if ok {
			m.ClusterName = "other"
		}
		return ok
	})
	if !changed {
		t.Fatal("nothing was changed")
	}
	first, err := r.Canonical()
	if err != nil || !bytes.Contains(first, []byte("other")) {
		t.Fatalf("the canonical form is %q (%v)", first, err)
	}
	again := &clusterv3.Cluster{}
	if err := proto.Unmarshal(first, again); err != nil {
		t.Fatal(err)
	}
	if second, err := r.Registry.Marshal(again); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the canonical form of it is %q, want %q (%v)", second, first, err)
	}
	copied := r.With(proto.CloneOf(again))
	if copied.Registry != r.Registry || copied.Version() != r.Version() {
		t.Error("a copy has other types, or another version")
	}
}

// TestOwnTypesDamaged: a payload can't be read if it is not of its type, or lacks a required field of proto2.
func TestOwnTypesDamaged(t *testing.T) {
	g, err := xds.NewRegistry(compile(t, map[string]string{"b.proto": `syntax = "proto2"; package b; message B { required string name = 1; optional B in = 2; }`}, "b.proto"))
	if err != nil {
		t.Fatal(err)
	}
	deep := []byte{0x0a, 0x01, 'a'}
	for range 150 {
		deep = append([]byte{0x0a, 0x01, 'a', 0x12}, append(varint(len(deep)), deep...)...)
	}
	for name, value := range map[string][]byte{"damaged": {0x0a, 0x05}, "required": {}, "deep": deep} {
		m := &clusterv3.Cluster{Metadata: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"b": {TypeUrl: xds.URLPrefix + "b.B", Value: value}}}}
		failed := false
		g.Walk(m, func(n *xds.Node) { failed = failed || n.Err != nil })
		if !failed {
			t.Errorf("%s: it can be read", name)
		}
	}
}

func varint(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// TestOwnTypesSensitive: a field of an own type that is marked as sensitive holds a secret.
func TestOwnTypesSensitive(t *testing.T) {
	r := ownResource(t)
	if r.HoldsSecret() {
		t.Error("the resource holds a secret")
	}
	if !r.Registry.SensitiveFieldName("api_key") || !r.Registry.SensitiveFieldName("apiKey") || r.Registry.SensitiveFieldName("tenant") {
		t.Error("api_key is to be the only sensitive field")
	}
	m := proto.CloneOf(r.Message().(*clusterv3.Cluster))
	a := m.Metadata.TypedFilterMetadata["acme.quota"]
	mt, err := r.Registry.FindMessageByName("acme.v1.Quota")
	if err != nil {
		t.Fatal(err)
	}
	quota := mt.New()
	quota.Set(mt.Descriptor().Fields().ByName("api_key"), protoreflect.ValueOfString("k"))
	if err := anypb.MarshalFrom(a, quota.Interface(), proto.MarshalOptions{}); err != nil {
		t.Fatal(err)
	}
	if !r.With(m).HoldsSecret() {
		t.Error("the resource holds no secret")
	}
}
