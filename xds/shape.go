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

// shape is what walks know about the messages of a type. A walk over ten thousand clusters asks
// for it at each message, so that nothing in it is looked up by name or asked of protoreflect.
type shape struct {
	md     protoreflect.MessageDescriptor
	search *Search

	once      sync.Once
	slots     []slot
	sensitive []protoreflect.FieldDescriptor
	names     []naming
}

// slot is a field that holds messages.
type slot struct {
	fd protoreflect.FieldDescriptor
	of *shape // of the messages in it
	// at is the field's index in the Go struct, -1 where protoreflect has to be asked. Of a member of
	// a oneof it is that of the oneof, which holds a value of the Go type member when this one is set.
	at     int
	member reflect.Type
	list   bool
}

// naming is a field that names something.
type naming struct {
	*Reference
	fd protoreflect.FieldDescriptor
}

// shapeOf returns the shape of the messages of a type.
func (s *Search) shapeOf(md protoreflect.MessageDescriptor) *shape {
	if known, ok := s.shapes.Load(md); ok {
		return known.(*shape)
	}
	known, _ := s.shapes.LoadOrStore(md, &shape{md: md, search: s})
	return known.(*shape)
}

// shapeIn returns the shape of the node's message. The root of a walk may have no shape yet, and is walked
// whole.
func (n *Node) shapeIn() *shape {
	if n.shape == nil {
		n.shape = all.shapeOf(n.Message.ProtoReflect().Descriptor())
	}
	return n.shape.made(n.Message)
}

// made returns the shape with its slots. m is a message of the shape's type.
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

// layout is where the fields of a message stand in its Go struct: those of no oneof by number,
// oneofs by name.
type layout struct {
	message protoreflect.Message
	fields  map[protoreflect.FieldNumber]int
	oneofs  map[protoreflect.Name]int
}

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

// find returns the at and the member of the slot of a field.
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

// each calls f for the messages in the fields of m, in order; index is of an element of a list,
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

// reflected is each for a slot that needs protoreflect, such as a map.
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

// Contains reports whether is holds for m, or for a message below it. It does not look into an
// Any, and costs a fraction of a Walk.
func Contains(m proto.Message, is func(proto.Message) bool) bool {
	return all.shapeOf(m.ProtoReflect().Descriptor()).contains(m, is)
}

func isAny(m proto.Message) bool {
	_, ok := m.(*anypb.Any)
	return ok
}

// value is what the slot holds in the Go struct of a message; the zero Value where another member
// of the oneof is set, or none.
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

// fields returns the fields of md that lead to wanted messages, or to an Any that may
// hold one, in the order of the API.
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

// messageFields is fieldsOfMessages of a message of the API. The answer is kept: a Search asks often
// for the same.
func messageFields(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := fieldsOf.Load(md); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	fields := fieldsOfMessages(md)
	fieldsOf.Store(md, fields)
	return fields
}

// fieldsOfMessages returns the fields of md that hold messages, in the order of the API.
func fieldsOfMessages(md protoreflect.MessageDescriptor) (fields []protoreflect.FieldDescriptor) {
	if !strings.HasPrefix(string(md.FullName()), "google.protobuf.") { // Duration, Struct, …: leaves
		for i := range md.Fields().Len() {
			if fd := md.Fields().Get(i); fd.Message() != nil && held(fd) != nil {
				fields = append(fields, fd)
			}
		}
	}
	return fields
}

var fieldsOf sync.Map // protoreflect.MessageDescriptor → []protoreflect.FieldDescriptor
