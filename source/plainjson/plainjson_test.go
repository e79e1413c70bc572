package plainjson_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/source/plainjson"
	_ "xdspub/xds/alltypes"
)

// read decodes a text as a message of the type of m, by plainjson and by protojson.
func read(text string, m proto.Message) (plain, theirs proto.Message, isPlain bool, err error) {
	plain, theirs = m.ProtoReflect().New().Interface(), m.ProtoReflect().New().Interface()
	isPlain = plainjson.Unmarshal([]byte(text), plain, protoregistry.GlobalTypes)
	return plain, theirs, isPlain, protojson.Unmarshal([]byte(text), theirs)
}

// compare fails the test if plainjson accepts a text that protojson rejects, or decodes it differently.
func compare(t *testing.T, text string, m proto.Message) (isPlain bool) {
	t.Helper()
	plain, theirs, isPlain, err := read(text, m)
	switch {
	case !isPlain:
		if proto.Size(plain) > 0 {
			t.Errorf("%s: refused, and the message is not empty", text)
		}
	case err != nil:
		t.Errorf("%s: taken, and protojson says %v", text, err)
	case !proto.Equal(plain, theirs):
		t.Errorf("%s: read as %v, by protojson as %v", text, plain, theirs)
	default:
		ours, err := proto.MarshalOptions{Deterministic: true}.Marshal(plain)
		other, failed := proto.MarshalOptions{Deterministic: true}.Marshal(theirs)
		if err != nil || failed != nil || string(ours) != string(other) {
			t.Errorf("%s: %v, %v, %x, by protojson %x", text, err, failed, ours, other)
		}
	}
	return isPlain
}

// texts are JSON texts of messages, and whether they are plain.
var texts = []struct {
	of    proto.Message
	text  string
	plain bool
}{
	{&clusterv3.Cluster{}, `{}`, true},
	{&clusterv3.Cluster{}, ` { "name" : "a" , "connect_timeout" : "1.5s" } `, true},
	{&clusterv3.Cluster{}, `{"name": "", "type": "STATIC", "connectTimeout": "0s"}`, true},
	{&clusterv3.Cluster{}, `{"name": "\"\\\/\b\f\n\r\t\u00e4\u003c"}`, true},
	{&clusterv3.Cluster{}, `{"name": "\ud83d\ude00"}`, false},
	{&clusterv3.Cluster{}, `{"name": "\x"}`, false},
	{&clusterv3.Cluster{}, `{"name": "\u12"}`, false},
	{&clusterv3.Cluster{}, `{"name": "\`, false},
	{&clusterv3.Cluster{}, "{\"name\": \"\x01\"}", false},
	{&clusterv3.Cluster{}, "{\"name\": \"\xff\"}", false},
	{&clusterv3.Cluster{}, `{"name": "ä"}`, true},
	{&clusterv3.Cluster{}, `{"name": null, "type": null, "health_checks": null}`, true},
	{&clusterv3.Cluster{}, `{"name": "a", "name": "b"}`, false},
	{&clusterv3.Cluster{}, `{"connect_timeout": null, "connectTimeout": "1s"}`, false},
	{&clusterv3.Cluster{}, `{"type": "STATIC", "cluster_type": null}`, true},
	{&clusterv3.Cluster{}, `{"type": "STATIC", "cluster_type": {"name": "x"}}`, false},
	{&clusterv3.Cluster{}, `{"type": 1}`, false},
	{&clusterv3.Cluster{}, `{"type": "static"}`, false},
	{&clusterv3.Cluster{}, `{"nonsense": 1}`, false},
	{&clusterv3.Cluster{}, `{"name": "a",}`, false},
	{&clusterv3.Cluster{}, `{,"name": "a"}`, false},
	{&clusterv3.Cluster{}, `{"name": "a"} x`, false},
	{&clusterv3.Cluster{}, "{\"name\": \"a\"}\x00", false},
	{&clusterv3.Cluster{}, `{"name": "a"`, false},
	{&clusterv3.Cluster{}, `{"name" "a"}`, false},
	{&clusterv3.Cluster{}, `{"name": 1}`, false},
	{&clusterv3.Cluster{}, `[]`, false},
	{&clusterv3.Cluster{}, ``, false},
	{&clusterv3.Cluster{}, `{"per_connection_buffer_limit_bytes": 1}`, true},
	{&clusterv3.Cluster{}, `{"per_connection_buffer_limit_bytes": "4294967295"}`, true},
	{&clusterv3.Cluster{}, `{"per_connection_buffer_limit_bytes": 4294967296}`, false},
	{&clusterv3.Cluster{}, `{"per_connection_buffer_limit_bytes": -1}`, false},
	{&clusterv3.Cluster{}, `{"per_connection_buffer_limit_bytes": 01}`, false},
	{&clusterv3.Cluster{}, `{"per_connection_buffer_limit_bytes": 1.0}`, false},
	{&clusterv3.Cluster{}, `{"per_connection_buffer_limit_bytes": "1}`, false},
	{&clusterv3.Cluster{}, `{"per_connection_buffer_limit_bytes": {}}`, false},
	{&clusterv3.Cluster{}, `{"respect_dns_ttl": true, "use_tcp_for_dns_lookups": false}`, true},
	{&clusterv3.Cluster{}, `{"respect_dns_ttl": tru}`, false},
	{&clusterv3.Cluster{}, `{"respect_dns_ttl": truex}`, false},
	{&clusterv3.Cluster{}, `{"connect_timeout": "-1s"}`, false},
	{&clusterv3.Cluster{}, `{"connect_timeout": ".5s"}`, false},
	{&clusterv3.Cluster{}, `{"connect_timeout": "5.s"}`, false},
	{&clusterv3.Cluster{}, `{"connect_timeout": "0.123456789s"}`, true},
	{&clusterv3.Cluster{}, `{"connect_timeout": "0.1234567890s"}`, false},
	{&clusterv3.Cluster{}, `{"connect_timeout": "99999999999s"}`, true},
	{&clusterv3.Cluster{}, `{"connect_timeout": "315576000001s"}`, false},
	{&clusterv3.Cluster{}, `{"connect_timeout": "1"}`, false},
	{&clusterv3.Cluster{}, `{"connect_timeout": "0.-1s"}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"filter_metadata": {"a": {"b": [null, 1, -2.5, 1e3, "x", true, {}, []]}}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"filter_metadata": {"a": {"b": [null, 1, -2.5, "x", true, {}, [], {"c": null}]}}}}`, true},
	{&clusterv3.Cluster{}, `{"metadata": {"filter_metadata": {"a": {"b": 1, "b": 2}}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"filter_metadata": {"a": {}, "c": {"b": 1}, "b": {"b": 1}}}}`, true},
	{&clusterv3.Cluster{}, `{"metadata": {"filter_metadata": {"a": null}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"filter_metadata": {"\u0061": {}}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {}}}}`, true},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "1s"}}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"@type": "type.googleapis.com/google.protobuf.Empty"}}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"@type": "type.googleapis.com/envoy.config.core.v3.Node", "id": "b", "cluster": "c"}}}}`, true},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"@type": "type.googleapis.com/envoy.config.core.v3.Node", "cluster": "c", "id": "b"}}}}`, true},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"@type": "type.googleapis.com/envoy.config.core.v3.Node"}}}}`, true},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"@type": "type.googleapis.com/envoy.config.core.v3.Node" "id": "b"}}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"id": "b", "@type": "type.googleapis.com/envoy.config.core.v3.Node"}}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"@type": "type.googleapis.com/envoy.config.core.v3.Node", "@type": "type.googleapis.com/envoy.config.core.v3.Node"}}}}`, false},
	{&clusterv3.Cluster{}, `{"metadata": {"typed_filter_metadata": {"a": {"@type": "type.googleapis.com/nonsense"}}}}`, false},
	{&listenerv3.Listener{}, `{"socket_options": [{"level": "1", "int_value": -9, "buf_value": "x"}]}`, false},
	{&listenerv3.Listener{}, `{"socket_options": [{"level": -9223372036854775808}, {"name": 999999999999999999}]}`, false},
	{&listenerv3.Listener{}, `{"socket_options": [{"level": -7, "buf_value": "AQID_-=="}]}`, true},
	{&listenerv3.Listener{}, `{"socket_options": [{"level": -7, "buf_value": "AQID_+=="}]}`, false},
	{&listenerv3.Listener{}, `{"socket_options": [{"level": -7, "buf_value": "AQID"}, {"buf_value": "AQ"}, {"buf_value": "_-8="}, {"buf_value": ""}]}`, true},
	{&listenerv3.Listener{}, `{"socket_options": [null]}`, false},
	{&listenerv3.Listener{}, `{"socket_options": []}`, true},
	{&listenerv3.Listener{}, `{"socket_options": {}}`, false},
	{&bootstrapv3.Bootstrap{}, `{"overload_manager": {"resource_monitors": [{"name": "a"}], "actions": [{"name": "b", "triggers": [{"name": "c", "threshold": {"value": 0.95}}]}]}}`, true},
	{&bootstrapv3.Bootstrap{}, `{"overload_manager": {"actions": [{"name": "b", "triggers": [{"threshold": {"value": -0}}, {"threshold": {"value": -0.0}}]}]}}`, true},
	{&bootstrapv3.Bootstrap{}, `{"overload_manager": {"actions": [{"triggers": [{"threshold": {"value": "NaN"}}]}]}}`, false},
	{&bootstrapv3.Bootstrap{}, `{"overload_manager": {"actions": [{"triggers": [{"threshold": {"value": 1.}}]}]}}`, false},
	{&bootstrapv3.Bootstrap{}, `{"overload_manager": {"actions": [{"triggers": [{"threshold": {"value": 1-2}}]}]}}`, false},
	{&routev3.RouteConfiguration{}, `{"virtual_hosts": [{"name": "a", "domains": ["*", "b"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c", "weighted_clusters": null}}]}]}`, true},
	{&structpb.Value{}, `null`, true},
	{&structpb.ListValue{}, `[[[[]]]]`, true},
	{&structpb.ListValue{}, strings.Repeat("[", 40) + strings.Repeat("]", 40), false},
}

func TestUnmarshal(t *testing.T) {
	for _, c := range texts {
		if isPlain := compare(t, c.text, c.of); isPlain != c.plain {
			t.Errorf("%s: plain: %t", c.text, isPlain)
		}
	}
}

// FuzzUnmarshal compares plainjson with protojson.
func FuzzUnmarshal(f *testing.F) {
	kinds := []proto.Message{&clusterv3.Cluster{}, &listenerv3.Listener{}, &routev3.RouteConfiguration{}, &bootstrapv3.Bootstrap{}, &structpb.Value{}, &structpb.ListValue{}}
	for _, c := range texts {
		i := slices.IndexFunc(kinds, func(k proto.Message) bool { return k.ProtoReflect().Type() == c.of.ProtoReflect().Type() })
		f.Add(c.text, uint8(i))
	}
	f.Fuzz(func(t *testing.T, text string, kind uint8) { compare(t, text, kinds[int(kind)%len(kinds)]) })
}

// TestAllFields decodes each message of the API with all fields, by both of their names.
func TestAllFields(t *testing.T) {
	messages, plain := 0, 0
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if !strings.HasPrefix(string(mt.Descriptor().FullName()), "envoy.") {
			return true
		}
		for turn := range 4 {
			m := mt.New()
			fill(m, turn, 3)
			for _, o := range []protojson.MarshalOptions{{}, {UseProtoNames: true}} {
				text, err := o.Marshal(m.Interface())
				if err != nil {
					t.Fatal(err)
				}
				var compact json.RawMessage = text
				if text, err = json.Marshal(compact); err != nil { // without the random spaces of protojson
					t.Fatal(err)
				}
				messages++
				if compare(t, string(text), m.Interface()) {
					plain++
				}
			}
		}
		return true
	})
	if messages < 10_000 || plain < messages*8/10 {
		t.Errorf("of %d texts %d are plain", messages, plain)
	}
}

// fill sets the fields of a message, and of its messages down to depth. turn chooses the member of each oneof.
func fill(m protoreflect.Message, turn, depth int) {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Any":
		node, err := protoregistry.GlobalTypes.FindMessageByName("envoy.config.core.v3.Node")
		if err != nil {
			panic(err)
		}
		inner := node.New()
		fill(inner, turn, depth-1)
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(inner.Interface())
		if err != nil {
			panic(err)
		}
		m.Set(m.Descriptor().Fields().ByName("type_url"), protoreflect.ValueOfString("type.googleapis.com/envoy.config.core.v3.Node"))
		m.Set(m.Descriptor().Fields().ByName("value"), protoreflect.ValueOfBytes(value))
		return
	case "google.protobuf.Value":
		number := protoreflect.FieldNumber(2 + turn%3)
		fd := m.Descriptor().Fields().ByNumber(number)
		m.Set(fd, scalar(fd, turn))
		return
	case "google.protobuf.Duration":
		m.Set(m.Descriptor().Fields().ByName("seconds"), protoreflect.ValueOfInt64(int64(turn)))
		m.Set(m.Descriptor().Fields().ByName("nanos"), protoreflect.ValueOfInt32(int32(turn*1_000_000)))
		return
	case "google.protobuf.FieldMask", "google.protobuf.Timestamp": // only protojson decodes these
		return
	}
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() && o.Fields().Get(turn%o.Fields().Len()) != fd {
			continue
		}
		switch {
		case fd.IsMap():
			value := m.NewField(fd).Map().NewValue()
			if fd.MapValue().Message() == nil {
				value = scalar(fd.MapValue(), turn)
			} else if depth == 0 {
				continue
			} else {
				fill(value.Message(), turn, depth-1)
			}
			m.Mutable(fd).Map().Set(scalar(fd.MapKey(), turn).MapKey(), value)
		case fd.Message() != nil && depth == 0:
		case fd.IsList() && fd.Message() != nil:
			fill(m.Mutable(fd).List().AppendMutable().Message(), turn, depth-1)
		case fd.IsList():
			m.Mutable(fd).List().Append(scalar(fd, turn))
			m.Mutable(fd).List().Append(scalar(fd, turn+1))
		case fd.Message() != nil:
			fill(m.Mutable(fd).Message(), turn, depth-1)
		default:
			m.Set(fd, scalar(fd, turn))
		}
	}
}

// scalar returns a value for a field, which differs by turn.
func scalar(fd protoreflect.FieldDescriptor, turn int) protoreflect.Value {
	sign := 1 - 2*(turn%2)
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(turn%2 == 0)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(turn * sign * 1000))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(turn*sign) << 40)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(turn) << 30)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(turn) << 40)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(turn*sign) / 3)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(turn*sign) / math.Pi)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 255, byte(turn)})
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(turn % values.Len()).Number())
	}
	return protoreflect.ValueOfString([]string{"", "a", "ä \"<>&\\\n", strings.Repeat("long ", 60)}[turn%4])
}
