package decode

import (
	"bytes"
	"fmt"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/xdstp"
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
		d.keepBootstrap(v, m, d.lost[v.path])
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

// envelope keeps what a DiscoveryResponse says beside its resources.
func (d *decoder) envelope(m *discoveryv3.DiscoveryResponse) {
	resources := m.Resources
	m.Resources = nil
	d.file.Envelopes = append(d.file.Envelopes, proto.CloneOf(m))
	m.Resources = resources
}

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

// accept takes over a decoded resource.
func (d *decoder) accept(v value, m proto.Message, w *discoveryv3.Resource, lost xds.Lost) {
	name := wrapperName(w)
	r, err := xds.NewResource(m, name, v.origin())
	if err != nil {
		d.lose(v.finding(codeUnknownType, err.Error(), ""))
		return
	}
	if r.Meta = proto.CloneOf(w); w != nil {
		r.Meta.Resource = nil
		r.For, _ = params.Parse(w.GetResourceName().GetDynamicParameterConstraints()) // checkWrapper has
	}
	d.setClients(r)
	r.Lost, r.Unset = lost, v.unset(m.ProtoReflect().Descriptor())
	r.Registry = v.doc.source.envoy.Registry()
	d.file.Partial = d.file.Partial || r.Name == "" && lost.Echoes(xds.Path(r.Type.Name))
	if name != "" && xdstp.Canonical(name) != xdstp.Canonical(r.Name) && (r.Name != "" || !lost.Echoes(xds.Path(r.Type.Name))) {
		f := r.Diagnostic(codeResourceWrapper.Name, xds.Path(r.Type.Name), fmt.Sprintf("the Resource wrapper says %q, "+
			"the %s in it %q", name, r.Type.Noun, r.Name))
		if !v.doc.source.byEnvoy {
			d.report(f)
			return
		}
		f.Severity, f.Help = diag.Warning, "Envoy keeps the resource under its own name, and removes it by the wrapper's"
		d.report(f)
	}
	d.settle(v, r)
	d.file.Resources = append(d.file.Resources, r)
}

// setClients adds to what the wrapper of a resource says about its clients what the settings files say.
func (d *decoder) setClients(r *xds.Resource) {
	switch around := d.file.Source.clients; {
	case around == nil:
	case r.For.None():
		r.For = around.Constraints
	case !d.named.Full(): // else the tree is refused
		r.For = params.And(r.For, around.Constraints)
		d.file.joined += len(r.For.String())
		d.named.Take(len(r.For.String()))
	}
}

// settle finishes a decoded resource for other packages: it reports unknown fields, inlines the named files,
// and gives URL names their canonical spelling. settle walks the resource only if its text may need one of
// these steps.
func (d *decoder) settle(v value, r *xds.Resource) {
	files, urls := d.named != nil && v.mayNameFiles(), d.named != nil && v.mayHoldURLNames()
	switch v.doc.source.Format {
	case syntax.Binary, syntax.TextProto:
		if r.Packed = !urls && !xds.Contains(r.Message(), needsLook); r.Packed {
			return
		}
		r.Edit(func(n *xds.Node) bool {
			d.unknownNumber(r, n)
			return d.changes(r, n, v.doc.source, files, urls)
		})
	default:
		r.Packed = true // by protojson
		if files || urls {
			r.Edit(func(n *xds.Node) bool { return d.changes(r, n, v.doc.source, files, urls) })
		}
	}
	if urls || d.named != nil && r.Type.Name == "" { // only the wrapper has its name
		r.Respelled()
	}
}

// changes puts the files into a message that it names, and spells names in it that are URLs. It reports
// whether the message has changed.
func (d *decoder) changes(r *xds.Resource, n *xds.Node, s *Source, files, urls bool) (changed bool) {
	changed = files && d.inline(r, n, s)
	return urls && n.Respell() || changed
}

// mayHoldURLNames reports whether the resource in v may have a URL as a name. A file that Envoy itself reads
// keeps its spelling, because Envoy compares names as text.
func (v value) mayHoldURLNames() bool {
	switch s := v.doc.source; {
	case s.byEnvoy:
		return false
	case v.text != nil:
		return bytes.Contains(v.text, []byte(xdstp.Scheme)) || bytes.Contains(v.text, []byte(`\u00`))
	default:
		return s.holdsURLNames()
	}
}

// needsLook reports whether a message may need settle: an Any, whose payload may, the name of a file, or an
// unknown field.
func needsLook(m proto.Message) bool {
	switch m := m.(type) {
	case *anypb.Any:
		return true
	case *corev3.DataSource:
		if isRelative(m) {
			return true
		}
	}
	return len(m.ProtoReflect().GetUnknown()) > 0
}

// unknownNumber reports a field of a message that is not known. In binary form, also that of
// an Any in a text, it goes by its number.
func (d *decoder) unknownNumber(r *xds.Resource, n *xds.Node) {
	unknown := n.Message.ProtoReflect().GetUnknown()
	if len(unknown) == 0 || d.enough() {
		return
	}
	number, _, _ := protowire.ConsumeTag(unknown)
	f := r.Diagnostic(codeUnknownField.Name, n.Path(), fmt.Sprintf("unknown field number %d of %s", number, n.Name()))
	f.Help = "it was written for another version of the API: write the resource again with the one of Envoy " + d.file.Source.envoy.Name
	d.report(f)
}
