package decode

import (
	"fmt"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/source/syntax"
	"xdspub/xds"
)

// binarySource decodes a binary DiscoveryResponse. Envoy applies the readable part of a damaged response and
// counts a success, so binarySource trusts nothing.
func (d *decoder) binarySource() {
	s := d.file.Source
	if s.Size() == 0 && !s.isBootstrap {
		return
	}
	d.any = true
	doc := s.documents()[0]
	if s.isBootstrap {
		b := &bootstrapv3.Bootstrap{}
		if err := s.resolver().binary().Unmarshal(doc.Text, b); err != nil {
			d.lose(s.Finding(syntax.CodeSyntax, syntax.FileRange(s.Name), "not a binary Bootstrap", ""))
			return
		}
		d.decoded(value{doc: doc}, b)
		return
	}
	m := &discoveryv3.DiscoveryResponse{}
	if err := s.resolver().binary().Unmarshal(doc.Text, m); err != nil || len(m.ProtoReflect().GetUnknown()) > 0 {
		d.lose(s.Finding(syntax.CodeSyntax, syntax.FileRange(s.Name), "not a binary DiscoveryResponse",
			"Envoy would apply the part of it that can be read; make it with xdspub convert --to pb"))
		return
	}
	d.decoded(value{doc: doc}, m)
}

// decoded takes over what a message holds, of any kind that a document can be.
func (d *decoder) decoded(v value, m proto.Message) {
	switch m := m.(type) {
	case *discoveryv3.DiscoveryResponse:
		d.envelope(m)
		d.file.SaysNone = len(m.GetResources()) == 0 && m.GetVersionInfo() != "" // these formats have no empty lists
		d.each(len(m.GetResources()), func(one *decoder, i int) {
			one.packed(value{doc: v.doc, path: v.path.Field("resources").Index(i)}, m.GetResources()[i])
			m.Resources[i] = nil // frees the first copy
		})
	case *discoveryv3.Resource:
		d.unwrapped(v, m)
	case *bootstrapv3.Bootstrap:
		static := m.GetStaticResources()
		at := func(list string, i int) value {
			return value{doc: v.doc, path: v.path.Field("static_resources").Field(list).Index(i)}
		}
		for i, l := range static.GetListeners() {
			d.take(at("listeners", i), l)
		}
		for i, c := range static.GetClusters() {
			d.take(at("clusters", i), c)
		}
		for i, s := range static.GetSecrets() {
			d.take(at("secrets", i), s)
		}
		m.StaticResources = nil
		keepBootstrap(d, v, m, d.lost[v.path])
	default:
		name := m.ProtoReflect().Descriptor().FullName()
		if xds.TypeOf(name) == nil {
			d.lose(v.finding(codeUnknownType, fmt.Sprintf("%s is not a resource type", name), "a resource is one of "+resourceTypes()))
			return
		}
		d.take(v, m)
	}
}

// take is accept for a resource without a wrapper, of a document that was decoded whole.
func (d *decoder) take(v value, m proto.Message) { d.accept(v, m, nil, d.lost[v.path]) }

// packed takes over a resource out of its Any.
func (d *decoder) packed(v value, a *anypb.Any) {
	if d.lost[v.path].All() {
		return // reported
	}
	m, ok := d.unpack(v, a)
	if !ok {
		return
	}
	if _, nested := m.(*discoveryv3.DiscoveryResponse); nested {
		d.lose(v.finding(codeUnknownType, "a DiscoveryResponse contains another DiscoveryResponse", "a resource is one of "+resourceTypes()))
		return
	}
	d.decoded(v, m)
}

func (d *decoder) unpack(v value, a *anypb.Any) (proto.Message, bool) {
	mt, err := v.doc.source.resolver().FindMessageByURL(a.GetTypeUrl())
	if err != nil {
		d.lose(v.unknownType(a.GetTypeUrl()))
		return nil, false
	}
	m := mt.New().Interface()
	if err := v.doc.source.resolver().binary().Unmarshal(a.GetValue(), m); err != nil {
		d.lose(v.finding(syntax.CodeSyntax, fmt.Sprintf("the bytes can't "+
			"be read as %s", mt.Descriptor().FullName()), "write the resource again: it is damaged, or of another type"))
		return nil, false
	}
	return m, true
}

// unwrapped takes over the resource in a Resource wrapper.
func (d *decoder) unwrapped(v value, w *discoveryv3.Resource) {
	if !d.checkWrapper(v, w, w.GetResource() != nil) {
		return
	}
	at := value{doc: v.doc, path: v.path.Field("resource")}
	if d.lost[at.path].All() {
		return
	}
	m, ok := d.unpack(at, w.GetResource())
	if !ok {
		return
	}
	if _, nested := m.(*discoveryv3.Resource); nested {
		d.lose(at.finding(codeResourceWrapper, nestedWrapper, nestedWrapperHelp))
		return
	}
	if xds.TypeOf(m.ProtoReflect().Descriptor().FullName()) == nil {
		d.decoded(at, m) // says what is wrong
		return
	}
	d.accept(at, m, w, d.lost[at.path])
}
