package xds

import (
	"bytes"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Concealed returns a copy of the resource without secret content: conceal replaces the content of each field for
// secrets, of each certificate, and of each credential in a header. Equal content stays equal. A payload that can't
// be read may hold a secret, so conceal replaces the payload, too.
func (r *Resource) Concealed(conceal func(content []byte) string) *Resource {
	is := r.With(proto.Clone(r.Message()))
	is.Edit(func(n *Node) bool { return n.conceal(conceal) })
	return is
}

// conceal conceals the fields of the node's message, and reports whether it changed one.
func (n *Node) conceal(with func([]byte) string) (changed bool) {
	switch m := n.Message.(type) {
	case *anypb.Any:
		if n.Err != nil {
			concealAny(m, with)
			return true
		}
	case *corev3.DataSource:
		content := m.GetInlineBytes()
		if content == nil {
			content = []byte(m.GetInlineString())
		}
		if len(content) > 0 && (n.OfSecret() || bytes.Contains(content, []byte("-----BEGIN "))) {
			m.Specifier = &corev3.DataSource_InlineString{InlineString: with(content)}
			return true
		}
	case *corev3.HeaderValue:
		if credentialHeaders[strings.ToLower(m.GetKey())] && holdsCredential(m.GetValue()+string(m.GetRawValue())) {
			m.Value, m.RawValue = with([]byte(m.GetValue()+string(m.GetRawValue()))), nil
			return true
		}
	}
	r := n.Message.ProtoReflect()
	for _, fd := range n.shape.sensitive {
		if r.Has(fd) && holdsContent(fd, r.Get(fd)) {
			concealField(r, fd, with)
			changed = true
		}
	}
	return changed
}

// concealAny puts the concealed content of an Any in place of the content.
func concealAny(m *anypb.Any, with func([]byte) string) {
	text, _ := proto.Marshal(wrapperspb.String(m.GetTypeUrl() + " " + with(m.GetValue()))) // a wrapper has a binary form
	m.TypeUrl, m.Value = URLPrefix+"google.protobuf.StringValue", text
}

// concealField conceals a field of a message: each text and each Any in the field.
func concealField(r protoreflect.Message, fd protoreflect.FieldDescriptor, with func([]byte) string) {
	switch v := r.Get(fd); {
	case fd.IsMap():
		entries := r.Mutable(fd).Map()
		entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			entries.Set(k, concealValue(fd.MapValue(), v, with))
			return true
		})
	case fd.IsList():
		list := r.Mutable(fd).List()
		for i := range list.Len() {
			list.Set(i, concealValue(fd, list.Get(i), with))
		}
	default:
		r.Set(fd, concealValue(fd, v, with))
	}
}

// concealValue returns a value without its texts.
func concealValue(fd protoreflect.FieldDescriptor, v protoreflect.Value, with func([]byte) string) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(with([]byte(v.String())))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(with(v.Bytes())))
	case protoreflect.MessageKind:
		m := v.Message()
		if packed, ok := m.Interface().(*anypb.Any); ok {
			concealAny(packed, with)
			return v
		}
		m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if source, ok := m.Interface().(*corev3.DataSource); !ok || source.GetFilename() == "" && source.GetEnvironmentVariable() == "" {
				concealField(m, fd, with)
			}
			return true
		})
	}
	return v
}

// Unpack returns the message in an Any, or the message that the TypedStruct in the Any stands for; nil if the message
// can't be read.
func (g *Registry) Unpack(a *anypb.Any) proto.Message {
	m, err := g.unpack(a)
	if url, value, ok := structFor(m, ""); err == nil && ok {
		m, err = g.ofStruct(url, value)
	}
	if err != nil {
		return nil
	}
	return m
}
