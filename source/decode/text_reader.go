package decode

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// textReader goes through the tree of a text proto beside the type of message that it is
// read as. prototext stops at the first fault, and passes over the names that the API has
// reserved; the reader reports all of them, and blanks them out.
type textReader struct {
	d    *decoder
	doc  *document
	root proto.Message
	// sound says that prototext takes the whole text: only names are left to judge.
	sound bool
	// text is a copy of the document's, made when something is blanked out.
	text []byte
}

// textPlace is where the reader stands.
type textPlace struct {
	// owner is the path of the resource in the document, path that in the resource.
	owner, path xds.Path
	spot
	secret bool
	packed bool // the place is inside an Any
	source *Source
}

func (p textPlace) whole() xds.Path { return p.owner.Join(p.path) }

// in is the place of a message of type md that stands at p. A resource of its own begins
// below a response, a wrapper, and the static resources of a bootstrap.
func (p textPlace) in(md protoreflect.MessageDescriptor) textPlace {
	if len(p.around) > 0 && xds.TypeOf(md.FullName()) != nil {
		switch p.around[0].FullName() {
		case "envoy.service.discovery.v3.DiscoveryResponse", "envoy.service.discovery.v3.Resource":
			p.owner, p.path = p.whole(), ""
		case xds.Bootstrap.Message:
			if strings.HasPrefix(string(p.path), "static_resources.") {
				p.owner, p.path = p.whole(), ""
			}
		}
	}
	p.secret = p.secret || md.FullName() == xds.Secret.Message
	p.packed = p.packed || md.FullName() == "google.protobuf.Any"
	if p.path == "" && p.owner != "" { // names are looked for no further out
		p.around = nil
	}
	p.around, p.field = append(slices.Clip(p.around), md), nil
	return p
}

func (p textPlace) at(name string, fd protoreflect.FieldDescriptor) textPlace {
	p.path, p.field = p.path.Field(name), fd
	p.secret = p.secret || p.source.MayBeSecret(name)
	return p
}

// read is the document without its faults.
func (r *textReader) read() []byte {
	r.fields(&r.doc.Tree().TextNode, textPlace{source: r.doc.source}.in(r.root.ProtoReflect().Descriptor()))
	if r.text != nil {
		return r.text
	}
	return r.doc.Text
}

// lose records that the value at a place is lost.
func (r *textReader) lose(p textPlace) {
	lost := r.d.lost[p.owner]
	lost.Add(p.path)
	r.d.lost[p.owner] = lost
}

// fault reports what prototext says of a part of a node; what it holds is lost.
func (r *textReader) fault(n *syntax.TextNode, at syntax.Span, p textPlace, reason string) {
	r.lose(p)
	r.d.report(r.doc.explain(r.root, at, p.spot, said{fieldOf(p.path), p.secret}, reason))
	r.blank(n, p.field)
}

// blank takes a node out of the text. An empty element stands in for one of a list: the
// others keep their places.
func (r *textReader) blank(n *syntax.TextNode, fd protoreflect.FieldDescriptor) {
	standIn := ""
	end := n.End
	if n.Key < 0 {
		standIn = textStandIn(fd)
	} else if rest := bytes.TrimLeft(r.doc.Text[end:], " \t\r\n"); len(rest) > 0 && (rest[0] == ',' || rest[0] == ';') {
		end = len(r.doc.Text) - len(rest) + 1
	}
	r.replace(n.Start(), end, standIn)
}

// replace puts another text instead of a part, with spaces up to its length.
func (r *textReader) replace(start, end int, with string) {
	if r.text == nil {
		r.text = bytes.Clone(r.doc.Text)
	}
	for i := start; i < end; i++ {
		switch {
		case i-start < len(with):
			r.text[i] = with[i-start]
		case r.text[i] != '\n':
			r.text[i] = ' '
		}
	}
}

func textStandIn(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return "{}"
	case protoreflect.StringKind, protoreflect.BytesKind:
		return `""`
	case protoreflect.BoolKind:
		return "f"
	}
	return "0"
}

// fields reads the fields of a message.
func (r *textReader) fields(n *syntax.TextNode, p textPlace) {
	md := p.around[len(p.around)-1]
	present := make(map[protoreflect.FieldDescriptor]int, len(n.Children)) // and how many values
	for i := range n.Children {
		if fd := md.Fields().ByTextName(n.Children[i].Name); fd != nil {
			present[fd] = 0
		}
	}
	oneofs := make(map[protoreflect.OneofDescriptor]*syntax.TextNode)
	unknown := false
	for i := range n.Children {
		c := &n.Children[i]
		if r.d.enough() {
			r.lose(p)
			return
		}
		if c.IsType() {
			r.any(c, p)
			continue
		}
		fd := md.Fields().ByTextName(c.Name)
		if fd == nil {
			if md.ReservedNames().Has(protoreflect.Name(c.Name)) && r.reserved(c, p) {
				continue
			}
			fd = meant(md, c.Name, present)
			r.unknown(c, p, fd)
			if fd == nil {
				unknown = true
				r.blank(c, nil)
				continue
			}
			present[fd] = 0
			r.lose(p.at(string(fd.Name()), fd)) // a person has to decide
			if !r.rename(c, fd) {
				continue
			}
		}
		at := p.at(c.Name, fd)
		if oneof := fd.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
			if other := oneofs[oneof]; other != nil && other.Name != c.Name {
				r.bothSet(c, other, at)
				continue
			}
			oneofs[oneof] = c
		}
		present[fd] = r.field(fd, c, at, present[fd])
	}
	if unknown { // the meant field is missing
		for i := range md.Fields().Len() {
			if fd := md.Fields().Get(i); present[fd] == 0 {
				r.lose(p.at(string(fd.Name()), fd))
			}
		}
	}
}

// any reads the message in an Any.
func (r *textReader) any(n *syntax.TextNode, p textPlace) {
	md := p.around[len(p.around)-1]
	if md.FullName() != "google.protobuf.Any" {
		r.unknown(n, p, nil)
		r.blank(n, nil)
		return
	}
	mt, err := r.doc.source.resolver().FindMessageByURL(n.URL())
	switch {
	case err != nil:
		r.fault(n, n.NameSpan(r.doc.Text), p, fmt.Sprintf("unable to resolve message [%s]", n.URL()))
		if p.path.IsElement("resources") || p.path == "resource" {
			r.d.lost[p.whole()] = xds.Lost{"": true}
			r.d.file.Partial = true
		}
	case !n.Message:
		r.fault(n, syntax.Span{From: n.Value, To: n.End}, p, "unexpected token: "+string(r.doc.Text[n.Value:n.End]))
	default:
		r.fields(n, p.in(mt.Descriptor()))
	}
}

// unknown reports a field that the message at p does not have. meant may be the field that was meant.
func (r *textReader) unknown(c *syntax.TextNode, p textPlace, meant protoreflect.FieldDescriptor) {
	s := p.spot
	f := r.doc.source.Finding(codeUnknownField, r.doc.Span(c.NameSpan(r.doc.Text)), fmt.Sprintf("unknown field %q", c.Name), s.suggestField(c.Name))
	switch md := p.around[len(p.around)-1]; {
	case f.Help != "":
	case !r.doc.source.byEnvoy && md.ReservedNames().Has(protoreflect.Name(c.Name)):
		f.Help = "the API had this field once: remove it: Envoy would skip it with its content"
	default:
		f.Help = r.doc.source.reaction(drops) + "; check the spelling and the depth"
	}
	f.Resource, f.Path = r.doc.resourceAt(r.root, c.Key)
	if meant != nil {
		r.doc.fixLiteral(&f, c.NameLiteral(r.doc.Text), correctField(r.doc.source, c.Name, meant, meant.TextName()))
	}
	r.d.report(f)
}

// rename writes the name of the likely field over an unknown name.
func (r *textReader) rename(c *syntax.TextNode, fd protoreflect.FieldDescriptor) bool {
	name := fd.TextName()
	end := c.Key + len(c.Name)
	for end < c.Value && (r.doc.Text[end] == ' ' || r.doc.Text[end] == ':') { // some room
		end++
	}
	colon := ""
	if !c.Message {
		colon = ":"
	}
	if len(name)+len(colon) > end-c.Key {
		r.blank(c, nil)
		return false
	}
	r.replace(c.Key, end, name+colon)
	return true
}

// reserved reports a name of an earlier version of the API. Envoy's parser skips the name with its content.
// reserved returns false if the name is a name like any other.
func (r *textReader) reserved(c *syntax.TextNode, p textPlace) bool {
	if !r.doc.source.byEnvoy {
		return false
	}
	f := r.doc.source.Finding(codeUnknownField, r.doc.Span(c.NameSpan(r.doc.Text)), fmt.Sprintf("%q is no longer a field: Envoy "+
		"skips it with its content", c.Name), "remove it")
	f.Severity = diag.Warning
	f.Resource, f.Path = r.doc.resourceAt(r.root, c.Key)
	r.d.report(f)
	r.blank(c, nil)
	return true
}

// bothSet reports two fields that exclude each other.
func (r *textReader) bothSet(c, other *syntax.TextNode, p textPlace) {
	oneof := p.field.ContainingOneof()
	f := r.doc.explain(r.root, c.NameSpan(r.doc.Text), p.spot, said{fieldOf(p.path), p.secret}, fmt.Sprintf("error parsing %q, "+
		"oneof %s is already set", c.Name, oneof.FullName()))
	f.Message = bothSet(c.Name, other.Name, oneof)
	f.Related = []diag.Related{{Position: r.doc.Point(other.Key).Position, Message: other.Name + " is here"}}
	r.d.report(f)
	r.lose(p)
	r.blank(c, nil)
}

// field reads the values of a field that had n values before, and returns how many it
// has now.
func (r *textReader) field(fd protoreflect.FieldDescriptor, c *syntax.TextNode, p textPlace, n int) int {
	if !fd.IsList() && !fd.IsMap() {
		if n > 0 {
			r.fault(c, c.NameSpan(r.doc.Text), p, fmt.Sprintf("non-repeated field %q is repeated", c.Name))
			return n
		}
		r.value(fd, c, p)
		return 1
	}
	for _, v := range c.AppendValues(nil) {
		at := p
		if fd.IsMap() {
			at.path = at.path.Key(r.keyOf(v))
		} else {
			at.path = at.path.Index(n)
		}
		r.value(fd, v, at)
		n++
	}
	return n
}

// keyOf is the key of an entry of a map.
func (r *textReader) keyOf(entry *syntax.TextNode) string {
	for _, key := range entry.Named("key") {
		return syntax.Unquoted(r.doc.Text[key.Value:key.End])
	}
	return ""
}

// value reads one value of a field.
func (r *textReader) value(fd protoreflect.FieldDescriptor, n *syntax.TextNode, p textPlace) {
	switch {
	case fd.IsMap() && n.Message:
		value := fd.MapValue()
		for i := range n.Children {
			switch c := &n.Children[i]; c.Name {
			case "key":
			case "value":
				p.field = value
				r.value(value, c, p)
			default:
				r.unknown(c, textPlace{spot: spot{around: []protoreflect.MessageDescriptor{fd.Message()}}}, nil)
				r.blank(c, nil)
			}
		}
	case fd.Message() != nil && n.Message:
		r.fields(n, p.in(fd.Message()))
	case r.sound:
	default:
		if reason := r.scalar(fd, n, p); reason != "" {
			at := syntax.Span{From: n.Value, To: n.End}
			if strings.HasPrefix(reason, "missing field separator") {
				at.From = n.Start()
			}
			r.fault(n, at, p, reason)
		}
	}
}

// scalar says why prototext can't read a value of a field, nothing where it can.
func (r *textReader) scalar(fd protoreflect.FieldDescriptor, n *syntax.TextNode, p textPlace) string {
	owner := fd.ContainingMessage()
	literal := r.doc.Text[n.Value:n.End]
	if n.Name == fd.TextName() {
		literal = bytes.TrimLeft(r.doc.Text[n.Key+len(n.Name):n.End], " \t\r\n\v\f") // with a colon, if any
	} else {
		literal = append([]byte(":"), literal...)
	}
	text := fmt.Appendf(nil, "%s %s", fd.TextName(), literal)
	if owner.IsMapEntry() {
		return "" // an entry can't be read alone
	}
	if err := r.doc.source.resolver().text().Unmarshal(text, xds.New(owner)); err != nil {
		reason, _ := cleaned(err)
		if noColon := strings.HasPrefix(reason, "missing field separator"); !noColon && r.doc.source.byEnvoy &&
			fd.Kind() == protoreflect.StringKind && r.lax(n, p) {
			return ""
		}
		return reason
	}
	return ""
}

const readOnlyTextHelp = "Envoy accepts this, but it is not valid in the text format"

// unpacked reports whether Envoy unpacks the message at p from an Any. A string of it must be UTF-8.
func (p textPlace) unpacked() bool {
	return p.packed && !strings.Contains(string(p.path), "typed_filter_metadata")
}

// lax takes a string that Envoy's parser reads and prototext does not: escapes that give
// no UTF-8, or are written in another way.
func (r *textReader) lax(n *syntax.TextNode, p textPlace) bool {
	literal := laxEscapes(r.doc.Text[n.Value:n.End])
	var v wrapperspb.BytesValue
	if prototext.Unmarshal(append([]byte("value:"), literal...), &v) != nil {
		return false
	}
	f := r.doc.source.Finding(syntax.CodeInvalidUTF8, r.doc.Span(syntax.Span{From: n.Value, To: n.End}), "the escapes in this "+
		"string do not produce UTF-8", readOnlyTextHelp)
	f.Severity = diag.Warning
	if p.unpacked() {
		f.Severity, f.Help = diag.Error, "Envoy can't unpack the message around this string: write UTF-8"
	}
	if utf8.Valid(v.GetValue()) {
		f = r.doc.source.Finding(syntax.CodeSyntax, r.doc.Span(syntax.Span{From: n.Value, To: n.End}), "an escape in this string "+
			"is not valid in the text format", readOnlyTextHelp)
		f.Severity = diag.Warning
	}
	f.Resource, f.Path = r.doc.resourceAt(r.root, n.Value)
	r.d.report(f)
	quoted := strconv.Quote(strings.ToValidUTF8(string(v.GetValue()), "?"))
	if len(quoted) > n.End-n.Value { // Go's escapes may be longer
		quoted = `"` + strings.Repeat("?", n.End-n.Value-2) + `"`
	}
	r.replace(n.Value, n.End, quoted)
	return true
}

// laxEscapes writes the escapes that only Envoy's parser takes as the format has them.
func laxEscapes(literal []byte) []byte {
	out := bytes.Clone(literal)
	for i := 0; i+1 < len(out); i++ {
		if out[i] != '\\' {
			continue
		}
		i++
		switch rest := out[i:]; {
		case rest[0] == 'X':
			rest[0] = 'x'
		case rest[0] >= '4' && rest[0] <= '7' && len(rest) > 2 && syntax.IsOctal(rest[1]) && syntax.IsOctal(rest[2]):
			rest[0] -= 4 // of nine bits eight are left
		case rest[0] == 'u' && len(rest) > 4:
			if n, err := strconv.ParseUint(string(rest[1:5]), 16, 16); err == nil && n >= 0xd800 && n < 0xe000 {
				copy(rest[1:5], "fffd")
			}
		}
	}
	return out
}
