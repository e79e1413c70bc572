package plainjson

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// form is how the messages of a type are written in JSON.
type form int

const (
	other     form = iota // by protojson alone
	object                // its fields as members
	wrapper               // its value
	duration              // a text
	structure             // the entries of its map
	anyValue              // any value
	list                  // its elements
	payload               // an Any
)

// shape is what is known about the messages of a type.
type shape struct {
	md protoreflect.MessageDescriptor

	once    sync.Once
	form    form
	isEmpty bool              // a google.protobuf.Empty
	fields  map[string]*field // by both names that JSON may have; nil if only protojson reads the field
	value   *field            // the only field of a wrapper, a Struct or a ListValue
}

// field is a field of a message, or the value in an entry of a map.
type field struct {
	tag           uint64
	kind          protoreflect.Kind
	index, oneof  int // in the message; oneof is -1 for none
	isList, isMap bool
	takesNull     bool
	of            *shape           // of the messages in it; nil for others
	values        map[string]int32 // of an enum
	value         *field           // in the entries of a map
}

// shapes has the shapes so far: protoreflect.MessageDescriptor → *shape.
var shapes sync.Map

func shapeOf(md protoreflect.MessageDescriptor) *shape {
	if known, ok := shapes.Load(md); ok {
		return known.(*shape)
	}
	known, _ := shapes.LoadOrStore(md, &shape{md: md})
	return known.(*shape)
}

// made returns the shape with its fields.
func (s *shape) made() *shape {
	s.once.Do(s.make)
	return s
}

// most is how many fields a message may have.
const most = 128

func (s *shape) make() {
	fields := s.md.Fields()
	if s.md.Syntax() != protoreflect.Proto3 || fields.Len() > most || s.md.Oneofs().Len() > 64 {
		return
	}
	s.fields = make(map[string]*field, 2*fields.Len())
	made := make([]*field, fields.Len())
	for i := range made {
		made[i] = fieldOf(fields.Get(i))
		s.fields[fields.Get(i).TextName()] = made[i]
	}
	for i := range made { // these count first
		s.fields[fields.Get(i).JSONName()] = made[i]
	}
	s.form = formOf(s.md)
	switch s.form {
	case wrapper:
		s.value = s.fields["value"]
	case structure:
		s.value = s.fields["fields"]
	case list:
		s.value = s.fields["values"]
	}
	s.isEmpty = s.md.FullName() == "google.protobuf.Empty"
}

func formOf(md protoreflect.MessageDescriptor) form {
	switch md.FullName() {
	case "google.protobuf.Any":
		return payload
	case "google.protobuf.Duration":
		return duration
	case "google.protobuf.Struct":
		return structure
	case "google.protobuf.Value":
		return anyValue
	case "google.protobuf.ListValue":
		return list
	case "google.protobuf.Timestamp", "google.protobuf.FieldMask":
		return other
	case "google.protobuf.BoolValue", "google.protobuf.Int32Value", "google.protobuf.Int64Value", "google.protobuf.UInt32Value", "google.protobuf.UInt64Value",
		"google.protobuf.FloatValue", "google.protobuf.DoubleValue", "google.protobuf.StringValue", "google.protobuf.BytesValue":
		return wrapper
	}
	return object
}

// fieldOf returns what is known about a field; nil if only protojson reads it.
func fieldOf(fd protoreflect.FieldDescriptor) *field {
	f := &field{kind: fd.Kind(), index: fd.Index(), oneof: -1, isList: fd.IsList(), isMap: fd.IsMap()}
	if oneof := fd.ContainingOneof(); oneof != nil {
		f.oneof = oneof.Index()
	}
	wire := protowire.VarintType
	switch f.kind {
	case protoreflect.GroupKind:
		return nil
	case protoreflect.MessageKind:
		wire = protowire.BytesType
		if f.isMap {
			if f.value = fieldOf(fd.MapValue()); f.value == nil || fd.MapKey().Kind() != protoreflect.StringKind {
				return nil
			}
			break
		}
		f.of = shapeOf(fd.Message())
		f.takesNull = fd.Message().FullName() == "google.protobuf.Value"
	case protoreflect.StringKind, protoreflect.BytesKind:
		wire = protowire.BytesType
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		wire = protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		wire = protowire.Fixed64Type
	case protoreflect.EnumKind:
		f.takesNull = fd.Enum().FullName() == "google.protobuf.NullValue"
		f.values = make(map[string]int32)
		for i := range fd.Enum().Values().Len() {
			value := fd.Enum().Values().Get(i)
			f.values[string(value.Name())] = int32(value.Number())
		}
	}
	f.tag = protowire.EncodeTag(fd.Number(), wire)
	return f
}
