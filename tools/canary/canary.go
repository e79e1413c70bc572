// Package canary plants texts in the fields of the API that are for secrets, for tests of who can see these texts.
package canary

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	udpaannotations "github.com/cncf/xds/go/udpa/annotations"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/tools/configfields"
)

// named matches the names of text fields that are for secrets.
var named = regexp.MustCompile(`^(.*_)?(token|tokens|password|passwords|passphrase|secret|secrets|private_key|json_key|secret_access_key|api_key)$`)

// Fields returns the fields for secrets, sorted by name: the fields that the API marks, and text fields with the
// name of a secret.
var Fields = sync.OnceValue(func() (fields []protoreflect.FieldDescriptor) {
	configfields.Each(func(fd protoreflect.FieldDescriptor) {
		o, _ := fd.Options().(*descriptorpb.FieldOptions)
		isText := fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind || fd.Message() != nil &&
			fd.Message().FullName() == "envoy.config.core.v3.DataSource"
		isNamed := isText && named.MatchString(string(fd.Name())) && fd.Parent().Name() != "CookieNames" // these hold names of cookies
		if o.GetDebugRedact() || proto.GetExtension(o, udpaannotations.E_Sensitive).(bool) || isNamed {
			fields = append(fields, fd)
		}
	})
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return fields
})

// Plant returns a message whose only content is a text in a field.
func Plant(fd protoreflect.FieldDescriptor, text string) proto.Message {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(fd.Parent().FullName())
	if err != nil {
		panic(err) // Fields lists only types of the registry
	}
	m, is := mt.New(), protoreflect.ValueOfString(text)
	key := protoreflect.ValueOfString("k").MapKey()
	switch {
	case fd.IsMap() && fd.MapValue().Message() == nil:
		m.Mutable(fd).Map().Set(key, is)
	case fd.IsMap():
		fill(m.Mutable(fd).Map().Mutable(key).Message(), is)
	case fd.IsList() && fd.Message() != nil:
		fill(m.Mutable(fd).List().AppendMutable().Message(), is)
	case fd.IsList():
		m.Mutable(fd).List().Append(is)
	case fd.Message() != nil:
		fill(m.Mutable(fd).Message(), is)
	case fd.Kind() == protoreflect.BytesKind:
		m.Set(fd, protoreflect.ValueOfBytes([]byte(text)))
	default:
		m.Set(fd, is)
	}
	return m.Interface()
}

// fill puts a text into a message in a field for secrets.
func fill(m protoreflect.Message, is protoreflect.Value) {
	switch m := m.Interface().(type) {
	case *corev3.DataSource:
		m.Specifier = &corev3.DataSource_InlineString{InlineString: is.String()}
	case *anypb.Any:
		m.TypeUrl = "type.googleapis.com/google.protobuf.StringValue"
		m.Value, _ = proto.Marshal(wrapperspb.String(is.String()))
	default: // a Credential
		m.ProtoReflect().Set(m.ProtoReflect().Descriptor().Fields().ByName("key"), is)
	}
}
