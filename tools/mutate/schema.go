package mutate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "xdspub/xds/alltypes" // any @type is known
)

// messageOf returns the message type of an object, or nil if unknown. inherited is the type of the field that
// holds the object.
func messageOf(v any, inherited protoreflect.MessageDescriptor) protoreflect.MessageDescriptor {
	object, _ := v.(map[string]any)
	if url, ok := object["@type"].(string); ok {
		if t, err := protoregistry.GlobalTypes.FindMessageByURL(url); err == nil {
			return t.Descriptor()
		}
		return nil
	}
	return inherited
}

// fieldMessage returns the type of the messages in a field.
func fieldMessage(m protoreflect.MessageDescriptor, key string) protoreflect.MessageDescriptor {
	if m == nil {
		return nil
	}
	f := m.Fields().ByName(protoreflect.Name(key))
	if f == nil {
		f = m.Fields().ByJSONName(key)
	}
	if f == nil || f.IsMap() {
		return nil
	}
	return f.Message()
}

// addField adds a field that the API allows in the message, even if no configuration uses the field.
func addField(c *Corpus, r *rand.Rand, s spot) (string, bool) {
	object, ok := s.value.(map[string]any)
	if !ok || s.message == nil || s.message.Fields().Len() == 0 || strings.HasPrefix(string(s.message.FullName()), "google.protobuf.") {
		return "", false
	}
	f := s.message.Fields().Get(r.IntN(s.message.Fields().Len()))
	if _, there := object[string(f.Name())]; there {
		return "", false
	}
	const depth = 3
	v := c.fieldValue(r, f, depth)
	object[string(f.Name())] = v
	return fmt.Sprintf("with the field %s %s", f.Name(), shown(v)), true
}

func (c *Corpus) fieldValue(r *rand.Rand, f protoreflect.FieldDescriptor, depth int) any {
	switch {
	case f.IsMap():
		return map[string]any{"a": c.singleValue(r, f.MapValue(), depth)}
	case f.IsList():
		return []any{c.singleValue(r, f, depth)}
	default:
		return c.singleValue(r, f, depth)
	}
}

func (c *Corpus) singleValue(r *rand.Rand, f protoreflect.FieldDescriptor, depth int) any {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return true
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return string(values.Get(r.IntN(values.Len())).Name())
	case protoreflect.StringKind:
		if known := c.values[string(f.Name())]; len(known) > 0 && r.IntN(2) == 0 {
			if text, ok := pick(r, known).(string); ok {
				return text
			}
		}
		return pick(r, []string{"a", "", "/a", "%REQ(a)%", "*"})
	case protoreflect.BytesKind:
		return "YQ=="
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return c.messageValue(r, f, depth)
	default:
		return json.Number(pick(r, []string{"0", "1", "5", "100", "101", "65536", "4294967295"}))
	}
}

// messageValue returns a message with some of its fields, and at most one field of each oneof.
func (c *Corpus) messageValue(r *rand.Rand, f protoreflect.FieldDescriptor, depth int) any {
	m := f.Message()
	switch m.FullName() {
	case "google.protobuf.Any":
		if known := c.values["typed_config"]; len(known) > 0 {
			return copied(pick(r, known))
		}
	case "google.protobuf.Duration":
		return pick(r, []string{"0s", "0.0005s", "1s", "100s"})
	case "google.protobuf.Timestamp":
		return "2030-01-01T00:00:00Z"
	case "google.protobuf.FieldMask":
		return "a.b"
	}
	if known := c.values[string(f.Name())]; len(known) > 0 && r.IntN(3) == 0 {
		if object, ok := pick(r, known).(map[string]any); ok {
			return copied(object)
		}
	}
	if strings.HasPrefix(string(m.FullName()), "google.protobuf.") && strings.HasSuffix(string(m.Name()), "Value") && m.Fields().Len() == 1 {
		return c.singleValue(r, m.Fields().Get(0), depth) // a wrapper is its value
	}
	object, chosen := make(map[string]any), make(map[protoreflect.Name]bool)
	fields := m.Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if o := field.ContainingOneof(); o != nil {
			if chosen[o.Name()] {
				continue
			}
			field = o.Fields().Get(r.IntN(o.Fields().Len()))
			chosen[o.Name()] = true
		} else if r.IntN(3) > 0 {
			continue
		}
		if depth > 0 {
			object[string(field.Name())] = c.fieldValue(r, field, depth-1)
		}
	}
	return object
}
