package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/source/plainjson"
	"xdspub/source/syntax"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/xdstp"
)

// isObject reports a resource that is none.
func (d *decoder) isObject(v value) bool {
	is := jsontext.Value(v.text).Kind() == '{'
	if !is {
		d.lose(v.finding(syntax.CodeInvalidValue, "a resource is an object, this is "+syntax.KindOfJSON(v.text), ""))
	}
	return is
}

// element decodes one resource, or the Resource wrapper around one.
func (d *decoder) element(v value) {
	if d.plain(v) || !d.isObject(v) {
		return
	}
	url, text, err := splitType(v.text)
	if err != nil {
		d.lose(v.withoutType(err))
		return
	}
	at := v.field("@type", nil)
	mt, err := v.doc.source.resolver().FindMessageByURL(url)
	if err != nil {
		d.lose(at.unknownType(url))
		return
	}
	name := mt.Descriptor().FullName()
	if name == "envoy.service.discovery.v3.Resource" {
		d.wrapper(v.at(v.path, text))
		return
	}
	t := xds.TypeOf(name)
	if t == nil {
		d.lose(at.finding(codeUnknownType, fmt.Sprintf("%s is not a resource type", name), "a resource is one of "+resourceTypes()))
		return
	}
	d.resource(v.at(v.path, text), t, nil)
}

// withoutType is the finding about a resource that says no type.
func (v value) withoutType(reason error) diag.Diagnostic {
	var members map[string]json.RawMessage
	if json.Unmarshal(v.text, &members) == nil {
		if has(members, "hosts") && (has(members, "tasks") || has(members, "roles")) {
			return v.notXDS(foreign{what: "a playbook of Ansible"})
		}
		if f := v.foreignDocument(members); f != nil {
			return v.notXDS(*f)
		}
	}
	help, _ := typeMissing(members)
	f := v.finding(codeUnknownType, reason.Error(), help)
	v.atFirstLine(&f, "")
	v.meantType(&f, "", members)
	return f
}

// meantType puts the finding about an object without @type at the member that is meant to be
// one: its value is a type URL.
func (v value) meantType(f *diag.Diagnostic, path xds.Path, members map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if url := syntax.Unquote(jsontext.Value(members[name])); !strings.Contains(url, "/envoy.") || strings.ContainsAny(url, " {") {
			continue
		}
		tokens := append(steps(v.path.Join(path)), name)
		r := v.doc.RangeOf(tokens, true)
		f.Position, f.End = r.Position, r.End
		f.Help = fmt.Sprintf(`write "@type" instead of %s`, syntax.Shorten(name))
		v.doc.Fix(f, tokens, true, diag.Correction{Wrong: name, Right: "@type", Sure: slices.Equal(diag.Parts(name), []string{"type"})})
		return
	}
}

// wrapper unpacks an envoy.service.discovery.v3.Resource.
func (d *decoder) wrapper(v value) {
	members, _ := syntax.ObjectOf(v.text)
	inner := members["resource"]
	w := &discoveryv3.Resource{}
	if _, ok := d.message(v.at(v.path, without(members, "resource")), w); !ok {
		return
	}
	if !d.checkWrapper(v, w, len(inner) > 0 && string(inner) != "null") {
		return
	}
	at := v.field("resource", inner)
	url, text, err := splitType(inner)
	mt, unknown := v.doc.source.resolver().FindMessageByURL(url)
	switch {
	case err == nil && unknown == nil && mt.Descriptor().FullName() == w.ProtoReflect().Descriptor().FullName():
		d.lose(at.finding(codeResourceWrapper, nestedWrapper, nestedWrapperHelp))
		return
	case err != nil || unknown != nil || xds.TypeOf(mt.Descriptor().FullName()) == nil:
		d.element(at) // says what is wrong
		return
	}
	d.resource(v.at(at.path, text), xds.TypeOf(mt.Descriptor().FullName()), w)
}

const (
	nestedWrapper     = "a Resource wrapper contains another Resource wrapper"
	nestedWrapperHelp = "remove one: Envoy unwraps only the outer one"
)

// checkWrapper reports what a wrapper says that files can't carry.
func (d *decoder) checkWrapper(v value, w *discoveryv3.Resource, holdsResource bool) bool {
	switch {
	case !holdsResource:
		d.lose(v.finding(codeResourceWrapper, "the Resource wrapper is empty", "Envoy would make an empty resource of it; write resource: {\"@type\": …}"))
		return false
	case w.GetName() != "" && w.GetResourceName() != nil:
		d.lose(v.field("resource_name", nil).finding(codeResourceWrapper, "the Resource wrapper has both name and resource_name", "keep one of them"))
		return false
	}
	if !d.checkConstraints(v, w) {
		return false
	}
	if w.GetTtl() != nil && !d.file.Source.streams {
		f := v.field("ttl", nil).finding(codeResourceWrapper, "ttl has no effect: Envoy ignores it in files", "remove it")
		f.Severity = diag.Warning
		d.report(f)
	}
	return true
}

// checkConstraints reports constraints of a wrapper that mean nothing, or that nobody reads: Envoy
// has no dynamic parameters.
func (d *decoder) checkConstraints(v value, w *discoveryv3.Resource) bool {
	c := w.GetResourceName().GetDynamicParameterConstraints()
	if c == nil {
		return true
	}
	at := v.field("resource_name", nil).field("dynamic_parameter_constraints", nil)
	if v.doc.source.byEnvoy {
		d.lose(at.finding(codeResourceWrapper, "dynamic parameter constraints can't be published", "remove the constraints: files do not support them"))
		return false
	}
	_, err := params.Parse(c)
	if invalid, ok := errors.AsType[*params.InvalidError](err); ok {
		d.lose(at.at(at.path.Join(xds.Path(invalid.Path)), nil).finding(codeResourceWrapper, invalid.Reason, ""))
		return false
	}
	return true
}

// wrapperName returns the name in a resource's wrapper.
func wrapperName(w *discoveryv3.Resource) string {
	if w.GetName() != "" {
		return w.GetName()
	}
	return w.GetResourceName().GetName()
}

// resource decodes one resource of a known type and takes it over.
func (d *decoder) resource(v value, t *xds.Type, w *discoveryv3.Resource) {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(t.Message)
	if err != nil {
		d.report(v.finding(codeUnknownType, err.Error(), ""))
		return
	}
	m := mt.New().Interface()
	lost, ok := d.message(v, m)
	if !ok {
		d.file.Partial = true
		return
	}
	d.accept(v, m, w, lost)
}

// message decodes a value strictly into m, as far as possible, and reports every fault. lost lists the parts
// that m lacks. ok is false if nothing could be read.
func (d *decoder) message(v value, m proto.Message) (lost xds.Lost, ok bool) {
	v = v.of(m)
	if v.unmarshal(m) != nil || v.isDoubtful(m) {
		proto.Reset(m)
		if lost, ok = repaired(d, v, m); !ok {
			return nil, false
		}
	}
	d.readByOthers(v, m)
	return lost, true
}

// of returns the value in the role of m.
func (v value) of(m proto.Message) value {
	v.as = &subject{t: xds.TypeOf(m.ProtoReflect().Descriptor().FullName()), text: v.text}
	return v
}

// isDoubtful reports whether protojson may have accepted a value that Envoy refuses: the value of an Any of
// Empty, or a TypedStruct that does not fit its type.
func (v value) isDoubtful(m proto.Message) bool {
	return bytes.Contains(v.text, []byte("google.protobuf.Empty")) || misfits(v, m)
}

// readByOthers reports values that Envoy reads in another way.
func (d *decoder) readByOthers(v value, m proto.Message) {
	if v.doc.source.byEnvoy {
		readsAlike(d, v, m)
	}
	if breaksLine(v.text) {
		brokenBase64(d, v, m)
	}
}

// plain decodes a resource in plain JSON that names its type. plain returns false for other values, and
// reports nothing about them.
func (d *decoder) plain(v value) bool {
	m, ok := plainjson.UnmarshalTyped(v.text, v.doc.source.resolver(), func(name protoreflect.FullName) bool { return xds.TypeOf(name) != nil })
	if !ok || v.isDoubtful(m) {
		return false
	}
	d.readByOthers(v.of(m), m)
	d.accept(v, m, nil, nil)
	return true
}

// unmarshal reads the value into an empty message, as protojson does.
func (v value) unmarshal(m proto.Message) error {
	r := v.doc.source.resolver()
	if plainjson.Unmarshal(v.text, m, r) {
		return nil
	}
	return r.json().Unmarshal(v.text, m)
}

// splitType returns the @type of an object and the object with that member
// blanked out, so that every offset stays what it was.
func splitType(text []byte) (url string, rest []byte, err error) {
	err = errors.New("the resource has no @type")
	first := true
	isObject := syntax.EachEntry(text, func(m syntax.JSONEntry) bool {
		if m.Name != "@type" {
			first = false
			return true
		}
		if !syntax.BeginsWith(m.Value, '"') || string(m.Value) == `""` {
			err = errors.New("the @type must be the text of a type URL")
			return false
		}
		url, rest, err = syntax.StringOf(m.Value), bytes.Clone(text), nil
		end := syntax.SpaceEnd(text, m.End)
		if !first || !syntax.BeginsWith(text[end:], ',') {
			end = m.End
		} else {
			end++ // the comma
		}
		for i := m.Start; i < end; i++ {
			if rest[i] != '\n' {
				rest[i] = ' '
			}
		}
		return false
	})
	if !isObject {
		err = fmt.Errorf("a resource is an object, this is %s", syntax.KindOfJSON(text))
	}
	return url, rest, err
}

func resourceTypes() string {
	var names []string
	for _, t := range xds.Types {
		names = append(names, string(t.Message))
	}
	return strings.Join(names, ", ")
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
	r.Owner = v.doc.source.owner
	r.Lost, r.Unset = lost, unset(v, m.ProtoReflect().Descriptor())
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
	files, urls := d.named != nil && mayNameFiles(v), d.named != nil && v.mayHoldURLNames()
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
	changed = files && inline(d, r, n, s)
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

// envelope keeps what a DiscoveryResponse says beside its resources.
func (d *decoder) envelope(m *discoveryv3.DiscoveryResponse) {
	resources := m.Resources
	m.Resources = nil
	d.file.Envelopes = append(d.file.Envelopes, proto.CloneOf(m))
	m.Resources = resources
}

// keepBootstrap keeps what a Bootstrap says beside its static resources.
func keepBootstrap(d *decoder, v value, rest *bootstrapv3.Bootstrap, lost xds.Lost) {
	r := xds.ResourceOf(xds.Key{Type: xds.Bootstrap}, rest)
	r.Lost, r.Unset, r.Origin = lost, unset(v, rest.ProtoReflect().Descriptor()), v.origin()
	r.Registry = v.doc.source.envoy.Registry()
	before := d.file.Bootstrap
	d.file.Bootstrap = r
	(&decoder{file: d.file}).settle(v, d.file.Bootstrap) // Envoy itself reads the named files
	if !v.doc.source.byEnvoy && (before == nil || proto.Size(before.Message()) == 0) {
		leftOut(d, v, rest)
	}
}

// leftOut says what a source tree does not read of a Bootstrap.
func leftOut(d *decoder, v value, rest *bootstrapv3.Bootstrap) {
	var names []string
	fields := rest.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); rest.ProtoReflect().Has(fd) && fd.Name() != "static_resources" {
			names = append(names, string(fd.Name()))
		}
	}
	if len(names) == 0 {
		return
	}
	f := d.file.Source.Finding(codeBootstrapRest, v.doc.RangeOf(steps(v.path.Field(names[0])), true),
		"of a bootstrap only static_resources is read, and this one has more: "+diag.Few(names, 4),
		"xdspub import makes a source tree of the file, and a bootstrap of the rest")
	f.Path = string(v.path.Field(names[0]))
	d.report(f)
}
