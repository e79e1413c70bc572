package xds

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// shape caches the facts about a message type that a walk needs at each message. So a walk over ten thousand
// clusters looks up no field by name, and seldom needs protoreflect.
type shape struct {
	md     protoreflect.MessageDescriptor
	search *Search // the slots are the fields that the Search enters

	once      sync.Once // of made, which sets the fields below
	slots     []slot
	sensitive []protoreflect.FieldDescriptor
	names     []naming
}

// slot is a field that holds messages.
type slot struct {
	fd protoreflect.FieldDescriptor
	of *shape // of the messages in the field
	// at is the index of the field in the Go struct, or -1 if a walk has to read the field by protoreflect. The
	// index of a member of a oneof is the index of the oneof.
	at int
	// member is the Go type of the oneof's value while this member is set; nil if the field is in no oneof.
	member reflect.Type
	list   bool
}

// naming is a field of the catalogue.
type naming struct {
	*Reference
	fd protoreflect.FieldDescriptor
}

// shapeOf returns the shape of the messages of a type, without its slots.
func (s *Search) shapeOf(md protoreflect.MessageDescriptor) *shape {
	if known, ok := s.shapes.Load(md); ok {
		return known.(*shape)
	}
	known, _ := s.shapes.LoadOrStore(md, &shape{md: md, search: s})
	return known.(*shape)
}

// shapeIn returns the shape of the node's message, with its slots. A root without a shape gets the shape for a
// whole walk.
func (n *Node) shapeIn() *shape {
	if n.shape == nil {
		n.shape = all.shapeOf(n.Message.ProtoReflect().Descriptor())
	}
	return n.shape.made(n.Message)
}

// made fills the shape at the first call, and returns it. m is any message of the shape's type.
func (s *shape) made(m proto.Message) *shape {
	s.once.Do(func() {
		layout := layoutOf(m)
		for _, fd := range s.search.fields(s.md) {
			sl := slot{fd: fd, of: s.search.shapeOf(held(fd)), at: -1, list: fd.IsList()}
			if !fd.IsMap() {
				sl.at, sl.member = layout.find(fd)
			}
			s.slots = append(s.slots, sl)
		}
		s.sensitive = sensitiveFields(s.md)
		for _, ref := range referencesByMessage()[s.md.FullName()] {
			if fd := s.md.Fields().ByName(ref.Field.Name()); fd != nil {
				s.names = append(s.names, naming{ref, fd})
			}
		}
	})
	return s
}

// layout has the indexes of a message's fields in its Go struct.
type layout struct {
	message protoreflect.Message             // an empty message of the type, for find
	fields  map[protoreflect.FieldNumber]int // fields outside of oneofs
	oneofs  map[protoreflect.Name]int
}

// layoutOf returns the layout of the type of m. The layout of a dynamic message is empty.
func layoutOf(m proto.Message) layout {
	l := layout{m.ProtoReflect().Type().New(), make(map[protoreflect.FieldNumber]int), make(map[protoreflect.Name]int)}
	t := reflect.TypeOf(m).Elem()
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if parts := strings.Split(tag.Get("protobuf"), ","); len(parts) > 1 {
			if number, err := strconv.Atoi(parts[1]); err == nil {
				l.fields[protoreflect.FieldNumber(number)] = i
			}
		} else if name := tag.Get("protobuf_oneof"); name != "" {
			l.oneofs[protoreflect.Name(name)] = i
		}
	}
	return l
}

// find returns slot.at and slot.member of a field.
func (l layout) find(fd protoreflect.FieldDescriptor) (at int, member reflect.Type) {
	if at, ok := l.fields[fd.Number()]; ok {
		return at, nil
	}
	oneof := fd.ContainingOneof()
	if oneof == nil {
		return -1, nil
	}
	at, ok := l.oneofs[oneof.Name()]
	if !ok {
		return -1, nil
	}
	l.message.Set(fd, l.message.NewField(fd))
	return at, reflect.ValueOf(l.message.Interface()).Elem().Field(at).Elem().Type()
}

// each calls f for the messages in the slots of m, in order. index is the index of an element of a list, key the
// key of an entry of a map.
func (s *shape) each(m proto.Message, f func(s *slot, m proto.Message, index int, key protoreflect.MapKey)) {
	message := reflect.ValueOf(m)
	if len(s.slots) == 0 || message.IsNil() {
		return
	}
	none := protoreflect.MapKey{}
	for i := range s.slots {
		s := &s.slots[i]
		if s.at < 0 {
			s.reflected(m.ProtoReflect(), f)
			continue
		}
		switch v := s.value(message.Elem()); {
		case s.list:
			for i := range v.Len() {
				f(s, v.Index(i).Interface().(proto.Message), i, none)
			}
		case v.IsValid() && !v.IsNil():
			f(s, v.Interface().(proto.Message), 0, none)
		}
	}
}

// reflected is each for one slot that a walk reads by protoreflect, such as a map.
func (s *slot) reflected(m protoreflect.Message, f func(s *slot, m proto.Message, index int, key protoreflect.MapKey)) {
	switch {
	case !m.Has(s.fd):
	case s.fd.IsMap():
		entries := m.Get(s.fd).Map()
		for _, k := range sortedKeys(entries) {
			f(s, entries.Get(k).Message().Interface(), 0, k)
		}
	case s.list:
		for i := range m.Get(s.fd).List().Len() {
			f(s, m.Get(s.fd).List().Get(i).Message().Interface(), i, protoreflect.MapKey{})
		}
	default:
		f(s, m.Get(s.fd).Message().Interface(), 0, protoreflect.MapKey{})
	}
}

// contains is Contains for a message of the shape.
func (s *shape) contains(m proto.Message, is func(proto.Message) bool) (found bool) {
	if is(m) {
		return true
	}
	s.made(m).each(m, func(s *slot, m proto.Message, _ int, _ protoreflect.MapKey) {
		found = found || s.of.contains(m, is)
	})
	return found
}

// Contains reports whether is returns true for m, or for a message below m. Contains does not look into an Any, and
// costs a fraction of a Walk.
func Contains(m proto.Message, is func(proto.Message) bool) bool {
	return all.shapeOf(m.ProtoReflect().Descriptor()).contains(m, is)
}

func isAny(m proto.Message) bool {
	_, ok := m.(*anypb.Any)
	return ok
}

// value returns the value of the slot in the Go struct of a message; the zero Value if the slot is a member of a
// oneof, and is not set.
func (s *slot) value(message reflect.Value) reflect.Value {
	v := message.Field(s.at)
	if s.member == nil {
		return v
	}
	if v.IsNil() || v.Elem().Type() != s.member {
		return reflect.Value{}
	}
	return v.Elem().Elem().Field(0)
}

// all is the Search for messages of any type.
var all = &Search{whole: true}

// fields returns the fields of md that can hold wanted messages, also indirectly or in an Any, in the order of the
// .proto file.
func (s *Search) fields(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	switch {
	case s == all:
		return messageFields(md)
	case s.whole:
		return fieldsOfMessages(md)
	}
	var fields []protoreflect.FieldDescriptor
	for _, fd := range messageFields(md) {
		if s.reaches(held(fd), make(map[protoreflect.MessageDescriptor]bool)) {
			fields = append(fields, fd)
		}
	}
	return fields
}

// messageFields is fieldsOfMessages for the API's messages, with a cache, since a Search asks for the same message
// often.
func messageFields(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := fieldsOf.Load(md); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	fields := fieldsOfMessages(md)
	fieldsOf.Store(md, fields)
	return fields
}

// fieldsOfMessages returns the fields of md that hold messages, in the order of the .proto file.
func fieldsOfMessages(md protoreflect.MessageDescriptor) (fields []protoreflect.FieldDescriptor) {
	if !strings.HasPrefix(string(md.FullName()), "google.protobuf.") { // a walk does not enter Duration, Struct and their like
		for i := range md.Fields().Len() {
			if fd := md.Fields().Get(i); fd.Message() != nil && held(fd) != nil {
				fields = append(fields, fd)
			}
		}
	}
	return fields
}

var fieldsOf sync.Map // protoreflect.MessageDescriptor → []protoreflect.FieldDescriptor
