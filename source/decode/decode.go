// Package decode turns the text of a file into messages of Envoy's API, and remembers where each field stands. It is
// stricter than Envoy: where Envoy would drop a value, or read a value otherwise than its author meant, the package
// reports an error with a place. It reads no file of a source tree by itself: Files does.
//
//	file := decode.NewSource("web.yaml", syntax.YAML, text, decode.SourceOptions{}).Decode(nil)
package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/diag"
	"xdspub/internal/parallel"
	"xdspub/source/plainjson"
	"xdspub/source/syntax"
	"xdspub/xds"
	"xdspub/xds/params"
)

// decoder collects what one file holds.
type decoder struct {
	file  *File
	named Files // the files that resources name; nil leaves these files alone
	any   bool  // a document was met
	// lost is what the resources of a text proto lack, by their paths.
	lost map[xds.Path]xds.Lost
}

func (d *decoder) report(list ...diag.Diagnostic) { d.file.Findings.Add(list...) }

// enough reports whether the decoder should stop: the file has too many errors, or ctx has ended. Call enough
// only if more remains to be read.
func (d *decoder) enough() bool {
	if d.file.Findings.HasRoom(diag.Error) && !d.ended() {
		return false
	}
	d.file.giveUp()
	return true
}

// ended reports whether nobody waits for the result any more.
func (d *decoder) ended() bool { return d.named != nil && d.named.Ended() }

// lose is report for an unreadable resource, or an unreadable part that may be a resource.
func (d *decoder) lose(f diag.Diagnostic) {
	d.report(f)
	d.file.Partial = true
}

// unreadable records an unreadable document. The document may hold resources if Envoy itself reads its file,
// or if its text resembles Envoy's; templates and files of other programs hold none.
func (d *decoder) unreadable() {
	d.file.Partial = d.file.Partial || d.file.Source.byEnvoy || envoyText.Match(d.file.Source.Data())
}

// value is a JSON value of a document, with its path in the source.
type value struct {
	doc  *document
	text []byte
	path xds.Path
	as   *subject
}

// subject is the resource that a value is decoded as.
type subject struct {
	t    *xds.Type // nil for none
	text []byte
	name func() string // made when asked for
}

func (s *subject) resource() diag.Resource {
	if s == nil || s.t == nil {
		return diag.Resource{}
	}
	if s.name == nil {
		s.name = sync.OnceValue(func() string { return nameIn(s.text, s.t) })
	}
	return diag.Resource{Type: s.t.URL(), Name: s.name()}
}

func (v value) at(path xds.Path, text []byte) value { return value{doc: v.doc, text: text, path: path} }

func (v value) origin() origin { return origin{v.doc.source, v.doc.Index, v.path} }

func (v value) field(name string, text []byte) value {
	return v.at(v.path.Field(name), text)
}

func (v value) finding(code diag.Code, message, help string) diag.Diagnostic {
	f := v.doc.source.Finding(code, v.doc.RangeOf(steps(v.path), false), message, help)
	f.Path = string(v.path)
	f.Sensitive = slices.ContainsFunc(steps(v.path), v.doc.source.MayBeSecret)
	return f
}

// document takes the resources out of one document, of any kind that the source
// tree can hold. text is its JSON form.
func (d *decoder) document(doc *document, text []byte) {
	d.any = true
	v := value{doc: doc, text: text}
	switch s := doc.source; {
	case s.isBootstrap:
		d.bootstrapDocument(v)
		return
	case s.byEnvoy:
		d.subscribedDocument(v)
		return
	}
	switch jsontext.Value(text).Kind() {
	case '[':
		d.list(v)
	case '{':
		d.object(v)
	default:
		d.lose(v.noObject())
	}
}

const documentHelp = `a document is a resource ("@type": …), a list of resources, a DiscoveryResponse (resources: […]) or a Bootstrap (static_resources: …). To skip this file, list it under ignore: in xdspub.yaml`

// noObject returns the finding about a document that is a text, a number or empty.
func (v value) noObject() diag.Diagnostic {
	if m := v.doc.ForeignText(); m != nil {
		return m.Finding(v.doc.Document)
	}
	return v.finding(syntax.CodeUnknownDocument, fmt.Sprintf("the document is %s, not an xDS resource", syntax.KindOfJSON(v.text)), documentHelp)
}

func (d *decoder) object(v value) {
	members, _ := syntax.ObjectOf(v.text)
	name := protoreflect.FullName("")
	typed := has(members, "@type")
	if typed {
		if mt, err := v.doc.source.resolver().FindMessageByURL(urlIn(members)); err == nil {
			name = mt.Descriptor().FullName()
		}
	}
	if !typed {
		if f := v.foreignDocument(members); f != nil {
			d.foreign(v, v.notXDS(*f), f.key)
			return
		}
	}
	switch {
	case name == "envoy.service.discovery.v3.DiscoveryResponse", !typed && has(members, "resources"):
		d.response(v, members)
	case name == "envoy.config.bootstrap.v3.Bootstrap", !typed && isBootstrap(members):
		d.bootstrap(v, members, nil)
	case typed:
		d.elements([]value{v}) // reports an unknown type, too
	default:
		help, ok := typeMissing(members)
		if !ok {
			help = documentHelp
		}
		f := v.finding(syntax.CodeUnknownDocument, "the document is not an xDS resource: it has no @type, resources or static_resources", help)
		v.meantType(&f, "", members)
		d.foreign(v, f, ok || typeOf(members) != nil)
	}
}

// foreign reports a document that is of another program, as far as can be seen: no resource is
// missing for it, such as in a git work tree with all kinds of files. ours says that it holds
// something of Envoy's nevertheless.
func (d *decoder) foreign(v value, f diag.Diagnostic, ours bool) {
	if ours || envoyText.Match(v.text) {
		d.lose(f)
		return
	}
	d.report(f)
}

// urlIn returns the @type of an object; "" unless the @type is a text.
func urlIn(members map[string]json.RawMessage) string {
	if !syntax.BeginsWith(members["@type"], '"') {
		return ""
	}
	return syntax.StringOf(members["@type"])
}

func has(members map[string]json.RawMessage, name string) bool {
	_, ok := members[name]
	return ok
}

// isBootstrap reports whether an object without @type has a field of a Bootstrap.
func isBootstrap(members map[string]json.RawMessage) bool {
	for name := range members {
		if isBootstrapField(name) {
			return true
		}
	}
	return false
}

// list takes over a list of resources.
func (d *decoder) list(v value) {
	items, ok := syntax.ListOf(v.text)
	if !ok {
		f := v.finding(syntax.CodeInvalidValue, "a list of resources is wanted here", "")
		if v.doc.source.byEnvoy && jsontext.Value(v.text).Kind() == '{' {
			d.report(leniently(diag.List{f})[0])
			d.elements([]value{v})
			return
		}
		d.lose(f)
		return
	}
	values := make([]value, len(items))
	for i, item := range items {
		values[i] = v.at(v.path.Index(i), item)
	}
	d.elements(values)
}

// response takes over the resources of a DiscoveryResponse; the rest of it is
// only checked: version, nonce and order are made when it is published.
func (d *decoder) response(v value, members map[string]json.RawMessage) {
	resources := members["resources"]
	rest := without(members, "resources", "@type")
	var around discoveryv3.DiscoveryResponse
	if _, ok := d.message(v.at(v.path, rest), &around); ok {
		d.envelope(&around)
	}
	d.file.SaysNone = string(resources) == "[]"
	if resources != nil && string(resources) != "null" {
		d.list(v.field("resources", resources))
	}
}

// bootstrap takes the static resources of a Bootstrap as resources of the tree, so that users can move a
// static configuration into a tree. The rest of the Bootstrap is only checked, because it stays in Envoy's own
// bootstrap. members lacks the lists in decoded.
func (d *decoder) bootstrap(v value, members map[string]json.RawMessage, decoded map[string][]*File) {
	v.doc.isBootstrap = true
	key := "static_resources"
	if !has(members, key) && has(members, "staticResources") {
		key = "staticResources"
	}
	static := members[key]
	if key == "static_resources" && has(members, "staticResources") {
		static, key = nil, "" // the message is refused: one field in two spellings
	}
	rest := &bootstrapv3.Bootstrap{}
	if lost, ok := d.message(v.at(v.path, without(members, key, "@type")), rest); ok {
		d.keepBootstrap(v, rest, lost)
	}
	if static == nil || string(static) == "null" {
		return
	}
	in := v.field(key, static)
	lists, ok := syntax.ObjectOf(static)
	if !ok {
		d.lose(in.finding(syntax.CodeInvalidValue, "static_resources is an object of lists", ""))
		return
	}
	d.message(v.at(in.path, without(lists, "listeners", "clusters", "secrets")), &bootstrapv3.Bootstrap_StaticResources{})
	for _, s := range staticResources {
		if parts, ok := decoded[s.name]; ok {
			d.takeOver(parts)
			continue
		}
		raw := lists[s.name]
		if raw == nil || string(raw) == "null" {
			continue
		}
		at := in.field(s.name, raw)
		items, ok := syntax.ListOf(raw)
		if !ok {
			f := at.finding(syntax.CodeInvalidValue, fmt.Sprintf("%s is a list", s.name), "")
			if !v.doc.source.byEnvoy || jsontext.Value(raw).Kind() != '{' {
				d.lose(f)
				continue
			}
			d.report(leniently(diag.List{f})[0])
			items = []json.RawMessage{raw}
		}
		d.each(len(items), func(one *decoder, i int) { one.static(v.at(at.path.Index(i), items[i]), s.of) })
	}
}

// static takes over a static resource.
func (d *decoder) static(v value, t *xds.Type) {
	if d.isObject(v) {
		d.resource(v, t, nil)
	}
}

// without is the JSON of members without some.
func without(members map[string]json.RawMessage, names ...string) []byte {
	rest := make(map[string]json.RawMessage, len(members))
	for k, raw := range members {
		if !slices.Contains(names, k) {
			rest[k] = raw
		}
	}
	text, _ := json.Marshal(rest) // raw values that were parsed before: can't fail
	return text
}

// elements decodes resources that name their type.
func (d *decoder) elements(values []value) {
	d.each(len(values), func(one *decoder, i int) { one.element(values[i]) })
}

// each calls f for 0 … n-1, each with a decoder of its own if there are several, side by side,
// and takes their results over in order.
func (d *decoder) each(n int, f func(one *decoder, i int)) {
	const batch = 64
	if n == 1 {
		if !d.enough() {
			f(d, 0)
		}
		return
	}
	d.takeOver(d.inParts((n+batch-1)/batch, func(one *decoder, p int) {
		for i := p * batch; i < min(n, (p+1)*batch) && !one.enough(); i++ {
			f(one, i)
		}
	}))
}

// inParts calls f for 0 … n-1, each with a decoder of its own, side by side, and returns
// what they have found, in order, up to where there are too many errors.
func (d *decoder) inParts(n int, f func(one *decoder, p int)) []*File {
	parts := make([]*File, n)
	count := parallel.Run(n, syntax.MaxFindings, func(p int) (errors int) {
		parts[p] = NewFile(d.file.Source)
		f(&decoder{file: parts[p], named: d.named, lost: d.lost}, p)
		return parts[p].Diagnostics().Count(diag.Error)
	})
	if count < n {
		parts[count-1].giveUp()
	}
	return parts[:count]
}

// takeOver takes over what several decoders have found, in order.
func (d *decoder) takeOver(parts []*File) {
	for _, p := range parts {
		d.file.Resources = append(d.file.Resources, p.Resources...)
		d.file.Findings.Take(&p.Findings)
		d.file.Inlined = append(d.file.Inlined, p.Inlined...)
		d.file.Partial = d.file.Partial || p.Partial
		d.file.joined += p.joined
	}
}

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
		v.doc.Fix(f, tokens, true, diag.Correction{Wrong: name, Right: "@type"})
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
		if lost, ok = d.repaired(v, m); !ok {
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
	return bytes.Contains(v.text, []byte("google.protobuf.Empty")) || v.misfits(m)
}

// readByOthers reports values that Envoy reads in another way.
func (d *decoder) readByOthers(v value, m proto.Message) {
	if v.doc.source.byEnvoy {
		d.readsAlike(v, m)
	}
	if breaksLine(v.text) {
		d.brokenBase64(v, m)
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
