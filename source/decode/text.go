package decode

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// header names the message of a text file that is no DiscoveryResponse, as the
// text format's documentation has it: protobuf.dev/reference/protobuf/textformat-spec.
var header = regexp.MustCompile(`^[ \t]*#[ \t]*proto-message:[ \t]*(\S+)`)

// textSource decodes a text proto: a DiscoveryResponse, or what its header names.
func textSource(d *decoder) {
	s := d.file.Source
	doc := s.documents()[0]
	root := doc.Tree()
	if root.TooDeep >= 0 {
		d.lose(s.Finding(syntax.CodeInvalidValue, doc.Point(root.TooDeep), "the file is nested too deeply", syntax.TooDeepHelp))
		return
	}
	if root.Whole && len(root.Children) == 0 && !s.isBootstrap {
		return
	}
	d.any = true
	m := textMessage(d, doc)
	if m == nil {
		return
	}
	ok := textInto(d, doc, m)
	if d.file.Findings.Len() == 0 { // mostly nobody asks for places again
		doc.Forget()
	}
	if ok {
		d.decoded(value{doc: doc}, m)
	}
}

// textInto decodes the whole document into m as far as possible, and reports every fault. It returns false if
// nothing could be read.
func textInto(d *decoder, doc *document, m proto.Message) bool {
	text := doc.Text
	err := doc.source.resolver().text().Unmarshal(text, m)
	if doc.Tree().Whole {
		d.lost = make(map[xds.Path]xds.Lost)
		r := textReader{d: d, doc: doc, root: m, sound: err == nil}
		if text = r.read(); r.text != nil {
			proto.Reset(m)
			err = doc.source.resolver().text().Unmarshal(text, m)
		}
	}
	if err != nil {
		d.lose(doc.textError(m, text, err))
	}
	if doc.source.byEnvoy && d.file.Diagnostics().HasErrors() {
		d.file.Partial = true // Envoy takes none of it
	}
	return err == nil
}

// textMessage returns an empty message of the type that the file names.
func textMessage(d *decoder, doc *document) proto.Message {
	switch s := doc.source; {
	case s.isBootstrap:
		return &bootstrapv3.Bootstrap{}
	case s.byEnvoy:
		return &discoveryv3.DiscoveryResponse{} // to Envoy the header is a comment
	}
	at := messageNamed(doc.Text)
	if at == nil {
		return &discoveryv3.DiscoveryResponse{}
	}
	name := string(doc.Text[at[0]:at[1]])
	mt, err := doc.source.resolver().FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		help, meant := doc.source.envoy.SuggestType(xds.URLPrefix + name)
		meant.Wrong, meant.Right = name, strings.TrimPrefix(meant.Right, xds.URLPrefix)
		f := doc.source.Finding(codeUnknownType, doc.Span(syntax.Span{From: at[0], To: at[1]}), fmt.Sprintf("unknown message %q", name), help)
		doc.fixLiteral(&f, syntax.Literal{Span: syntax.Span{From: at[0], To: at[1]}, Means: name}, meant)
		d.lose(f)
		return nil
	}
	return mt.New().Interface()
}

// messageNamed returns the place of the message name in the header of a text proto, or nil.
func messageNamed(text []byte) []int {
	offset := 0
	for line := range bytes.Lines(text) {
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' {
			break
		}
		if at := header.FindSubmatchIndex(line); at != nil {
			return []int{offset + at[2], offset + at[3]}
		}
		offset += len(line)
	}
	return nil
}

var (
	textResolve = regexp.MustCompile(`^unable to resolve message \[([^\]]*)\]`)
	textValue   = regexp.MustCompile(`^invalid value for (\S+) type: (.*)$`)
	textEnum    = regexp.MustCompile(`^invalid value for enum type: (.*)$`)
	textTwice   = regexp.MustCompile(`^non-repeated field "?([^"]*)"? is repeated`)
	textToken   = regexp.MustCompile(`^unexpected token: (.*)$`)
)

// textError turns what prototext says of the document, or of one that was made of it, into
// a finding at its place.
func (d *document) textError(m proto.Message, text []byte, err error) diag.Diagnostic {
	reason, place := cleaned(err)
	offset := len(text)
	if place != nil {
		offset = offsetOf(text, place.line, place.column)
	}
	here, names := d.textSpot(m, offset)
	said := said{field: "the value", secret: slices.ContainsFunc(names, d.source.MayBeSecret) || m.ProtoReflect().Descriptor().FullName() == xds.Secret.Message}
	if len(names) > 0 {
		said.field = names[len(names)-1]
	}
	return d.explain(m, syntax.Span{From: offset, To: offset}, here, said, reason)
}

// explain turns what prototext says of a part of the text into a finding. m is what the document
// is decoded as, here what the API says of the place.
func (d *document) explain(m proto.Message, at syntax.Span, here spot, said said, reason string) diag.Diagnostic {
	// It quotes the text, cut anywhere.
	reason = strings.Join(strings.Fields(strings.ToValidUTF8(reason, "…")), " ")
	code, message, help := syntax.CodeInvalidValue, "", ""
	var meant diag.Correction
	switch {
	case textResolve.MatchString(reason):
		code = codeUnknownType
		help, meant = d.source.envoy.SuggestType(textResolve.FindStringSubmatch(reason)[1])
		message = unknownTypeMessage(meant.Wrong)
	case textEnum.MatchString(reason):
		got := textEnum.FindStringSubmatch(reason)[1]
		code, message = codeUnknownEnum, fmt.Sprintf("%s has no value %s", said.field, said.value(got))
		if help, meant = here.suggestValue(got); help == "" {
			help = d.source.reaction(takesDefault) + "; the API's documentation has the names, in capitals"
		} else if strings.HasPrefix(got, `"`) {
			help, meant = "remove the quotes: the text format has the names of enums without", diag.Correction{}
		}
	case textValue.MatchString(reason):
		found := textValue.FindStringSubmatch(reason)
		message, help = said.wants(here.wishAt(said.field, found[len(found)-1], nil, syntax.TextProto).element())
	case setTwice.MatchString(reason):
		found := setTwice.FindStringSubmatch(reason)
		message, help = fmt.Sprintf("%s conflicts with another field of %s", strings.Trim(found[1], `"`), found[2]), "keep one of them"
	case textTwice.MatchString(reason):
		code, message, help = syntax.CodeDuplicateKey, fmt.Sprintf("field %q is set twice", textTwice.FindStringSubmatch(reason)[1]), "keep one of them"
	case d.Tree().Whole && textToken.MatchString(reason):
		message, help = said.wants(here.wishAt(said.field, textToken.FindStringSubmatch(reason)[1], nil, syntax.TextProto).element())
	case strings.Contains(reason, "recursion depth"):
		message, help = "the resource is nested too deeply", syntax.TooDeepHelp
	case strings.Contains(reason, "missing field separator"):
		code, message, help = syntax.CodeSyntax, "a colon is missing after the field's name", fmt.Sprintf("write %s: and the value", said.field)
	default:
		m := syntax.TextMistake(d.Document, at.From, reason)
		code, message, help, at = syntax.CodeSyntax, m.Message, m.Help, m.At
	}
	f := d.source.Finding(code, d.Span(at), message, help)
	f.Sensitive = f.Sensitive && code.Name == syntax.CodeSyntax.Name || said.secret
	f.Resource, f.Path = d.resourceAt(m, at.From)
	d.fixLiteral(&f, syntax.Literal{Span: at, Means: string(d.Text[at.From:at.To])}, meant)
	return f
}

// fixLiteral is fix for what stands in a part of the text.
func (d *document) fixLiteral(f *diag.Diagnostic, l syntax.Literal, c diag.Correction) {
	if c.Right == "" || l.From == l.To {
		return
	}
	if e, ok := d.Edit(l, c); ok {
		f.Correct(c, e)
	}
}

// resourceAt is the resource around an offset of the document, which is decoded as
// m or as a part of it, and the path in that resource.
func (d *document) resourceAt(m proto.Message, offset int) (r diag.Resource, path string) {
	var at xds.Path
	in := &d.Tree().TextNode
	enter := func(md protoreflect.MessageDescriptor) protoreflect.MessageDescriptor {
		if t := xds.TypeOf(md.FullName()); t != nil && t.Name != "" {
			r, at = diag.Resource{Type: t.URL()}, ""
			for _, n := range in.Named(string(t.Name)) {
				r.Name = syntax.Unquoted(d.Text[n.Value:n.End])
			}
		}
		return md
	}
	md := enter(m.ProtoReflect().Descriptor())
	var list []*syntax.TextNode // the elements of the list that is gone into
	for _, n := range d.Tree().LeadingTo(offset) {
		var fd protoreflect.FieldDescriptor
		switch {
		case n.IsType():
			in, md = n, nil
			if mt, err := d.source.resolver().FindMessageByURL(n.URL()); err == nil {
				md = enter(mt.Descriptor())
			}
			continue
		case n.Name == "":
			at = at.Index(syntax.IndexOf(list, n))
			in = n
			continue
		case md != nil:
			fd = md.Fields().ByTextName(n.Name)
		}
		at, md = at.Field(n.Name), nil
		list = in.Named(n.Name)
		if fd != nil {
			md = fd.Message()
			if fd.IsList() && !n.List {
				at = at.Index(syntax.IndexOf(list, n))
			}
		}
		in = n
	}
	return r, string(at)
}

// textSpot is what the API says of the field at an offset, and the names of the
// fields that lead there from the message m.
func (d *document) textSpot(m proto.Message, offset int) (spot, []string) {
	s := spot{around: []protoreflect.MessageDescriptor{m.ProtoReflect().Descriptor()}}
	var names []string
	for _, n := range d.Tree().LeadingTo(offset) {
		if n.Name == "" {
			continue
		}
		md := s.around[len(s.around)-1]
		if s.field != nil {
			if md = s.message(); md == nil {
				return spot{}, names
			}
			s = spot{around: append(s.around, md)}
		}
		if n.IsType() {
			mt, err := d.source.resolver().FindMessageByURL(n.URL())
			if err != nil {
				return spot{}, names
			}
			s.around = append(s.around, mt.Descriptor())
			continue
		}
		names = append(names, n.Name)
		if s.field = md.Fields().ByTextName(n.Name); s.field == nil {
			return spot{}, names
		}
	}
	return s, names
}
