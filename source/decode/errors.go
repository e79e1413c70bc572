package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// protojson words its errors differently from build to build; what is relied on
// here is the place in parentheses and the sense of a few phrases, both guarded
// by tests.
var (
	protoPlace   = regexp.MustCompile(`\(line (\d+):(\d+)\):?\s*`)
	protoPrefix  = regexp.MustCompile(`^proto:\s*`)
	unknownField = regexp.MustCompile(`^unknown field `)
	unresolved   = regexp.MustCompile(`^unable to resolve "([^"]*)"`)
	badType      = regexp.MustCompile(`^(?:missing "@type" field|@type field )`)
	badEnum      = regexp.MustCompile(`^invalid value for enum field [^:]*: (.*)$`)
	badValue     = regexp.MustCompile(`^invalid value for (\S+) field [^:]*: (.*)$`)
	farDuration  = regexp.MustCompile(`^google\.protobuf\.Duration value out of range: (.*)$`)
	badDuration  = regexp.MustCompile(`^invalid google\.protobuf\.Duration value (.*)$`)
	badTime      = regexp.MustCompile(`^invalid google\.protobuf\.Timestamp value (.*)$`)
	badToken     = regexp.MustCompile(`^unexpected token (.*)$`)
	setTwice     = regexp.MustCompile(`^error parsing "?([^",]*)"?, oneof (\S+) is already set`)
	duplicate    = regexp.MustCompile(`^duplicate (?:field|map key) `)
)

// unknownType is the finding about the type URL at v that nothing is known for.
func (v value) unknownType(url string) diag.Diagnostic {
	help, meant := v.doc.source.envoy.SuggestType(url)
	f := v.finding(codeUnknownType, unknownTypeMessage(url), help)
	v.doc.Fix(&f, steps(v.path), false, meant)
	return f
}

func unknownTypeMessage(url string) string { return fmt.Sprintf("unknown type %q", url) }

// decodeError turns what protojson says of v into a finding at its place.
func (v value) decodeError(m proto.Message, err error) diag.Diagnostic {
	reason, place := cleaned(err)
	var path xds.Path
	key := false
	if place != nil {
		path, key = pathAt(v.text, offsetOf(v.text, place.line, place.column))
	}
	return v.explain(reason, path, fieldOf(path), key, func() spot { return spotAt(v.doc.source.resolver(), v.text, m, steps(path)) })
}

// explain turns what protojson says of the value at a path of v, or where key is set of
// the key there, into a finding. field is how the source writes the field's name, here
// what the API says of the path.
func (v value) explain(reason string, path xds.Path, field string, key bool, here func() spot) diag.Diagnostic {
	said := said{field: field, secret: v.as != nil && v.as.t == xds.Secret || slices.ContainsFunc(steps(path), v.doc.source.MayBeSecret)}
	e := explanation{code: syntax.CodeInvalidValue, key: key}
	switch {
	case unknownField.MatchString(reason):
		e.code = codeUnknownField
		e.message, e.help = v.unknownField(here(), said)
	case unresolved.MatchString(reason):
		e.code = codeUnknownType
		e.help, e.meant = v.doc.source.envoy.SuggestType(unresolved.FindStringSubmatch(reason)[1])
		e.message = unknownTypeMessage(e.meant.Wrong)
	case badType.MatchString(reason):
		e.code, e.message, e.help = codeUnknownType, `the configuration of an extension has no "@type"`, typeHelp
		if strings.HasPrefix(reason, "@type") {
			e.message = `the "@type" is not text`
		}
	case setTwice.MatchString(reason):
		found := setTwice.FindStringSubmatch(reason)
		e.message, e.help = fmt.Sprintf("%s conflicts with another field of %s", found[1], found[2]), "keep one of them"
		e.key = true
	case duplicate.MatchString(reason):
		e.code, e.message, e.help = syntax.CodeDuplicateKey, fmt.Sprintf("field %q is set twice, in two spellings", said.field), "keep one of them"
	default:
		v.explainValue(&e, reason, path, said, here)
	}
	f := v.findingIn(path, e.key, e.code, e.message, e.help)
	f.Sensitive = said.secret
	if badType.MatchString(reason) || strings.HasPrefix(e.help, addDash) {
		v.atFirstLine(&f, path)
	}
	v.doc.Fix(&f, steps(v.path.Join(path)), e.key, e.meant)
	return f
}

// explanation is what a finding says of a mistake that protojson met.
type explanation struct {
	code          diag.Code
	message, help string
	key           bool // the fault is in the key
	meant         diag.Correction
}

// explainValue is explain for a value that does not fit its field, and for all other faults.
func (v value) explainValue(e *explanation, reason string, path xds.Path, said said, here func() spot) {
	if found := farDuration.FindStringSubmatch(reason); found != nil {
		e.message, e.help = fmt.Sprintf("%s is out of range: %s", said.field, said.value(found[1])), durationRange
		return
	}
	for _, pattern := range []*regexp.Regexp{badEnum, badDuration, badTime, badValue, badToken} {
		found := pattern.FindStringSubmatch(reason)
		if found == nil {
			continue
		}
		w := here().wishAt(said.field, v.asWritten(found[len(found)-1], path), steps(path), v.doc.source.Format)
		if pattern != badEnum || w.got == "{" || w.got == "[" || w.got == "null" {
			e.message, e.help = said.wants(w)
			return
		}
		e.code, e.message = codeUnknownEnum, fmt.Sprintf("%s has no value %s", said.field, said.value(w.got))
		e.help, e.meant = here().suggestValue(w.text)
		e.meant.Sure = e.meant.Sure && !v.doc.source.readsLaxly()
		if e.help == "" {
			e.help = v.reaction(takesDefault) + "; the API's documentation has the names, in capitals"
		}
		return
	}
	switch {
	case strings.Contains(reason, "recursion depth"):
		e.message, e.help = "the resource is nested too deeply", syntax.TooDeepHelp
	case said.secret:
		e.message = fmt.Sprintf("%s has a value that can't be read", said.field)
	default:
		e.message = syntax.Shorten(reason)
	}
}

// atFirstLine puts a finding about a block of YAML at its first line, where something is to be
// written, instead of the key above.
func (v value) atFirstLine(f *diag.Diagnostic, path xds.Path) {
	if v.doc.source.Format != syntax.YAML {
		return
	}
	if at := v.doc.AsYAML().YAMLAt(steps(v.path.Join(path))); at.Whole && !at.Shared && at.Value.Kind == yaml.MappingNode &&
		at.Value.Style&yaml.FlowStyle == 0 && len(at.Value.Content) > 0 {
		r := at.In.NodeRange(at.Value.Content[0])
		f.Position, f.End = r.Position, r.End
	}
}

// unknownField returns the message and the help for a field that the message type does not have.
func (v value) unknownField(here spot, said said) (message, help string) {
	message = fmt.Sprintf("unknown field %q", said.field)
	if help = here.suggestField(said.field); help != "" {
		return message, help
	}
	help = v.reaction(drops) + "; check the spelling and the indentation"
	if v.doc.source.Format != syntax.YAML {
		help = v.reaction(drops) + "; check the spelling, and the object around it"
	}
	if said.secret {
		return "unknown field", help // perhaps a value that lost its place
	}
	if n := len(here.around); n > 0 {
		if fields := fieldsOf(here.around[n-1]); fields != "" {
			help = fmt.Sprintf("%s has no field of this name%s", here.around[n-1].Name(), fields)
		}
	}
	return message, help
}

const typeHelp = `write "@type": type.googleapis.com/… with the message of the extension`

// reaction returns the reaction of an Envoy that reads the document.
func (v value) reaction(lax string) string {
	if v.doc.isBootstrap && !v.doc.source.byEnvoy {
		return "an Envoy that has it in its bootstrap does not start"
	}
	return v.doc.source.reaction(lax)
}

// asWritten returns a value in the source's form if JSON has another form: a number that YAML reads, such as
// 1.10, or a word such as yes.
func (v value) asWritten(got string, path xds.Path) string {
	if v.doc.source.Format != syntax.YAML || got == "" || strings.IndexByte(`{["`, got[0]) >= 0 {
		return got
	}
	if n := v.doc.AsYAML().NodeAt(steps(v.path.Join(path))); n != nil && n.Kind == yaml.ScalarNode && n.Style == 0 && n.Value != "" {
		return n.Value
	}
	return got
}

// wants says that a field wants another kind of value, and what to write.
func (s said) wants(w wish) (message, help string) {
	got := s.value(w.got)
	message = fmt.Sprintf("%s must be %s, not %s", s.field, w.what(), got)
	if w.got == "null" {
		message = fmt.Sprintf("%s must be %s, and has no value", s.field, w.what())
	}
	if w.fd == nil {
		message = fmt.Sprintf("%s has the wrong kind of value: %s", s.field, got)
	}
	if s.secret {
		w.got, w.text = "", "" // the help would quote it
	}
	if help = w.write(); help == "" {
		help = "write " + w.what()
	}
	return message, help
}

// unquotedJSON returns the text of a JSON string, and any other value unchanged.
func unquotedJSON(raw string) string {
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil {
		return raw
	}
	return text
}

// durationRange is what Envoy takes for a duration.
const durationRange = "write a duration from 0s to 9223372035.999999999s (292 years)"

// Envoy's reactions to unknown names when Envoy reads laxly.
const (
	drops        = "ignore it without an error"
	takesDefault = "use the default instead, without an error"
)

// reaction returns Envoy's reaction to a fault that lax reading would accept with the effect lax. Envoy reads
// its bootstrap and text protos strictly, and never reads a file of a source tree.
func (s *Source) reaction(lax string) string {
	switch verb, rest, _ := strings.Cut(lax, " "); {
	case s.isBootstrap || s.Format == syntax.TextProto:
		return s.refusal()
	case s.byEnvoy:
		return fmt.Sprintf("Envoy %ss %s", verb, rest)
	default:
		return "Envoy would " + lax
	}
}

// readsLaxly reports whether Envoy accepts unknown names in the file.
func (s *Source) readsLaxly() bool {
	return s.byEnvoy && !s.isBootstrap && s.Format != syntax.TextProto
}

// refusal returns the reaction of an Envoy that can't read the source.
func (s *Source) refusal() string {
	switch {
	case s.isBootstrap:
		return "Envoy does not start with it"
	case s.byEnvoy:
		return "Envoy rejects the whole file"
	default:
		return "Envoy would reject the whole file"
	}
}

// findingIn is a finding at a path of v, or where key is set at the key there.
func (v value) findingIn(path xds.Path, key bool, code diag.Code, message, help string) diag.Diagnostic {
	f := v.doc.source.Finding(code, v.doc.RangeOf(steps(v.path.Join(path)), key), message, help)
	f.Sensitive = slices.ContainsFunc(steps(path), v.doc.source.MayBeSecret)
	f.Path = string(v.path.Join(path))
	if v.as != nil && v.as.t != nil {
		f.Path = string(path)
		f.Resource = v.as.resource()
	}
	return f
}

// brokenBase64 reports the bytes fields whose text has a line break in it: protojson
// reads over that, Envoy calls it corrupt and drops the whole file.
func brokenBase64(d *decoder, v value, m proto.Message) {
	tree := syntax.ParseJSON(v.text)
	v.doc.source.resolver().Walk(m, func(n *xds.Node) {
		n.Message.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if fd.Kind() != protoreflect.BytesKind || fd.IsList() || n.Name() == "google.protobuf.Any" {
				return true
			}
			path := n.Path().Field(string(fd.Name()))
			raw, err := jsontext.NewDecoder(bytes.NewReader(v.text[tree.Find(steps(path)):])).ReadValue()
			if err == nil && raw.Kind() == '"' && breaksLine(raw) {
				d.report(v.findingIn(path, false, syntax.CodeInvalidValue, fieldOf(path)+" has a line break "+
					"in its base64", "write it on one line: Envoy does not read base64 with line breaks"))
			}
			return true
		})
	})
}

type protoAt struct{ line, column int }

// cleaned returns protojson's message without the parts that differ from build to build, and the place in the
// message, if any.
func cleaned(err error) (reason string, place *protoAt) {
	reason = strings.ReplaceAll(err.Error(), "\u00a0", " ")
	if found := protoPlace.FindStringSubmatch(reason); found != nil {
		place = &protoAt{}
		place.line, _ = strconv.Atoi(found[1])
		place.column, _ = strconv.Atoi(found[2])
	}
	reason = protoPrefix.ReplaceAllString(protoPlace.ReplaceAllString(reason, ""), "")
	return strings.TrimPrefix(reason, "syntax error "), place
}

// said is what a message may say of a place: the field's name, and its value
// unless that is secret.
type said struct {
	field  string
	secret bool
}

// value is what a person calls the first token of a value.
func (s said) value(token string) string {
	switch {
	case token == "{":
		return "an object"
	case token == "[":
		return "a list"
	case s.secret:
		return "(not shown)"
	default:
		return syntax.Shorten(token)
	}
}

// fieldOf is the name of the field at a path, or around a list element.
func fieldOf(path xds.Path) string {
	name := "the value"
	for s := range path.Steps() {
		if s.Name != "" {
			name = s.Name
		}
	}
	return name
}

// offsetOf is the byte offset of a line and a column, which counts runes, both
// from 1.
func offsetOf(text []byte, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(text[offset:], '\n')
		if i < 0 {
			break
		}
		offset += i + 1
	}
	for ; column > 1 && offset < len(text); column-- {
		_, size := utf8.DecodeRune(text[offset:])
		offset += size
	}
	return offset
}

// breaksLine reports whether some string in a JSON text has a line break.
func breaksLine(text []byte) bool {
	return bytes.Contains(text, []byte(`\n`)) || bytes.Contains(text, []byte(`\r`))
}

const responseHelp = `write a DiscoveryResponse: {"resources": [{"@type": …}, …]}`
