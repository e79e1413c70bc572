package rules_test

import (
	"context"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// TestOwnTypesAround: a message of the API may be in a message of a user's type, and so in a place where the API
// never has it. No rule crashes because of the messages around it.
func TestOwnTypesAround(t *testing.T) {
	var resources []*xds.Resource
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		md := mt.Descriptor()
		if md.IsMapEntry() || proto.CheckInitialized(mt.New().Interface()) != nil || md.FullName() == "google.protobuf.Any" || md.ParentFile().Package() == "google.protobuf" {
			return true
		}
		holder := holderOf(t, md)
		held := filled(mt.New(), 3)
		m := dynamicpb.NewMessage(holder.Descriptor())
		m.Set(holder.Descriptor().Fields().ByName("one"), protoreflect.ValueOfMessage(held))
		value, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m)
		if err != nil {
			t.Fatalf("%s: %v", md.FullName(), err)
		}
		config := &anypb.Any{TypeUrl: xds.URLPrefix + "own.Holder", Value: value}
		name := string(md.FullName())
		r := xds.ResourceOf(xds.Key{Type: xds.Listener, Name: name}, &listenerv3.Listener{
			Name: name, Address: &corev3.Address{},
			FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{Name: "own", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config}}}}},
		})
		r.Registry, r.Origin = holder.registry, nowhere{}
		resources = append(resources, r)
		return true
	})
	if len(resources) < 1000 {
		t.Fatalf("there are only %d messages", len(resources))
	}
	v := envoyapi.Latest.With(resources[0].Registry)
	for _, profile := range validate.Profiles {
		validate.Run(context.Background(), xds.NewSnapshot(resources), rules.All, validate.Options{Envoy: v, Profiles: []validate.Profile{profile}})
	}
}

// nowhere is an Origin without places.
type nowhere struct{}

func (nowhere) Range(xds.Path) (r diag.Range)      { return r }
func (nowhere) InWrapper(xds.Path) (at diag.Range) { return }
func (nowhere) Constraints(bool) (at diag.Range)   { return }

func (nowhere) Correct(xds.Path, diag.Correction) (edit diag.Edit, ok bool) { return edit, false }

func (nowhere) Shows(xds.Path) bool { return false }

// holder is a user's type with a field of another type.
type holder struct {
	protoreflect.MessageType
	registry *xds.Registry
}

func holderOf(t *testing.T, md protoreflect.MessageDescriptor) holder {
	t.Helper()
	g, err := xds.NewRegistry(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("own.proto"), Package: proto.String("own"), Syntax: proto.String("proto3"), Dependency: []string{md.ParentFile().Path()},
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Holder"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("one"), Number: proto.Int32(1), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String("." + string(md.FullName())),
		}}}},
	}}})
	if err != nil {
		t.Fatalf("%s: %v", md.FullName(), err)
	}
	mt, err := g.FindMessageByName("own.Holder")
	if err != nil {
		t.Fatal(err)
	}
	return holder{mt, g}
}

// filled sets the fields of a message, and of the messages in it down to a depth.
func filled(m protoreflect.Message, depth int) protoreflect.Message {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch fd := fields.Get(i); {
		case fd.IsMap(), fd.ContainingOneof() != nil && m.WhichOneof(fd.ContainingOneof()) != nil:
		case fd.Message() == nil && fd.Kind() == protoreflect.StringKind && !fd.IsList():
			m.Set(fd, protoreflect.ValueOfString("own"))
		case fd.Message() == nil, depth == 0:
		case fd.IsList():
			m.Mutable(fd).List().Append(protoreflect.ValueOfMessage(filled(m.NewField(fd).List().NewElement().Message(), depth-1)))
		default:
			m.Set(fd, protoreflect.ValueOfMessage(filled(m.NewField(fd).Message(), depth-1)))
		}
	}
	return m
}
