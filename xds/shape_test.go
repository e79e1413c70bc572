package xds

import (
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "xdspub/xds/alltypes"
)

// TestShapes sets each field of each message of the API that holds messages, and compares the visited messages of a
// walk with protoreflect. A walk reads only maps by protoreflect.
func TestShapes(t *testing.T) {
	types, fields := 0, 0
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		types++
		md := mt.Descriptor()
		for _, s := range all.shapeOf(md).made(mt.New().Interface()).slots {
			fields++
			if s.at < 0 && !s.fd.IsMap() {
				t.Errorf("%s: not found in the Go struct", s.fd.FullName())
			}
			m := mt.New()
			var want []string
			switch {
			case s.list:
				list := m.Mutable(s.fd).List()
				list.Append(list.NewElement())
				list.Append(list.NewElement())
				want = []string{string(s.fd.Name()) + "[0]", string(s.fd.Name()) + "[1]"}
			case s.fd.IsMap():
				entries := m.Mutable(s.fd).Map()
				key := s.fd.MapKey().Default().MapKey()
				entries.Set(key, entries.NewValue())
				want = []string{string(Path("").Field(string(s.fd.Name())).Key(key.String()))}
			default:
				m.Mutable(s.fd)
				want = []string{string(s.fd.Name())}
			}
			var got []string
			Walk(m.Interface(), func(n *Node) {
				if n.Parent != nil {
					got = append(got, string(n.Path()))
					if n.Name() != s.of.md.FullName() || n.Message.ProtoReflect().Descriptor() != s.of.md {
						t.Errorf("%s: %s is named %s", s.fd.FullName(), n.Message.ProtoReflect().Descriptor().FullName(), n.Name())
					}
				}
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: Walk (-want +got):\n%s", s.fd.FullName(), diff)
			}
		}
		return true
	})
	if types < 1000 || fields < 2500 {
		t.Errorf("looked at %d fields of %d types only", fields, types)
	}
}

// TestContains searches for an Any and for unknown fields at any depth.
func TestContains(t *testing.T) {
	unknown := []byte{0xf8, 0xff, 0x01, 0x01} // field 4095
	for name, test := range map[string]struct {
		edit func(*listenerv3.Listener)
		want bool
	}{
		"nothing":           {func(*listenerv3.Listener) {}, false},
		"unknown":           {func(l *listenerv3.Listener) { l.ProtoReflect().SetUnknown(unknown) }, true},
		"an Any":            {func(l *listenerv3.Listener) { set(l, "filter_chains.filters.typed_config") }, true},
		"an unknown below":  {func(l *listenerv3.Listener) { set(l, "filter_chains.filters").SetUnknown(unknown) }, true},
		"an unknown choice": {func(l *listenerv3.Listener) { set(l, "address.socket_address").SetUnknown(unknown) }, true},
		"all known":         {func(l *listenerv3.Listener) { set(l, "filter_chains.filters"); set(l, "address.socket_address") }, false},
	} {
		l := &listenerv3.Listener{}
		test.edit(l)
		got := Contains(l, func(m proto.Message) bool { return isAny(m) || len(m.ProtoReflect().GetUnknown()) > 0 })
		if got != test.want {
			t.Errorf("%s: Contains = %t, want %t", name, got, test.want)
		}
	}
}

// set makes the message at a path of field names, and returns it. Of a list, it makes the first element.
func set(m proto.Message, path string) protoreflect.Message {
	r := m.ProtoReflect()
	for name := range strings.SplitSeq(path, ".") {
		fd := r.Descriptor().Fields().ByName(protoreflect.Name(name))
		if fd.IsList() {
			r = r.Mutable(fd).List().AppendMutable().Message()
		} else {
			r = r.Mutable(fd).Message()
		}
	}
	return r
}

// TestShapeOrder: a walk visits the fields of a message in the order of the .proto file.
func TestShapeOrder(t *testing.T) {
	var fields []protoreflect.FieldNumber
	l := &listenerv3.Listener{}
	for _, s := range all.shapeOf(l.ProtoReflect().Descriptor()).made(l).slots {
		fields = append(fields, protoreflect.FieldNumber(s.fd.Index()))
	}
	if !slices.IsSorted(fields) || len(fields) < 10 {
		t.Errorf("the slots of a listener: %v", fields)
	}
}
