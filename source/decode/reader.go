package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// reader goes through a JSON text that protojson refuses, beside the type of message
// that it is read as. protojson stops at the first fault; the reader reports each of
// them, and writes the text again without them. In a file that Envoy itself reads, it
// writes what only Envoy's parser takes as protojson takes it, and reports a warning.
type reader struct {
	d    *decoder
	v    value
	out  bytes.Buffer
	lost xds.Lost
}

// place is where the reader stands: a path, and what the API says of it.
type place struct {
	path xds.Path
	// written is the name of the field, or the key, as the source has it.
	written string
	// object is the object that the field stands in.
	object *syntax.JSONNode
	spot
	// depth counts messages, an Any twice.
	depth int
}

// in is the place of a message of type md that stands at p.
func (p place) in(md protoreflect.MessageDescriptor) place {
	p.around, p.field = append(slices.Clip(p.around), md), nil
	p.depth++
	return p
}

// at is the place of a field of the message at p, which the source may call otherwise.
func (p place) at(name, written string, fd protoreflect.FieldDescriptor) place {
	if isName(name) {
		p.path = p.path.Field(name)
	} else {
		p.path = p.path.Key(name)
	}
	p.written, p.field = written, fd
	return p
}

// within is the place of an object's members.
func (p place) within(n *syntax.JSONNode) place { p.object = n; return p }

// element is the place of an element of the list at p, entry that of a map.
func (p place) element(i int) place    { p.path = p.path.Index(i); return p }
func (p place) entry(key string) place { p.path, p.written = p.path.Key(key), key; return p }

// read is the text of v, read as md, without its faults.
func (r *reader) read(md protoreflect.MessageDescriptor) []byte {
	root := syntax.ParseJSON(r.v.text)
	r.message(md, &root, place{written: fieldOf("")})
	return r.out.Bytes()
}

func (r *reader) raw(n *syntax.JSONNode) jsontext.Value { return r.v.text[n.Value:n.End] }

func (r *reader) kind(n *syntax.JSONNode) jsontext.Kind {
	return jsontext.Value(r.v.text[n.Value:]).Kind()
}

func (r *reader) byEnvoy() bool { return r.v.doc.source.byEnvoy }

// fault reports protojson's message about the value at p or, if key is set, about its name. The value is lost.
func (r *reader) fault(p place, key bool, reason string) bool {
	r.d.report(r.explain(p, key, reason))
	r.lost.Add(p.path)
	return false
}

func (r *reader) explain(p place, key bool, reason string) diag.Diagnostic {
	return r.v.explain(reason, p.path, p.written, key, func() spot { return p.spot })
}

// taken reports what protojson refuses, and Envoy's parser takes.
func (r *reader) taken(p place, key bool, reason string) {
	r.d.report(leniently(diag.List{r.explain(p, key, reason)})[0])
}

// unknown reports a field that its message does not have. meant is the field that was likely meant, or nil.
func (r *reader) unknown(p place, meant protoreflect.FieldDescriptor) {
	f := r.explain(p, true, "unknown field ")
	if meant != nil {
		r.v.doc.Fix(&f, steps(r.v.path.Join(p.path)), true, correctField(r.v.doc.source, p.written, meant, string(meant.Name())))
	}
	r.d.report(f)
}

// unexpected is what protojson says of a value of the wrong kind.
func (r *reader) unexpected(n *syntax.JSONNode) string {
	raw := r.raw(n)
	if k := r.kind(n); k == '{' || k == '[' {
		raw = raw[:1]
	}
	return "unexpected token " + string(raw)
}

// message reads a value as md. It returns false if nothing was written.
func (r *reader) message(md protoreflect.MessageDescriptor, n *syntax.JSONNode, p place) bool {
	if p.depth > syntax.MaxDepth {
		return r.fault(p, false, "exceeded max recursion depth")
	}
	if meant := r.structFor(n, p); meant != nil {
		md = meant
	}
	switch {
	case md.FullName() == "google.protobuf.Any":
		return r.any(n, p)
	case isSpecial(md):
		return r.special(md, n, p)
	case r.kind(n) != '{':
		return r.fault(p, false, r.unexpected(n))
	}
	r.out.WriteByte('{')
	r.members(md, n, p.in(md), nil)
	r.out.WriteByte('}')
	return true
}

// structFor returns the type that a value at p, the value of a TypedStruct, stands for if only Envoy's parser
// takes the value for one of that type. It returns nil for all other values.
func (r *reader) structFor(n *syntax.JSONNode, p place) protoreflect.MessageDescriptor {
	if p.field == nil || p.field.Name() != "value" || !xds.IsTypedStruct(p.field.ContainingMessage().FullName()) {
		return nil
	}
	url := p.object.Child("type_url")
	if url == nil {
		url = p.object.Child("typeUrl")
	}
	if url == nil {
		return nil
	}
	mt, err := r.v.doc.source.resolver().FindMessageByURL(syntax.Unquote(r.raw(url)))
	if err != nil || isSpecial(mt.Descriptor()) {
		return nil
	}
	md, raw := mt.Descriptor(), r.raw(n)
	if decodes(md, raw) == nil || decodes(md, (rewriter{r.v, r.byEnvoy()}).message(md, raw, p.path)) != nil {
		return nil
	}
	return md
}

// misfits reports whether the value of a TypedStruct in m is not one of its type.
func misfits(v value, m proto.Message) (found bool) {
	if !bytes.Contains(v.text, []byte("TypedStruct")) {
		return false
	}
	v.doc.source.envoy.Registry().Walk(m, func(n *xds.Node) {
		found = found || n.Err != nil && xds.IsTypedStruct(n.Name())
	})
	return found
}

// isSpecial reports whether JSON has a form of its own for a message, which stands under
// "value" in an Any.
func isSpecial(md protoreflect.MessageDescriptor) bool {
	switch md.FullName() {
	case "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue",
		"google.protobuf.Duration", "google.protobuf.Timestamp", "google.protobuf.FieldMask":
		return true
	}
	return isWrapper(md)
}

// special reads a value as a message with a form of its own.
func (r *reader) special(md protoreflect.MessageDescriptor, n *syntax.JSONNode, p place) bool {
	raw := r.raw(n)
	err := decodes(md, raw)
	if err == nil {
		r.out.Write(raw)
		return true
	}
	reason, _ := cleaned(err)
	if taken := (rewriter{r.v, r.byEnvoy()}).message(md, raw, p.path); decodes(md, taken) == nil {
		r.respelled(p, reason, taken, !r.saysNothing(n))
		return true
	}
	if taken := (rewriter{r.v, true}).message(md, raw, p.path); decodes(md, taken) == nil {
		return r.ambiguous(p, reason, taken)
	}
	return r.fault(p, false, reason)
}

// decodes tells why a text can't be read as a message of type md.
func decodes(md protoreflect.MessageDescriptor, text []byte) error {
	return resolver{}.json().Unmarshal(text, xds.New(md))
}

// any reads the message in an Any.
func (r *reader) any(n *syntax.JSONNode, p place) bool {
	if r.kind(n) != '{' {
		return r.fault(p, false, r.unexpected(n))
	}
	if len(n.Children) == 0 {
		r.out.WriteString("{}")
		return true
	}
	at := n.Child("@type")
	if at == nil || at.Name != "@type" {
		return r.noType(n, p)
	}
	var url string
	if json.Unmarshal(r.raw(at), &url) != nil || url == "" {
		return r.fault(p.at("@type", "@type", nil), false, "@type field is not text")
	}
	mt, err := r.v.doc.source.resolver().FindMessageByURL(url)
	if err != nil {
		r.lost.Add(p.path)
		return r.fault(p.at("@type", "@type", nil), false, fmt.Sprintf("unable to resolve %q", url))
	}
	r.out.WriteString(`{"@type":`)
	r.out.Write(r.raw(at))
	md := mt.Descriptor()
	p.depth++
	if special := isSpecial(md); special || md.FullName() == "google.protobuf.Empty" {
		r.payload(md, n, p.in(md), special)
	} else {
		r.members(md, n, p.in(md), at)
	}
	r.out.WriteByte('}')
	return true
}

// noType reports an Any that names no type.
func (r *reader) noType(n *syntax.JSONNode, p place) bool {
	r.lost.Add(p.path)
	f := r.explain(p, false, `missing "@type" field`)
	var fields []string
	members := make(map[string]json.RawMessage, len(n.Children))
	for i := range n.Children {
		c := &n.Children[i]
		fields, members[c.Name] = append(fields, c.Name), json.RawMessage(r.raw(c))
	}
	name := p.written // the key of a map
	if !p.field.IsMap() && p.object != nil {
		if c := p.object.Child("name"); c != nil {
			name = syntax.Unquote(r.raw(c))
		}
	}
	if t := typeFor(r.v.doc.source.envoy, p.spot, name, fields); t != "" {
		f.Help = fmt.Sprintf(`write "@type": %s%s`, xds.URLPrefix, t)
	}
	r.v.meantType(&f, p.path, members)
	r.d.report(f)
	return false
}

// payload reads a message with a form of its own in an Any. Without a value it is the
// empty one, to Envoy's parser too.
func (r *reader) payload(md protoreflect.MessageDescriptor, n *syntax.JSONNode, p place, special bool) {
	written := false
	present := make(map[protoreflect.FieldDescriptor]bool)
	if n.Child("value") != nil {
		present[md.Fields().ByName("value")] = true
	}
	for i := range n.Children {
		c := &n.Children[i]
		switch at := p.at(c.Name, c.Name, nil); {
		case c.Name == "@type":
		case c.Name != "value" || !special:
			r.unknown(at, meant(md, c.Name, present))
			r.lost.Add(at.path)
		case r.kind(c) == 'n' && md.FullName() == "google.protobuf.FieldMask":
			r.fault(at, false, r.unexpected(c)) // Envoy refuses null for this type alone
		case r.kind(c) == 'n' && md.FullName() != "google.protobuf.Value":
		default:
			start := r.out.Len()
			r.out.WriteString(`,"value":`)
			if written = r.message(md, c, at); !written {
				r.out.Truncate(start)
			}
		}
	}
	if special && !written {
		r.out.WriteString(`,"value":`)
		r.out.WriteString(emptyOf(md))
	}
}

// emptyOf is the JSON of an empty message with a form of its own.
func emptyOf(md protoreflect.MessageDescriptor) string {
	if md.FullName() == "google.protobuf.Value" {
		return "null"
	}
	text, err := protojson.Marshal(xds.New(md))
	if err != nil {
		return "null"
	}
	return string(text)
}

// members reads the members of an object as the fields of md, except skipped. If skipped is set, other members
// were written before.
func (r *reader) members(md protoreflect.MessageDescriptor, n *syntax.JSONNode, p place, skipped *syntax.JSONNode) {
	o := newFieldsRead(md, n, p)
	first := skipped == nil
	unknown := false // an unknown name without a likely field
	for i := range n.Children {
		c := &n.Children[i]
		if c == skipped {
			continue
		}
		if r.d.enough() {
			r.lost.Add(p.path)
			return
		}
		fd, at := r.memberField(o, c, i)
		if fd == nil {
			unknown = true
			continue
		}
		if !r.counts(o, c, i, at) {
			continue
		}
		start := r.out.Len()
		if !first {
			r.out.WriteByte(',')
		}
		fmt.Fprintf(&r.out, "%q:", fd.Name())
		if !r.field(fd, c, at) {
			r.out.Truncate(start)
			continue
		}
		first = false
	}
	if unknown { // the meant field is missing
		for i := range md.Fields().Len() {
			if _, ok := o.last[md.Fields().Get(i)]; !ok {
				r.lost.Add(p.path.Field(string(md.Fields().Get(i).Name())))
			}
		}
	}
}

// fieldsRead records the fields of an object while its members are read.
type fieldsRead struct {
	md     protoreflect.MessageDescriptor
	at     place
	last   map[protoreflect.FieldDescriptor]int // member of each field
	seen   map[protoreflect.FieldDescriptor]*syntax.JSONNode
	oneofs map[protoreflect.OneofDescriptor]*syntax.JSONNode
}

func newFieldsRead(md protoreflect.MessageDescriptor, n *syntax.JSONNode, at place) fieldsRead {
	o := fieldsRead{
		md: md, at: at.within(n),
		last:   make(map[protoreflect.FieldDescriptor]int, len(n.Children)),
		seen:   make(map[protoreflect.FieldDescriptor]*syntax.JSONNode, len(n.Children)),
		oneofs: make(map[protoreflect.OneofDescriptor]*syntax.JSONNode),
	}
	for i := range n.Children {
		if fd := fieldNamed(md, n.Children[i].Name); fd != nil {
			o.last[fd] = i
		}
	}
	return o
}

// memberField returns the field that the i-th member of an object is, or is meant to be, and its place; nil if
// the field is unclear.
func (r *reader) memberField(o fieldsRead, c *syntax.JSONNode, i int) (protoreflect.FieldDescriptor, place) {
	if fd := fieldNamed(o.md, c.Name); fd != nil {
		return fd, o.at.at(string(fd.Name()), c.Name, fd)
	}
	fd := meant(o.md, c.Name, o.last)
	r.unknown(o.at.at(c.Name, c.Name, nil), fd)
	if fd != nil {
		o.last[fd] = i
		r.lost.Add(o.at.path.Field(string(fd.Name()))) // a person has to decide
	}
	return fd, o.at.at(c.Name, c.Name, fd)
}

// counts reports whether the i-th member of an object is to be read. A member of a field that was read
// already, or that may not stand beside another field, is not read.
func (r *reader) counts(o fieldsRead, c *syntax.JSONNode, i int, at place) bool {
	fd := at.field
	if earlier := o.seen[fd]; earlier != nil && earlier.Name != c.Name { // one name twice is reported already
		again, reason := o.at.at(c.Name, c.Name, fd), "duplicate field "+string(fd.Name())
		if !r.byEnvoy() {
			return r.fault(again, true, reason)
		}
		r.taken(again, true, reason)
	}
	o.seen[fd] = c
	if o.last[fd] != i && r.byEnvoy() { // Envoy's parser takes the last one
		return false
	}
	if r.kind(c) == 'n' && !takesNull(fd) {
		return false
	}
	if oneof := fd.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
		if other := o.oneofs[oneof]; other != nil {
			r.bothSet(at, c, other)
			return false
		}
		o.oneofs[oneof] = c
	}
	return true
}

func takesNull(fd protoreflect.FieldDescriptor) bool {
	return !fd.IsList() && !fd.IsMap() &&
		(fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value" || fd.Enum() != nil && fd.Enum().FullName() == "google.protobuf.NullValue")
}

// meant returns the field that an unknown name likely means, if the guess is clear and the field is absent.
// The value is then read, too, so that a misspelled field causes no findings about missing values.
func meant[V any](md protoreflect.MessageDescriptor, name string, present map[protoreflect.FieldDescriptor]V) protoreflect.FieldDescriptor {
	if envoyapi.Removed(md.FullName(), name) != "" {
		return nil
	}
	near := nearestField(md, name)
	if _, ok := present[near]; ok || !isName(name) || name[0] == '@' {
		return nil
	}
	return near
}

// bothSet reports two fields that exclude each other.
func (r *reader) bothSet(p place, c, other *syntax.JSONNode) {
	oneof := p.field.ContainingOneof()
	f := r.explain(p, true, fmt.Sprintf("error parsing %q, oneof %s is already set", c.Name, oneof.FullName()))
	f.Message = bothSet(c.Name, other.Name, oneof)
	f.Related = []diag.Related{{Position: r.v.doc.RangeOf(steps(r.v.path.Join(beside(p.path, other.Name))), true).Position, Message: other.Name + " is here"}}
	r.d.report(f)
	r.lost.Add(p.path)
}

func bothSet(one, other string, oneof protoreflect.OneofDescriptor) string {
	return fmt.Sprintf("%s conflicts with %s: the %s of %s can be only one of them", one, other, oneof.Name(), oneof.Parent().FullName())
}

// beside is the path of another field of the same message.
func beside(path xds.Path, name string) xds.Path {
	return path[:strings.LastIndexByte(string(path), '.')+1] + xds.Path(name)
}

// field reads the value of a field. It returns false if nothing was written.
func (r *reader) field(fd protoreflect.FieldDescriptor, n *syntax.JSONNode, p place) bool {
	switch {
	case fd.IsMap():
		return r.entries(fd, n, p)
	case !fd.IsList():
		return r.single(fd, n, p)
	case r.kind(n) != '[' && !r.isElement(fd, n):
		return r.fault(p, false, r.unexpected(n))
	case r.kind(n) != '[':
		r.withoutBrackets(n, p)
		return r.list(fd, []*syntax.JSONNode{n}, p)
	}
	return r.list(fd, r.elements(n, p), p)
}

// isElement reports whether one value can stand for a list of it. Envoy's parser takes any object for
// a message; in a source tree it has to have a field of the message.
func (r *reader) isElement(fd protoreflect.FieldDescriptor, n *syntax.JSONNode) bool {
	if fd.Message() == nil || isSpecial(fd.Message()) {
		return r.kind(n) != '{'
	}
	return r.kind(n) == '{' && (r.byEnvoy() || slices.ContainsFunc(n.Children, func(c syntax.JSONNode) bool {
		return c.Name == "@type" || fieldNamed(fd.Message(), c.Name) != nil
	}))
}

// elements are those of a list. Envoy's parser takes the elements of a list in it for its own.
func (r *reader) elements(n *syntax.JSONNode, p place) (list []*syntax.JSONNode) {
	for i := range n.Children {
		c := &n.Children[i]
		if r.byEnvoy() && r.kind(c) == '[' {
			r.taken(p, false, r.unexpected(c))
			list = append(list, r.elements(c, p)...)
			continue
		}
		list = append(list, c)
	}
	return list
}

// list reads the elements of a list. An empty element replaces an unreadable one, so that the others keep
// their indexes.
func (r *reader) list(fd protoreflect.FieldDescriptor, elements []*syntax.JSONNode, p place) bool {
	r.out.WriteByte('[')
	for i, n := range elements {
		if r.d.enough() {
			r.lost.Add(p.path)
			break
		}
		if i > 0 {
			r.out.WriteByte(',')
		}
		start := r.out.Len()
		if !r.element(fd, n, p.element(i)) {
			r.out.Truncate(start)
			r.out.WriteString(standIn(fd))
		}
	}
	r.out.WriteByte(']')
	return true
}

// standIn is JSON for an empty element of a list or a map.
func standIn(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		if isSpecial(fd.Message()) {
			return emptyOf(fd.Message())
		}
		return "{}"
	case protoreflect.StringKind, protoreflect.BytesKind:
		return `""`
	case protoreflect.BoolKind:
		return "false"
	}
	return "0"
}

// element reads an element of a list or a map; null is none, but to Envoy's parser an
// empty one.
func (r *reader) element(fd protoreflect.FieldDescriptor, n *syntax.JSONNode, p place) bool {
	isMessage := fd.Kind() == protoreflect.MessageKind
	if r.kind(n) != 'n' || isMessage && fd.Message().FullName() == "google.protobuf.Value" {
		return r.single(fd, n, p)
	}
	reason := fmt.Sprintf("invalid value for %v field %s: null", fd.Kind(), fd.JSONName())
	if isMessage {
		reason = r.unexpected(n)
	}
	if !r.byEnvoy() || !isMessage && fd.Kind() != protoreflect.StringKind && fd.Kind() != protoreflect.EnumKind {
		return r.fault(p, false, reason)
	}
	r.taken(p, false, reason)
	r.out.WriteString(standIn(fd))
	return true
}

// entries reads the entries of a map.
func (r *reader) entries(fd protoreflect.FieldDescriptor, n *syntax.JSONNode, p place) bool {
	if r.kind(n) != '{' {
		return r.fault(p, false, r.unexpected(n))
	}
	r.out.WriteByte('{')
	first := true
	for i := range n.Children {
		c := &n.Children[i]
		if r.d.enough() {
			r.lost.Add(p.path)
			break
		}
		at := p.entry(c.Name)
		if key, _ := jsontext.AppendQuote(nil, c.Name); fd.MapKey().Kind() != protoreflect.StringKind && !isKeyOf(fd, key) {
			r.fault(at, true, fmt.Sprintf("invalid value for %v key: %s", fd.MapKey().Kind(), key))
			continue
		}
		start := r.out.Len()
		if !first {
			r.out.WriteByte(',')
		}
		name, _ := jsontext.AppendQuote(nil, c.Name) // was read as a string: can be written
		r.out.Write(append(name, ':'))
		if !r.element(fd.MapValue(), c, at) {
			r.out.Truncate(start)
			continue
		}
		first = false
	}
	r.out.WriteByte('}')
	return true
}

// isKeyOf reports whether a quoted text can be a key of a map.
func isKeyOf(fd protoreflect.FieldDescriptor, key []byte) bool {
	return readsAs(fd, fmt.Appendf(nil, `{%s:%s}`, key, standIn(fd.MapValue()))) == nil
}

// single reads one value of a field.
func (r *reader) single(fd protoreflect.FieldDescriptor, n *syntax.JSONNode, p place) bool {
	if fd.Kind() == protoreflect.MessageKind {
		return r.message(fd.Message(), n, p)
	}
	raw := r.raw(n)
	if r.plain(fd, n) {
		r.out.Write(raw)
		return true
	}
	err := readsAlone(fd, raw)
	if err == nil {
		r.out.Write(raw)
		return true
	}
	reason, _ := cleaned(err)
	if taken := (rewriter{r.v, r.byEnvoy()}).single(fd, raw, p.path); readsAlone(fd, taken) == nil {
		r.respelled(p, reason, taken, true)
		return true
	}
	r.fault(p, false, reason)
	if fd.Kind() != protoreflect.EnumKind || r.kind(n) != '"' {
		return false
	}
	_, meant := p.suggestValue(syntax.Unquote(raw))
	if meant.Right == "" {
		return false
	}
	fmt.Fprintf(&r.out, "%q", meant.Right) // no other finding follows from the default
	return true
}

// plain reports whether a value fits its field at a glance: most do.
func (r *reader) plain(fd protoreflect.FieldDescriptor, n *syntax.JSONNode) bool {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return r.kind(n) == '"'
	case protoreflect.BoolKind:
		return r.kind(n) == 't' || r.kind(n) == 'f'
	}
	return false
}

// readsAlone tells why protojson can't read a value as one of a field.
func readsAlone(fd protoreflect.FieldDescriptor, raw jsontext.Value) error {
	if entry, ok := fd.Parent().(protoreflect.MessageDescriptor); ok && entry.IsMapEntry() {
		// The field of the map is not known here; a map of such values reads them alike.
		return readsAsValue(entry, raw)
	}
	if fd.IsList() {
		raw = slices.Concat([]byte{'['}, raw, []byte{']'})
	}
	return readsAs(fd, raw)
}

// readsAsValue is readsAlone for the value of a map.
func readsAsValue(entry protoreflect.MessageDescriptor, raw jsontext.Value) error {
	owner := entry.Parent().(protoreflect.MessageDescriptor)
	for i := range owner.Fields().Len() {
		if fd := owner.Fields().Get(i); fd.IsMap() && fd.Message() == entry {
			key := `"1"`
			if fd.MapKey().Kind() == protoreflect.BoolKind {
				key = `"true"`
			}
			return readsAs(fd, slices.Concat([]byte("{"+key+":"), raw, []byte("}")))
		}
	}
	return nil
}

// readsAs tells why protojson can't read a text as a whole field.
func readsAs(fd protoreflect.FieldDescriptor, raw jsontext.Value) error {
	return resolver{}.json().Unmarshal(fmt.Appendf(nil, `{%q:%s}`, fd.Name(), raw), xds.New(fd.ContainingMessage()))
}

// repaired decodes v into m as far as possible, and reports every fault. ok is false if nothing could be read.
func repaired(d *decoder, v value, m proto.Message) (lost xds.Lost, ok bool) {
	r := reader{d: d, v: v}
	text := r.read(m.ProtoReflect().Descriptor())
	if len(text) == 0 {
		return nil, false // reported
	}
	if err := r.v.doc.source.resolver().json().Unmarshal(text, m); err != nil {
		v.text = text
		d.report(v.decodeError(m, err))
		return nil, false
	}
	return r.lost, true
}
